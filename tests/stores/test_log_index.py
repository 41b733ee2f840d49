"""With an index beside a log, every question is answered as without; an index that is not right is not believed."""

import errno
import itertools
import os
import shutil
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledger
from ledger.errors import DamageWarning, StoreDenied
from ledger.records import codec
from ledger.stores import index_making, locks, witness
from ledger.stores.files import Descriptor
from ledger.stores.folder import FolderStore
from ledger.turns.log import Log
from ledger.views import History, last_turns
from ledger.views.late import LateHistory
from ledger.views.nodes import CLEARED
from tests.stores import support
from tests.views import build
from tests.views.test_history import snapshot
from tests.views.test_late import QUESTIONS, answer


@contextmanager
def small(**limits):
    """Parts of few bytes each, so that short logs have several."""
    limits = {"SPAN": 2, "KEPT_OUT": 2, "LARGEST": 3000, **limits}
    before = {name: getattr(index_making, name) for name in limits}
    for name, value in limits.items():
        setattr(index_making, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(index_making, name, value)


def store_at(folder) -> FolderStore:
    return FolderStore(folder, calls=support.Unflushed())


def parts(folder, conversation="c") -> list[Path]:
    place = Path(folder) / "indexes" / conversation
    return sorted(place.iterdir()) if place.exists() else []


def pieces_of(records, sizes, foreign=()):
    """A log as it grows by appends of these many records, over and over; some of them are another writer's."""
    data, start, pieces = b"", 0, []
    scanner = codec.Scanner(codec.first_chain("c"))
    for size in itertools.cycle(sizes):
        if start >= len(records):
            return pieces
        some = records[start : start + size]
        bodies = [msgspec.json.encode({k: v for k, v in r.items() if k != "seq"}) for r in some]
        if len(pieces) in foreign:
            text = b"".join(body + b"\n" for body in bodies)
        else:
            salts = (os.urandom(16) for _ in bodies)
            text, _ = codec.seal(bodies, start, scanner.onward().covered, salts)
        scanner.feed(text)
        data, start = data + text, start + len(some)
        pieces.append(data)
    return pieces


def written(folder, pieces, *, read=False):
    """Write a log piece by piece, as if it was appended; its index grows with it, or is made by who reads it."""
    path = support.log_path(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    support.lock_path(folder).touch()
    store = store_at(folder)
    for before, data in itertools.pairwise([b"", *pieces]):
        path.write_bytes(data)
        if support.lock_path(folder).stat().st_size:  # As a writer does, under the lock.
            with Descriptor(str(support.lock_path(folder)), os.O_RDWR) as lock:
                witness.write(lock, store._home.calls, path.stat())
        if not read:
            store.read_end("c")
            if index_making.is_due(len(before), len(data)):
                store._indexes.grown("c", len(data))
    if read:
        store._indexes.want("c")
        store.scan("c")


@st.composite
def trees(draw):
    """Logs of many turns, each sent once, with all that may be said of any turn at any time."""
    said = [
        lambda name: build.ended(name, draw(st.sampled_from(["done", "done", "failed"]))),
        lambda name: build.lease(name, attempt=draw(st.integers(1, 3))),
        lambda name: build.waiting(name, (build.question(),)),
        lambda name: build.tool(name),
        lambda name: build.new("head", turn=name),
        lambda name: build.new("entry", plugin=CLEARED[0], entry=CLEARED[1], data=None, turn=name),
        lambda name: build.new("entry", plugin=CLEARED[0], entry=CLEARED[1], data=None),
        lambda name: build.new("entry", plugin="x", entry="title", data="t", turn=name),
        lambda name: build.note(name, draw(st.integers(0, 2))),
        lambda _: build.note(None, draw(st.integers(0, 2))),
        lambda name: build.new("program", version=draw(st.sampled_from(["v1", "v2"]))),
        lambda name: build.new("invented", turn=name),
    ]
    records, sent = [], []
    for number in range(draw(st.integers(4, 14))):
        near = [*sent[-2:], *sent[-2:], *sent, None, f"t{number + 1}"]
        name, parent = f"t{number}", draw(st.sampled_from(near))
        keys = draw(st.sampled_from([{}, {}, {"request_id": "r1"}, {"request_id": f"r{number}"}]))
        if parent is not None:
            keys = {**keys, "saw": [{"call": parent}], "saw_all": draw(st.booleans())}
        records.append(build.turn(name, parent, **keys))
        sent.append(name)
        for _ in range(draw(st.integers(0, 3))):
            about = draw(st.sampled_from([name, name, *sent, f"t{number + 2}"]))
            records.append(draw(st.sampled_from([said[0], said[0], *said]))(about))
    return records


def sent_in(records):
    return [
        r["turn"] for r in records if r.get("kind") == "turn" and isinstance(r.get("turn"), str)
    ]


def are_sent_once(records):
    sent = sent_in(records)
    return len(set(sent)) == len(sent)


def damaged(folder, other, how, data):
    """Do something to the parts of an index."""
    found = parts(folder)
    if not found:
        return
    part = data.draw(st.sampled_from(found))
    text = part.read_bytes()
    at = data.draw(st.integers(0, len(text) - 1))
    if how == "flipped":
        part.write_bytes(text[:at] + bytes([text[at] ^ 0x10]) + text[at + 1 :])
    elif how == "cut":
        part.write_bytes(text[:at])
    elif how == "missing":
        part.unlink()
    elif how == "another log's":
        for one in found:
            one.unlink()
        for one in parts(other):
            shutil.copy(one, part.parent / one.name)
    elif how == "another name":
        part.rename(part.parent / data.draw(st.sampled_from(["0-1", "0-fffff", "5-9", "odd"])))


DAMAGE = st.sampled_from(
    ["none", "none", "none", "flipped", "cut", "missing", "another log's", "another name"]
)


@given(st.one_of(trees(), trees(), trees(), build.hostile_logs.filter(are_sent_once)), st.data())
def test_everything_is_answered_as_without(records, data):
    """Whatever is asked first, of whatever log, with whatever index; also when more is appended in between."""
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    foreign = data.draw(st.sampled_from([(), (), (3,), (2, 5)]))
    pieces = pieces_of(records, sizes, foreign)
    until = data.draw(st.integers(len(pieces) // 2, len(pieces)))
    how = data.draw(DAMAGE)
    ask, turn = (
        QUESTIONS[data.draw(st.sampled_from(sorted(QUESTIONS)))],
        data.draw(st.sampled_from([*sent_in(records), "nobody"])),
    )
    limits = data.draw(st.sampled_from([{}, {"LARGEST": 300, "KEPT_OUT_BYTES": 200}]))
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as other,
        small(**limits),
    ):
        written(folder, pieces[:until], read=data.draw(st.booleans()))
        if how == "another log's":
            written(other, pieces_of(records, sizes)[:until])
        damaged(folder, other, how, data)
        log = Log(store_at(folder), "c")
        history = log.read()
        got, wanted = answer(ask, history, turn), answer(ask, whole_of(folder), turn)
        assert got == wanted

        if until < len(pieces):
            support.log_path(folder).write_bytes(pieces[-1])
        history = log.read()
        got, wanted = answer(ask, history, turn), answer(ask, whole_of(folder), turn)
        assert got == wanted
        assert snapshot(log.read()) == snapshot(whole_of(folder))


def whole_of(folder) -> History:
    return History.of(store_at(folder).scan("c"), conversation="c")


# -- made, kept up, removed ------------------------------------------------------------------------


LINE = [build.new("program", version="p"), *build.line(*(f"t{number}" for number in range(30)))]


@pytest.fixture
def folder(tmp_path):
    """A folder with a log of thirty turns, and its index."""
    with small():
        written(tmp_path, pieces_of(LINE, [3]))
        assert len(parts(tmp_path)) > 3
        yield tmp_path


class Reads(FolderStore):
    """Counts how often a log was read from its start."""

    whole = 0

    def scan(self, conversation, after=0):
        self.whole += not after
        return super().scan(conversation, after)


def test_what_an_index_finds_needs_no_reading(folder):
    """Turns far back, their state and their line, where any two meet, ids and programs that are there or not."""
    store = Reads(folder, calls=support.Unflushed())
    history = Log(store, "c").read()
    assert history.head == "t29"
    assert history.node("t3").parent == "t2"
    assert history.node("t3").done
    assert history.children("t3") == ["t4"]
    assert history.latest("t27") == "t29"
    assert history.branch("t3") == ["t0", "t1", "t2", "t3"]
    assert history.merge_base("t2", "t29") == "t2"
    assert history.request("nobody's") is None
    assert "nobody" not in history
    assert (history.has_program("p"), history.has_program("q")) == (True, False)
    assert [(history.node(t).ordinal, history.node(t).depth) for t in ("t3", "t29")] == [
        (4, 3),
        (30, 29),
    ]
    assert (history.at(1), history.at(30), history.at(31), len(history)) == ("t0", "t29", None, 30)
    assert history.first_done("t29").id == "t0"
    assert (history.labels(), history.labels("t3"), history.ratings("t29")) == ([], [], [])
    assert history.entries("ledger", "title") == []
    assert isinstance(history, LateHistory)
    assert store.whole == 0


def test_what_is_shown_and_printed_needs_no_reading(tmp_path):
    """The messages of a window, led by the instructions of the first turn; a turn in print; what is kept beside."""

    def ask(store):
        chat = ledger.open("c", store=store, context=last_turns(2))
        said = chat.messages("openai", context=last_turns(2))
        far, near = chat.turn(3), chat.head
        notes = chat.title, chat.labels, far.labels, near.labels, far.rating
        return said, str(near), str(far), str(chat), far.ordinal, far.parent.id, notes

    with small():
        store = Reads(tmp_path, calls=support.Unflushed())
        chat = ledger.open("c", store=store)
        chat.sync(
            [{"role": "system", "content": "be brief"}]
            + [
                {"role": r, "content": f"{r} {n}"} for n in range(40) for r in ("user", "assistant")
            ],
            format="openai",
        )
        for number in range(20):
            chat.record(f"asked {number}", f"answered {number}")
        chat.title = "first"
        chat.turn(3).label("odd")
        chat.turn(3).rate(4)
        chat.label("all")
        for number in range(20, 40):
            chat.record(f"asked {number}", f"answered {number}")
        chat.sync(
            [{"role": "system", "content": "be long"}, *chat.messages("openai")[1:]],
            format="openai",
        )
        for number in range(40, 60):
            chat.record(f"asked {number}", f"answered {number}")
        chat.head.label("last")
        chat.title = "second"
        ledger.open("c", store=Reads(tmp_path, calls=support.Unflushed())).heads()
        assert parts(tmp_path)

        store = Reads(tmp_path, calls=support.Unflushed())
        found = ask(store)
        assert store.whole == 0
        assert found[0][0]["role"] == "system"
        assert found[-1][:4] == ("second", ["all"], ["odd"], ["last"])
        shutil.rmtree(tmp_path / "indexes")
        assert ask(store_at(tmp_path)) == found


def test_who_asks_far_and_wide_reads_the_whole(folder):
    """An index is asked so often, and no more: then everything is read at once."""
    store = Reads(folder, calls=support.Unflushed())
    history = Log(store, "c").read()
    history._left = 5
    assert history.turns == [f"t{number}" for number in range(30)]
    assert store.whole == 1


def test_a_long_branch_is_not_walked_by_an_index(folder):
    """How long it is, is asked first."""
    store = Reads(folder, calls=support.Unflushed())
    history = Log(store, "c").read()
    history._left = before = 20
    assert history.turns == [f"t{number}" for number in range(30)]
    assert store.whole == 1
    assert before - history._left == 3  # Where the head is, its turn, and that.


def test_an_index_that_is_damaged_is_made_anew(folder):
    """By who reads the whole log for it."""
    for part in parts(folder):
        part.write_bytes(part.read_bytes()[:-1] + b"?")
    store = Reads(folder, calls=support.Unflushed())
    assert Log(store, "c").read().node("t3").parent == "t2"
    assert store.whole == 1

    store = Reads(folder, calls=support.Unflushed())
    assert Log(store, "c").read().node("t3").parent == "t2"
    assert store.whole == 0


def changes(store):
    """What changes a log otherwise than by an append, by name."""
    yield "erase", lambda: store.erase("c", "t3")
    yield "repair", lambda: store.repair("c")
    yield "grow", lambda: store.grow("c", store.raw("c"))
    yield "delete", lambda: store.delete("c")


@pytest.mark.parametrize("how", ["erase", "repair", "grow", "delete"])
def test_what_changes_a_log_removes_its_index(folder, how):
    """And a part that was about to be written is not, since its lines were read before."""
    shutil.rmtree(folder / "indexes")
    store = store_at(folder)
    log = store._home.log("c")
    maker = store._indexes.maker(log)
    late = Log(store_at(folder), "c")
    late.read()
    records = store._read("c", 0, maker.undecoded)
    dict(changes(store))[how]()
    maker.finish()

    assert sum(map(len, records)) == len(LINE)
    assert parts(folder) == []
    assert snapshot(late.read()) == snapshot(whole_of(folder))


def test_an_erased_turn_is_not_found_by_what_it_said(folder):
    """Nor does a turn's word count then for what it was shown."""
    store = store_at(folder)
    records = [build.turn("asked", "t29", request_id="r1"), build.ended("asked")]
    store.append("c", [*records, *build.line("x", "y", "z")])
    store.append("c", build.line("u", "v", "w"))
    assert parts(folder)
    store.erase("c", "asked")
    assert parts(folder) == []

    store.append("c", build.line("more"))
    assert parts(folder)
    history = Log(store_at(folder), "c").read()
    assert history.request("r1") is None
    assert not history.takes_their_word


def test_an_index_that_cannot_be_written_is_none(tmp_path):
    """Appending and reading go on."""
    (tmp_path / "indexes").write_text("in the way")
    with small():
        written(tmp_path, pieces_of(LINE, [3]))
        store_at(tmp_path).append("c", build.line("more"))
        assert Log(store_at(tmp_path), "c").read().head == "more"
        written(tmp_path, pieces_of(LINE, [3]), read=True)


def test_a_link_in_place_of_an_index_is_not_followed(folder, tmp_path_factory):
    """What it leads to is not written to, and not removed."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "precious").write_text("mine")
    shutil.rmtree(folder / "indexes" / "c")
    (folder / "indexes" / "c").symlink_to(elsewhere)
    store = store_at(folder)
    for turn in ("x", "y", "z"):
        store.append("c", build.line(turn))
    assert store.erase("c", "t3")
    assert [path.name for path in elsewhere.iterdir()] == ["precious"]
    assert (folder / "indexes" / "c").is_symlink()


def test_what_somebody_put_into_an_index_stops_nobody(folder):
    """What is ours of it is removed, the rest left; forgetting, appending and deleting go on."""
    (folder / "indexes" / "c" / "@eaDir").mkdir()
    store = store_at(folder)

    assert store.erase("c", "t3")
    store.append("c", build.line("more"))
    assert [part.name for part in parts(folder) if part.is_dir()] == ["@eaDir"]
    assert Log(store_at(folder), "c").read().head == "more"
    assert store.delete("c")


def test_who_cannot_remove_an_index_is_told_before_anything_is_erased(folder):
    """Nothing is decided then, and others append; a repair needs no more than that it is not believed."""

    class Keeps(support.Unflushed):
        """Removes no part."""

        def remove(self, path: str) -> None:
            if "indexes" in path:
                raise PermissionError(errno.EACCES, "denied")
            super().remove(path)

    store = FolderStore(folder, calls=Keeps())
    with pytest.raises(StoreDenied, match="indexes/c"):
        store.erase("c", "t3")
    with pytest.raises(StoreDenied, match="indexes/c"):
        store.delete("c")
    assert snapshot(Log(store_at(folder), "c").read()) == snapshot(whole_of(folder))
    store.append("c", build.line("more"))

    store.repair("c")
    reading = Reads(folder, calls=support.Unflushed())
    assert Log(reading, "c").read().node("t3").parent == "t2"
    assert reading.whole == 1


def test_a_log_that_came_in_one_append_has_an_index(tmp_path):
    """Such as one that was imported: who reads all of it makes one, and the next needs not."""
    with small():
        written(tmp_path, pieces_of(LINE, [len(LINE)]), read=True)
        assert len(parts(tmp_path)) == 1
        store = Reads(tmp_path, calls=support.Unflushed())
        history = Log(store, "c").read()
        assert (history.head, history.node("t3").parent) == ("t29", "t2")
        store.append("c", build.line("more"))
        assert Log(store, "c").read().head == "more"
        assert store.whole == 0


# -- the witness -----------------------------------------------------------------------------------


ASKED = [
    *LINE[:20],
    build.turn("asked", "t9", request_id="r1"),
    build.ended("asked"),
    *LINE[20:],
]


def request_of(folder) -> str | None:
    return Log(store_at(folder), "c").read().request("r1")


def test_a_log_that_is_healed_in_place_is_not_answered_by_an_index_of_the_damaged_one(tmp_path):
    """A request id is found again once its line is: its turn must not be sent twice."""
    path = support.log_path(tmp_path)
    with small():
        written(tmp_path, pieces_of(ASKED, [3]))
        whole = path.read_bytes()
        path.write_bytes(whole.replace(b'"request_id":"r1"', b'"request_id":"r?"'))
        with pytest.warns(DamageWarning):
            assert request_of(tmp_path) is None
        store = store_at(tmp_path)
        store.append("c", [])
        assert parts(tmp_path)

        path.write_bytes(whole)
        assert request_of(tmp_path) == "asked"


def test_a_log_put_back_in_place_is_not_answered_by_an_index_of_the_one_that_was_erased_from(
    tmp_path,
):
    """Nor the other way round: what was erased elsewhere, and came by a copy, counts."""
    path = support.log_path(tmp_path)
    with small():
        written(tmp_path, pieces_of(ASKED, [3]))
        before = path.read_bytes()
        store = store_at(tmp_path)
        store.erase("c", "asked")
        erased = path.read_bytes()
        store.append("c", build.line("more"))
        assert request_of(tmp_path) is None
        assert parts(tmp_path)

        path.write_bytes(before)
        assert request_of(tmp_path) == "asked"
        Log(store_at(tmp_path), "c").read().node("t3")
        assert parts(tmp_path)

        path.write_bytes(erased)
        assert not Log(store_at(tmp_path), "c").read().takes_their_word
        assert request_of(tmp_path) is None


def test_appends_of_any_store_are_witnessed(folder):
    """An index is believed as long as all that was added since was added by writers of ours."""
    for turn in ("x", "y"):
        store_at(folder).append("c", build.line(turn))
    store = Reads(folder, calls=support.Unflushed())
    assert Log(store, "c").read().node("t3").parent == "t2"
    assert store.whole == 0

    with support.log_path(folder).open("ab") as log:
        log.write(msgspec.json.encode(build.new("stop", turn="y")) + b"\n")
    store_at(folder).append("c", build.line("z"))
    store = Reads(folder, calls=support.Unflushed())
    assert Log(store, "c").read().node("t3").parent == "t2"
    assert store.whole == 1


def test_a_short_log_has_no_witness(tmp_path):
    """Its lock file stays empty, and an append writes nothing there."""
    store = store_at(tmp_path)
    store.append("c", build.line("a"))
    store.append("c", build.line("b"))
    assert support.lock_path(tmp_path).read_bytes() == b""


def test_a_log_of_which_no_part_can_be_made_is_not_read_again_and_again(tmp_path):
    """A line that is missing near its start leaves it without an index; what an append reads does not grow."""
    calls = support.Counting()
    with small(SPAN=1 << 12, BEGUN=1 << 13):
        store = FolderStore(tmp_path, calls=calls)
        store.append("c", build.line("a", "b"))
        path = support.log_path(tmp_path)
        _, rest = path.read_bytes().split(b"\n", 1)
        path.write_bytes(rest)
        for number in range(150):
            store.append("c", build.line(f"t{number}"))
        before = calls.read_bytes
        for number in range(50):
            store.append("c", build.line(f"u{number}"))
    assert path.stat().st_size > 1 << 16
    assert calls.read_bytes - before < 50 * 1000


def test_a_part_that_two_write_is_written_once(folder):
    """Who comes second leaves it."""
    log = store_at(folder)._home.log("c")
    shutil.rmtree(folder / "indexes")
    makers = [store_at(folder)._indexes.maker(log) for _ in range(2)]
    for maker in makers:
        store_at(folder)._read("c", 0, maker.undecoded)
    for maker in makers:
        maker.finish()
    assert len(parts(folder)) == 1
    assert Log(store_at(folder), "c").read().node("t3").parent == "t2"


def test_who_makes_an_index_waits_for_an_append(folder):
    """Others hold the append lock for a moment: that is waited for, and nothing has to be read again."""
    log = store_at(folder)._home.log("c")
    shutil.rmtree(folder / "indexes")
    maker = store_at(folder)._indexes.maker(log)
    store_at(folder)._read("c", 0, maker.undecoded)

    held = locks.acquire(log.lock, time.monotonic() + 1, create=False)
    timer = threading.Timer(0.005, held.close)
    timer.start()
    maker.finish()
    timer.join()

    assert len(parts(folder)) == 1


def test_parts_are_joined(tmp_path):
    """Four become one, up to a size, so a long log has few; what was joined is gone."""
    with small(LARGEST=1 << 20):
        written(tmp_path, pieces_of(LINE, [1]))
        assert len(parts(tmp_path)) < 10
        history = Log(store_at(tmp_path), "c").read()
        assert [history.node(f"t{number}").id for number in range(5)] == [f"t{n}" for n in range(5)]
        assert isinstance(history, LateHistory)


def test_an_index_holds_nothing_of_what_was_said(folder):
    """But for hashes, and places."""
    data = b"".join(part.read_bytes() for part in parts(folder))
    assert b"t17" not in data
    assert stat_mode(folder / "indexes") == stat_mode(folder / "indexes" / "c") == 0o700
    assert {stat_mode(part) for part in parts(folder)} == {0o600}


def stat_mode(path) -> int:
    return path.stat().st_mode & 0o777


def test_the_cleared_head_has_one_name():
    """Stores do not know views: what moves the head is named in both."""
    assert index_making._CLEARED == CLEARED
