"""Repairing: what can be proven is put right in place, written down, and can be undone."""

import pytest

import ledger
from ledger.errors import ConversationUnknown, LedgerError
from ledger.stores.folder import FolderStore
from tests.stores.support import log_path, stop, turns


@pytest.fixture
def store(tmp_path):
    """A store with a log of five records in three appends."""
    store = FolderStore(tmp_path)
    store.append("c", [stop("a")])
    store.append("c", [stop("b"), stop("d")])
    store.append("c", [stop("e"), stop("f")])
    return store


def damage(tmp_path, before: bytes, after: bytes) -> tuple[bytes, bytes]:
    """Alter the log. Returns: the bytes before and after."""
    path = log_path(tmp_path)
    whole = path.read_bytes()
    assert before in whole
    path.write_bytes(whole.replace(before, after, 1))
    return whole, path.read_bytes()


def flip_chain(tmp_path, line: int) -> tuple[bytes, bytes]:
    """Alter the chain value of a line."""
    text = log_path(tmp_path).read_bytes().split(b"\n")[line]
    chain = text[-25:-3]
    return damage(tmp_path, chain, chain[:-1] + (b"A" if chain[-1:] != b"A" else b"B"))


def test_a_whole_log_is_left_alone(store, tmp_path):
    """Nothing is changed and nothing is written down."""
    before = log_path(tmp_path).read_bytes()
    assert not store.repair("c")
    assert log_path(tmp_path).read_bytes() == before
    assert not list((tmp_path / "conversations").glob("c.repaired-*"))


@pytest.mark.parametrize("there", [True, False], ids=["no such log", "no folder"])
def test_what_is_not_there_is_not_mended(tmp_path, there):
    """A conversation that is not there is told as such, and nothing is made for it."""
    if there:
        FolderStore(tmp_path / "s").append("other", [stop("a")])
    before = sorted(tmp_path.rglob("*"))
    store = FolderStore(tmp_path / "s")
    for work in (store.repair, store.undo_repair):
        with pytest.raises(ConversationUnknown):
            work("c")

    assert sorted(tmp_path.rglob("*")) == before


def test_an_altered_chain_is_put_right_without_a_copy(store, tmp_path):
    """The value follows from the bytes before it; both lines that were suspect are read again."""
    whole, _ = flip_chain(tmp_path, 2)
    assert turns(FolderStore(tmp_path).read("c")) == ["a", "b", None, None, "f"]

    repaired = store.repair("c")

    assert log_path(tmp_path).read_bytes() == whole
    assert [change.why for change in repaired.changes] == ["chain"]
    assert not repaired.report.damaged
    assert turns(FolderStore(tmp_path).read("c")) == ["a", "b", "d", "e", "f"]


def test_an_altered_text_is_put_right_from_a_copy(store, tmp_path):
    """Bytes of a backup that check are put where others stand; a shorter backup will do."""
    backup = log_path(tmp_path).read_bytes()
    store.append("c", [stop("later")])
    whole, _ = damage(tmp_path, b'"turn":"b"', b'"turn":"B"')

    assert not store.repair("c")
    assert store.repair("c", copy=backup)

    assert log_path(tmp_path).read_bytes() == whole


def test_what_cannot_be_proven_stays(store, tmp_path):
    """Without a copy, or with one of another log, damage stays as it is and is reported."""
    other = FolderStore(tmp_path / "other")
    other.append("c", [stop(name) for name in "abdef"])
    _, damaged = damage(tmp_path, b'"turn":"b"', b'"turn":"B"')

    for copy in (None, other.raw("c"), b"", b"x" * 5000):
        repaired = store.repair("c", copy=copy)
        assert not repaired
        assert repaired.report.damaged
    assert log_path(tmp_path).read_bytes() == damaged


def test_a_repair_is_written_down_and_undone(store, tmp_path):
    """The changed bytes are kept beside the log; undoing puts them back, once."""
    whole, damaged = flip_chain(tmp_path, 0)
    assert store.repair("c").record == "c.repaired-1"
    kept = tmp_path / "conversations" / "c.repaired-1"
    assert kept.stat().st_mode & 0o777 == 0o600

    undone = store.undo_repair("c")

    assert undone
    assert log_path(tmp_path).read_bytes() == damaged
    assert (tmp_path / "conversations" / "c.undone-1").exists()
    assert not store.undo_repair("c")
    assert store.repair("c").record == "c.repaired-2"
    assert log_path(tmp_path).read_bytes() == whole
    store.undo_repair("c")
    beside = tmp_path / "conversations"
    assert sorted(path.name for path in beside.glob("c.undone-*")) == ["c.undone-1", "c.undone-2"]


def test_undoing_leaves_what_was_changed_since(store, tmp_path):
    """Where other bytes stand by now, undoing changes nothing."""
    flip_chain(tmp_path, 0)
    store.repair("c")
    store.append("c", [stop("g")])
    _, now = damage(tmp_path, b'"turn":"a"', b'"turn":"A"')
    chain = now.split(b"\n")[0][-25:-3]
    _, now = damage(tmp_path, chain, b"x" * 22)

    assert not store.undo_repair("c")
    assert log_path(tmp_path).read_bytes() == now


def test_saying_what_would_be_done_does_nothing(store, tmp_path):
    """A dry run names the changes and makes none."""
    _, damaged = flip_chain(tmp_path, 1)
    told = store.repair("c", really=False)
    assert (len(told.changes), told.record) == (1, None)
    assert log_path(tmp_path).read_bytes() == damaged


def test_a_repair_that_dies_half_way_is_done_again(store, tmp_path):
    """After a failed write the record of it stands, and repairing once more ends it."""
    from tests.stores.support import Failing, error

    whole, _ = flip_chain(tmp_path, 1)
    calls = Failing()
    calls.fail["write"] = [None, error(5)]

    with pytest.raises(LedgerError):
        FolderStore(tmp_path, calls=calls).repair("c")
    store.repair("c")

    assert log_path(tmp_path).read_bytes() == whole


def test_readers_go_on_after_a_repair(store, tmp_path):
    """An open reader reads the repaired lines, and writers append to them."""
    reader = FolderStore(tmp_path)
    flip_chain(tmp_path, 3)
    assert turns(reader.read("c")) == ["a", "b", "d", None, None]
    store.repair("c")
    assert turns(reader.read("c")) == ["a", "b", "d", "e", "f"]
    assert reader.append("c", [stop("g")], expect=5) == 6


def test_a_log_that_is_not_there_cannot_be_repaired(store):
    """A missing conversation is an error of the store, not a new file."""
    with pytest.raises((LedgerError, FileNotFoundError)):
        store.repair("nobody")


def test_deleting_and_forgetting_take_the_records_of_repairs(store, tmp_path):
    """What a repair wrote down holds content, and goes with the conversation."""
    flip_chain(tmp_path, 0)
    store.repair("c")
    store.delete("c")
    assert sorted(p.name for p in (tmp_path / "conversations").iterdir()) == ["c.lock"]


SECRET = "the secret of the canary"


@pytest.fixture
def forgotten(tmp_path):
    """A log with a turn that was forgotten. Returns: the store, the log before, the log now."""
    store = FolderStore(tmp_path)
    chat = ledger.open("c", store=store)
    chat.record("a", "b")
    made = chat.record(SECRET, SECRET)
    chat.record("c", "d")
    before = log_path(tmp_path).read_bytes()
    chat.forget(made)
    return store, before, log_path(tmp_path).read_bytes()


def spoil(tmp_path, start: int, end: int) -> None:
    """Zero a part of the log, line feeds included."""
    with log_path(tmp_path).open("r+b") as file:
        file.seek(start)
        file.write(bytes(end - start))


def test_an_old_backup_does_not_bring_back_what_was_forgotten(forgotten, tmp_path):
    """Wherever the damage is, and however much of it, no backup brings it back."""
    store, before, now = forgotten
    for start in range(0, len(now) - 40, 23):
        for length in (1, 40, 700):
            end = min(start + length, len(now) - 1)
            log_path(tmp_path).write_bytes(now)
            spoil(tmp_path, start, end)
            store.repair("c", copy=before)
            healed = log_path(tmp_path).read_bytes()
            assert SECRET.encode() not in healed
            for beside in log_path(tmp_path).parent.glob("c.repaired-*"):
                assert SECRET.encode() not in beside.read_bytes()
                beside.unlink()


def test_a_tombstone_is_mended_beside_another_of_its_turn(forgotten, tmp_path):
    """The other tombstone of the turn says that it was forgotten, so the copy is read so."""
    store, before, now = forgotten
    at = now.index(b'"erased":true')
    spoil(tmp_path, at, at + 4)
    assert store.repair("c", copy=before)
    assert log_path(tmp_path).read_bytes() == now


def test_a_damaged_answer_that_is_forgotten_is_kept_nowhere(tmp_path):
    """Forgetting cannot erase a damaged line; a repair makes it a tombstone, and keeps no copy of it."""
    store = FolderStore(tmp_path)
    chat = ledger.open("c", store=store)
    made = chat.record("asked", SECRET)
    chat.record("c", "d")
    before = log_path(tmp_path).read_bytes()
    damage(tmp_path, b'"state":"done"', b'"state":"dOne"')
    log_path(tmp_path).write_bytes(
        log_path(tmp_path).read_bytes().replace(b'{"result"', b'["result"')
    )
    FolderStore(tmp_path).erase("c", made.id)

    store.repair("c", copy=before)

    for path in log_path(tmp_path).parent.iterdir():
        assert SECRET.encode() not in path.read_bytes()
    assert not store.verify("c").damaged


@pytest.mark.parametrize("place", range(1, 120))
def test_no_mend_and_no_undoing_loses_what_was_appended_since(tmp_path, place):
    """A seal that a later append was made on is left as it is, damaged or mended."""
    store = FolderStore(tmp_path)
    store.append("c", [stop("a")])
    store.append("c", [stop("b")])
    backup = log_path(tmp_path).read_bytes()
    broken = bytearray(backup)
    broken[-1 - place] ^= 1
    log_path(tmp_path).write_bytes(broken)
    FolderStore(tmp_path).append("c", [stop("later")])
    read = [t for t in turns(FolderStore(tmp_path).read("c")) if t]

    store.repair("c", copy=backup)
    mended = [t for t in turns(FolderStore(tmp_path).read("c")) if t]
    assert set(read) <= set(mended)

    FolderStore(tmp_path).append("c", [stop("last")])
    store.undo_repair("c")
    assert {"later", "last"} <= set(turns(FolderStore(tmp_path).read("c")))


def test_a_record_of_a_repair_that_does_not_read_is_told(store, tmp_path):
    """Undoing says which file it is, and changes nothing."""
    (tmp_path / "conversations" / "c.repaired-1").touch(mode=0o600)
    with pytest.raises(LedgerError, match="repaired-1"):
        store.undo_repair("c")
    with pytest.raises(TypeError, match="bytes"):
        store.repair("c", copy="a name")
