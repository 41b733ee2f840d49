"""Erasing and deleting in stores: what goes, what stays, who sees it, and death at any step."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

import ledger
from ledger.errors import (
    AttachmentMissing,
    LedgerError,
    StoreConflict,
    StoreCorrupt,
    StoreFull,
    StoreGone,
    StoreIO,
    StoreLink,
    StoreVersion,
)
from ledger.records import kinds
from ledger.stores import locks
from ledger.stores.base import Position
from ledger.stores.files import Files
from ledger.stores.folder import FolderStore
from ledger.stores.memory import MemoryStore
from tests.stores.support import AT, Failing, error, log_path, run, stop
from tests.stores.test_folder_append import interrupted_at

A, B, C = (f"0199c000-0000-7000-8000-00000000000{n}" for n in "abc")
HASH = "sha256:" + "a" * 64
CANARY = "canary-5R"


@pytest.fixture(params=["memory", "folder"])
def store(request, tmp_path):
    """An empty store of each kind."""
    return MemoryStore() if request.param == "memory" else FolderStore(tmp_path / "store")


def turn(name: str, said: object = "fine", parent: str | None = None) -> list[dict]:
    """The records of a done turn."""
    keys: dict = {"turn": name, "parent": parent, "program": HASH, "inputs": {"m": said}}
    end: dict = {"turn": name, "state": "done", "outputs": {"result": said}, "attempt": 1}
    return [kinds.new("turn", AT, **keys), kinds.new("ended", AT, **end)]


def reference(sha256: str) -> dict:
    """How a value names an attachment."""
    return {"$attachment": {"sha256": sha256, "media_type": "text/plain", "size": 9}}


def bare(name: str, parent: str | None = None) -> list[dict]:
    """What `read` gives of an erased turn, without places."""
    keys: dict = {"turn": name, "parent": parent, "program": HASH, "inputs": {}}
    end: dict = {"turn": name, "attempt": 1, "state": "abandoned"}
    return [
        {**kinds.new("turn", AT, **keys), "erased": True},
        {**kinds.new("ended", AT, **end), "erased": True},
    ]


def without_seq(records: list) -> list:
    """Records without their places."""
    return [{k: v for k, v in record.items() if k != "seq"} for record in records]


def leaks(folder: Path) -> list[str]:
    """The files of a folder in which the canary stands."""
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and CANARY.encode() in path.read_bytes()
    ]


def three(store: MemoryStore | FolderStore) -> Position:
    """A conversation of three turns in a row; the second says the canary."""
    store.append("c", turn(A))
    store.append("c", turn(B, CANARY, A))
    return store.append("c", turn(C, "fine", B))


# -- what both stores do ---------------------------------------------------------------------------


def test_a_turn_is_erased_in_its_place(store):
    """Erased records keep their places and say nothing; the others, the count and the size stay."""
    end = three(store)
    before = store.raw("c")

    report = store.erase("c", B)

    assert (report.records, bool(report)) == ({"turn": 1, "ended": 1}, True)
    assert without_seq(store.read("c")) == turn(A) + bare(B, A) + turn(C, "fine", B)
    assert [record["seq"] for record in store.read("c")] == [1, 2, 3, 4, 5, 6]
    assert [type(record) for record in store.scan("c")] == [kinds.Turn, kinds.Ended] * 3
    after = store.raw("c")
    assert (len(after), CANARY.encode() in after) == (len(before), False)
    assert store.verify("c").counts == {"sealed": 4, "erased": 2}
    assert store.append("c", [stop(A)], expect=end) == 7
    assert store.verify("c").counts == {"sealed": 5, "erased": 2}


def test_erasing_again_changes_nothing(store):
    """A second erasure overwrites nothing and says so."""
    three(store)
    store.erase("c", B)
    before = store.raw("c")

    assert not store.erase("c", B)
    assert store.raw("c") == before


def test_what_is_not_there_is_not_erased(store):
    """No conversation, or no such turn: nothing is made, nothing changes."""
    assert not store.erase("c", A)
    assert store.conversations() == []
    three(store)
    before = store.raw("c")
    assert not store.erase("c", "0199c000-0000-7000-8000-0000000000ff")
    assert store.raw("c") == before


def test_expect_guards_an_erasure(store):
    """An erasure that expects another log is refused and changes nothing."""
    three(store)
    before = store.raw("c")
    for expect in (5, 7, Position(6, (AT, "x"))):
        with pytest.raises(StoreConflict):
            store.erase("c", B, expect=expect)
    with pytest.raises(StoreConflict):
        store.erase("none", B, expect=1)

    assert store.raw("c") == before
    assert store.erase("c", B, expect=6)


def test_record_1_erased_is_another_incarnation(store):
    """After record 1 is erased old positions conflict once; positions read anew are good."""
    old = three(store)
    store.erase("c", A)

    with pytest.raises(StoreConflict):
        store.append("c", [stop(B)], expect=old)
    with pytest.raises(StoreGone):
        store.read("c", old)
    new = store.read("c").position
    assert new == old
    assert store.append("c", [stop(B)], expect=new) == 7
    assert store.read("c", store.read("c").position) == []


def test_a_last_line_without_its_line_feed_is_ended_first(store):
    """A log that lacks its last line feed keeps its last record, erased or not."""
    three(store)
    data = store.raw("c")
    store.delete("c")
    store.adopt("c", data[:-1])

    store.erase("c", C)

    assert without_seq(store.read("c"))[4:] == bare(C, B)
    assert store.raw("c").endswith(b" \n")
    assert len(store.raw("c")) == len(data)


def test_void_and_other_writers_lines_go_too(store):
    """Lines of the turn in a batch that was never finished, and lines of others, are overwritten."""
    three(store)
    lines = store.raw("c").split(b"\n")[:-1]
    foreign = json.dumps(turn(C, CANARY)[1] | {"seq": 5}, separators=(",", ":")).encode()
    store.delete("c")
    store.adopt("c", b"\n".join([*lines[:3], foreign, lines[4], b""]))

    report = store.erase("c", B)
    other = store.erase("c", C)

    assert report.records == {"turn": 1}
    assert (other.records, other.unsealed) == ({"ended": 1, "turn": 1}, [4])
    assert CANARY.encode() not in store.raw("c")
    assert "suspect" not in store.verify("c").counts
    assert [record["kind"] for record in store.read("c")][2:4] == ["unreadable", "ended"]


def test_attachments_that_nothing_names_go(store):
    """An attachment goes with the last record that names it, in whatever conversation."""
    own, _ = store.blobs.put(b"own")
    shared, _ = store.blobs.put(b"shared")
    absent = "d" * 64
    store.append("c", turn(A, [reference(own), reference(shared), reference(absent)]))
    store.append("d", turn(B, reference(shared)))

    report = store.erase("c", A)

    assert (report.attachments, report.attachments_kept) == ([own], [shared])
    assert (store.blobs.has(own), store.blobs.has(shared)) == (False, True)
    assert store.erase("d", B).attachments == [shared]
    assert not store.blobs.has(shared)


def test_an_attachment_lost_before_it_is_named_is_noticed(store):
    """A record that names an attachment which was put and then removed is refused; put again it is kept."""
    sha256, _ = store.blobs.put(b"bytes")
    store.append("c", turn(A, reference(sha256)))
    store.erase("c", A)
    before = store.raw("c")

    with pytest.raises(AttachmentMissing):
        store.append("c", turn(B, reference(sha256)))

    assert store.raw("c") == before
    store.blobs.put(b"bytes")
    store.append("c", turn(B, reference(sha256)))
    assert store.blobs.get(sha256) == b"bytes"


def test_deleting_says_what_went(store):
    """A deletion is true when there was a log, and names the attachments that went and that stay."""
    own, _ = store.blobs.put(b"own")
    shared, _ = store.blobs.put(b"shared")
    store.append("c", turn(A, [reference(own), reference(shared)]))
    store.append("d", turn(B, reference(shared)))

    report = store.delete("c")

    assert bool(report)
    assert (report.attachments, report.attachments_kept) == ([own], [shared])
    assert store.conversations() == ["d"]
    assert not store.delete("c")
    assert store.append("c", turn(A)) == 2


# -- the folder ------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """A folder whose conversation c has everything that an erasure of B touches, and more."""
    store = FolderStore(tmp_path / "store")
    own, _ = store.blobs.put(CANARY.encode() + b" own")
    shared, _ = store.blobs.put(b"shared")
    store.append("c", turn(A, "fine"))
    store.append("c", turn(B, [CANARY, reference(own), reference(shared)], A))
    store.append("c", turn(C, reference(shared), B))
    entry = {"plugin": "p", "entry": "summary", "data": {"of": [B], "text": CANARY}}
    store.append("c", [kinds.new("entry", AT, **entry)])
    store.append("d", turn(A, "other"))
    with log_path(store.folder).open("ab") as file:
        line = {**turn(B, CANARY)[1], "seq": 8}
        file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        file.write(json.dumps({**stop(C), "seq": 9}).encode() + b"\n")
        file.write(json.dumps(line)[:150].encode())
    trees = Path(store.folder, "trees")
    trees.mkdir()
    for name in (f"{B}.jsonl", f"{B}.lock", f"{B}.writer", f"{C}.jsonl"):
        (trees / name).write_text(CANARY if B in name else "kept")
    side = Path(store.folder, "conversations")
    (side / "c.torn-1").write_text(f'{{"turn":"{B}","m":"{CANARY}')
    (side / "c.torn-2").write_text(f'{{"turn":"{C}","m":"kept')
    (side / "c.new-00").write_text(CANARY)
    return Path(store.folder)


EXPECTED_KINDS = ["turn", "ended", "turn", "ended", "turn", "ended", "erased", "ended", "stop"]


def check_erased(folder: Path) -> None:
    """Nothing of B is left anywhere; everything else is as it was."""
    store = FolderStore(folder)
    assert leaks(folder) == []
    records = store.read("c")
    assert [record["kind"] for record in records] == EXPECTED_KINDS
    assert without_seq(records[:4]) == turn(A, "fine") + bare(B, A)
    assert "canary" not in json.dumps(records)
    assert store.verify("c").damaged is False
    shared = records[4]["inputs"]["m"]["$attachment"]["sha256"]
    assert store.blobs.get(shared) == b"shared"
    assert [path.name for path in (folder / "trees").iterdir()] == [f"{C}.jsonl"]
    names = {path.name for path in (folder / "conversations").iterdir()}
    assert names == {"c.jsonl", "c.lock", "c.forgotten", "d.jsonl", "d.lock", "c.torn-2"}
    assert without_seq(store.read("d")) == turn(A, "other")


def test_everything_of_the_turn_goes(folder):
    """Lines, entries about it, events, torn pieces, leftovers and its attachment go; the rest stays."""
    report = FolderStore(folder).erase("c", B)

    check_erased(folder)
    assert report.records == {"turn": 1, "ended": 2, "entry": 1}
    assert (report.entries, report.unsealed) == ([7], [8])
    trees = [f"trees/{B}{end}" for end in (".jsonl", ".lock", ".writer")]
    side = ["conversations/c.new-00", "conversations/c.torn-1", "conversations/c.torn-3"]
    assert report.files == trees + side
    assert len(report.attachments) == len(report.attachments_kept) == 1


class Dying(Files):
    """File calls of a process that dies at the nth that changes something, half-way through a write."""

    def __init__(self, at: int, die) -> None:
        self.left = at
        self.die = die

    def _step(self) -> bool:
        self.left -= 1
        if self.left < 0:
            self.die()
        return self.left == 0

    def write(self, number: int, data: memoryview, offset: int) -> int:
        if self._step():
            super().write(number, data[: len(data) // 2], offset)
            self.die()
        return super().write(number, data, offset)

    def cut(self, number: int, size: int) -> None:
        if self._step():
            self.die()
        super().cut(number, size)

    def flush(self, number: int) -> None:
        if self._step():
            self.die()
        super().flush(number)

    def flush_folder(self, path: str) -> None:
        if self._step():
            self.die()
        super().flush_folder(path)

    def replace(self, path: str, name: str) -> None:
        if self._step():
            self.die()
        super().replace(path, name)

    def remove(self, path: str) -> None:
        if self._step():
            self.die()
        super().remove(path)


class Dead(BaseException):
    """The end of a process, as far as the test goes: from then on every call raises it."""


def die() -> None:
    raise Dead


def steps(folder: Path, copies: Path, work) -> list[Path]:
    """The folders that a process leaves which dies at each step of some work, the last one after it."""
    left = []
    for at in range(1, 200):
        copy = copies / str(at)
        shutil.copytree(folder, copy)
        left.append(copy)
        try:
            work(FolderStore(copy, calls=Dying(at, die)))
        except Dead:
            continue
        return left
    raise AssertionError("it never ends")


def test_death_at_any_step_of_an_erasure(folder, tmp_path):
    """Readers see the turn whole or erased, never half; once erased it stays so; the next writer ends it."""
    before = FolderStore(folder).read("c")
    left = steps(folder, tmp_path / "copies", lambda store: store.erase("c", B))
    assert len(left) > 20
    seen_erased = False
    for copy in left:
        store = FolderStore(copy)
        found = store.read("c")
        assert store.verify("c").damaged is False
        if found[: len(before)] == before:
            assert not seen_erased
            store.erase("c", B)
        else:
            seen_erased = True
            assert "canary" not in json.dumps(found)
            assert [record["kind"] for record in found] == EXPECTED_KINDS
            assert store.raw("c").count(b"\n") == 9
            assert store.append("c", []) == 9
            FolderStore(copy).append("c", [stop(C)])
            assert without_seq(store.read("c", 9)) == [stop(C)]
            data = log_path(copy).read_bytes()
            log_path(copy).write_bytes(data[: data.rfind(b"\n", 0, -1) + 1])
        check_erased(copy)
    assert seen_erased


def test_death_at_any_step_of_finishing(folder, tmp_path):
    """Who finishes an erasure may die at any step too; the next one finishes it."""
    with pytest.raises(Dead):
        FolderStore(folder, calls=Dying(12, die)).erase("c", B)
    assert (folder / "conversations" / "c.erase").exists()

    left = steps(folder, tmp_path / "copies", lambda store: store.erase("c", B))
    for copy in left:
        FolderStore(copy).erase("c", B)
        check_erased(copy)


def test_death_at_any_step_of_a_deletion(folder, tmp_path):
    """A conversation is whole or gone for readers; appending to it or deleting again finishes."""
    before = FolderStore(folder).read("c")
    left = steps(folder, tmp_path / "copies", lambda store: store.delete("c"))
    gone = False
    for number, copy in enumerate(left):
        store = FolderStore(copy)
        found = store.read("c")
        assert found in (before, [])
        assert not (gone and found)
        gone = found == []
        assert store.conversations() == (["d"] if gone else ["c", "d"])
        if gone and number % 2:
            assert store.append("c", turn(A)) == 2
            assert without_seq(store.read("c")) == turn(A)
        store.delete("c")
        assert leaks(copy) == []
        names = {path.name for path in (copy / "conversations").iterdir()}
        assert names == {"c.lock", "d.jsonl", "d.lock"}
        assert [p for p in (copy / "attachments").rglob("*") if p.is_file()] == []
        assert list((copy / "trees").iterdir()) == []
        assert without_seq(FolderStore(copy).read("d")) == turn(A, "other")
    assert gone


KILLED = f"""
sys.path.insert(0, os.getcwd())
from tests.stores.test_erase import Dying
import shutil
at = 0
while True:
    at += 1
    copy = sys.argv[2] + "/" + str(at)
    shutil.copytree(folder, copy)
    child = os.fork()
    if not child:
        kill = lambda: (os.kill(os.getpid(), signal.SIGKILL), time.sleep(60))
        FolderStore(copy, calls=Dying(at, kill)).erase("c", "{B}")
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status == 0:
        say(at)
        break
"""


def test_a_process_killed_at_any_step(folder, tmp_path):
    """A real process killed at each step leaves its locks free and an erasure that is finished or not begun."""
    copies = tmp_path / "copies"
    count = int(run(KILLED, folder, copies))

    for at in range(1, count + 1):
        store = FolderStore(copies / str(at), lock_timeout_s=2)
        begun = (copies / str(at) / "conversations" / "c.erase").exists()
        store.append("c", [])
        store.append("d", [stop(A)])
        if not begun and leaks(copies / str(at)):
            store.erase("c", B)
        store.append("c", [stop(C)])
        assert leaks(copies / str(at)) == []
        assert store.verify("c").damaged is False


@pytest.mark.parametrize("number", [5, 28])
@pytest.mark.parametrize("call", ["write", "flush", "cut", "flush_folder", "replace", "remove"])
def test_every_call_that_fails(folder, tmp_path, call, number):
    """An error at any call leaves the turn whole or erased, and the same store goes on from there."""
    codes = set()
    for at in range(40):
        copy = tmp_path / f"copy-{at}"
        shutil.copytree(folder, copy)
        calls = FailingRemoval()
        calls.fail[call] = [*([None] * at), error(number)]
        store = FolderStore(copy, calls=calls)
        try:
            store.erase("c", B)
        except LedgerError as failed:
            codes.add(failed.code)
        else:
            if calls.fail[call]:
                break
            check_erased(copy)
            continue
        assert store.verify("c").damaged is False
        store.erase("c", B)
        check_erased(copy)
    assert codes <= {"store-io", "store-full"}


class FailingRemoval(Failing):
    """The same for the calls that name and remove files."""

    def replace(self, path: str, name: str) -> None:
        self._next("replace")
        super().replace(path, name)

    def remove(self, path: str) -> None:
        self._next("remove")
        super().remove(path)


def stand(folder: Path, at: int = 12) -> Path:
    """Let an erasure of B stand unfinished. Returns the path of its plan."""
    with pytest.raises(Dead):
        FolderStore(folder, calls=Dying(at, die)).erase("c", B)
    return folder / "conversations" / "c.erase"


def test_the_plan_is_the_owners_only_and_holds_no_content(folder):
    """The plan is a file of mode 0600 that holds the turn and tombstones, and nothing that was said."""
    plan = stand(folder)

    assert stat.S_IMODE(plan.stat().st_mode) == 0o600
    assert CANARY not in plan.read_text()
    assert json.loads(plan.read_text())["turn"] == B


def test_who_cannot_remove_the_rest_still_appends(folder):
    """An append finishes the lines; what beside the log cannot be removed waits for the next writer."""
    plan = stand(folder)
    calls = FailingRemoval()
    calls.fail["remove"] = [error(5)]
    store = FolderStore(folder, calls=calls)

    store.append("c", [stop(C)])

    assert plan.exists()
    assert CANARY.encode() not in log_path(folder).read_bytes()
    store.append("c", [stop(C)])
    assert not plan.exists()
    assert leaks(folder) == []


def test_an_append_that_cannot_finish_the_lines_is_refused(folder):
    """While tombstones cannot be written, nothing is appended after them; then it is."""
    stand(folder)
    calls = FailingRemoval()
    calls.fail["write"] = [error(5)]
    store = FolderStore(folder, calls=calls)

    with pytest.raises(StoreIO):
        store.append("c", [stop(C)])

    assert store.append("c", [stop(C)]) == 10


def test_a_plan_beside_a_restored_log(folder):
    """Beside a log in which the lines lie elsewhere, the turn's are found again."""
    whole = log_path(folder).read_bytes()
    plan = stand(folder)
    lines = whole.split(b"\n")
    log_path(folder).write_bytes(b" \n" + b"\n".join(lines[:8]) + b"\n")

    store = FolderStore(folder)
    store.append("c", [])
    store.append("c", [stop(C)])

    assert not plan.exists()
    assert CANARY.encode() not in log_path(folder).read_bytes()
    # The first line is suspect: its seal covers what was put before it.
    assert [record["kind"] for record in store.read("c")][1:8] == EXPECTED_KINDS[1:8]


def test_a_plan_beside_another_log(folder):
    """A log made anew under the id, its lines as long as the old ones, is read and kept as it is."""
    plan = stand(folder)
    log_path(folder).unlink()
    other = FolderStore(folder / "other")
    own, shared = "1" * 64, "2" * 64
    other.append("c", turn(A, "fine"))
    other.append("c", turn(C, [CANARY, reference(own), reference(shared)], A))
    other.append("c", turn(A, reference(shared), B))
    data = log_path(folder / "other").read_bytes()
    log_path(folder).write_bytes(data)

    store = FolderStore(folder)
    found = store.read("c")
    store.append("c", [stop(C)])

    assert found == other.read("c")
    assert log_path(folder).read_bytes().startswith(data)
    assert not plan.exists()


def test_a_plan_that_does_not_read(folder):
    """A plan that was damaged is not guessed at: writers refuse until a person has looked."""
    plan = stand(folder, 8)
    plan.write_text("{")

    with pytest.raises(StoreCorrupt):
        FolderStore(folder).append("c", [stop(C)])
    assert len(FolderStore(folder).read("c")) == 9
    plan.write_text('{"turn_ledger_erase":2,"conversation":"c","turn":null}')
    with pytest.raises(StoreVersion):
        FolderStore(folder).read("c")
    plan.unlink()
    assert FolderStore(folder).erase("c", B)
    assert CANARY.encode() not in log_path(folder).read_bytes()


def test_what_a_flush_still_owes_is_not_brought_back(tmp_path):
    """Bytes that a store writes again after a failed flush do not undo an erasure in between."""
    calls = Failing()
    store = FolderStore(tmp_path, calls=calls)
    store.append("c", turn(A))
    calls.fail["flush"] = [error(5)]
    with pytest.raises(LedgerError):
        store.append("c", turn(B, CANARY, A) + turn(C, "kept"))
    FolderStore(tmp_path).erase("c", B)

    store.append("c", [stop(A)])

    assert leaks(tmp_path) == []
    assert without_seq(store.read("c"))[2:6] == bare(B, A) + turn(C, "kept")
    assert store.verify("c").counts == {"sealed": 5, "erased": 2}


def test_a_live_store_sees_an_erasure_by_another(tmp_path):
    """A store that remembers the log reads the erased turn, appends after it, and its seals check."""
    live, other = FolderStore(tmp_path), FolderStore(tmp_path)
    end = three(live)
    live.read("c")
    other.erase("c", B)

    assert without_seq(live.read("c"))[2:4] == bare(B, A)
    assert live.append("c", [stop(A)], expect=end) == 7
    end = live.append("c", turn(A, "last"))
    other.erase("c", A)
    with pytest.raises(StoreGone):
        live.read("c", end)
    assert live.read("c") == FolderStore(tmp_path).read("c")
    assert live.verify("c").counts == {"sealed": 3, "erased": 6}


def test_a_newer_log_is_not_erased(tmp_path):
    """A log that holds records of a newer format is refused, and stays as it is."""
    store = FolderStore(tmp_path)
    three(store)
    with log_path(tmp_path).open("ab") as file:
        file.write(b'{"functai_conversation":2,"kind":"x","at":"%s","seq":9}\n' % AT.encode())
    before = store.raw("c")

    with pytest.raises(StoreVersion):
        FolderStore(tmp_path).erase("c", B)
    assert store.raw("c") == before


def test_links_are_not_followed(folder, tmp_path):
    """A planted link in place of the folder of events or attachments is refused, its target untouched."""
    target = tmp_path / "elsewhere"
    shutil.copytree(folder / "trees", target)
    shutil.rmtree(folder / "trees")
    (folder / "trees").symlink_to(target)

    with pytest.raises(StoreLink):
        FolderStore(folder).erase("c", B)

    assert (target / f"{B}.jsonl").exists()
    (folder / "trees").unlink()
    (folder / "trees").mkdir()
    (folder / "trees" / f"{C}.jsonl").touch()
    FolderStore(folder).append("c", [])
    FolderStore(folder).erase("c", B)
    check_erased(folder)


def test_a_turn_whose_id_is_a_path(tmp_path):
    """An id that could leave the folder removes no file anywhere."""
    store = FolderStore(tmp_path / "store")
    victim = tmp_path / "victim.jsonl"
    victim.touch()
    (tmp_path / "store" / "trees").mkdir(parents=True)
    store.append("c", turn("../../victim", "x"))

    assert store.erase("c", "../../victim").records == {"turn": 1, "ended": 1}
    store.append("c", turn("../../victim", "x"))
    store.delete("c")
    assert victim.exists()


# -- attachments, with others at work --------------------------------------------------------------


def test_a_log_that_cannot_be_read_keeps_every_attachment(tmp_path):
    """Where a log cannot be looked into, nobody knows what it names, and attachments stay."""
    store = FolderStore(tmp_path)
    sha256, _ = store.blobs.put(b"bytes")
    store.append("c", turn(A, reference(sha256)))
    log_path(tmp_path, "d").symlink_to(tmp_path / "nowhere")

    report = store.erase("c", A)

    assert (report.attachments, report.attachments_kept) == ([], [sha256])
    assert store.blobs.has(sha256)


def test_a_name_that_lies_across_two_parts_is_seen(tmp_path, monkeypatch):
    """Attachments named anywhere in a long log are found, wherever the parts it is read in end."""
    monkeypatch.setattr("ledger.stores.sweeping._CHUNK", 600)
    store = FolderStore(tmp_path)
    names = [store.blobs.put(b"%d" % n)[0] for n in range(30)]
    store.append("c", turn(A, [reference(sha256) for sha256 in names]))
    for n, sha256 in enumerate(names):
        store.append("d", turn(B, ["x" * (n * 37 % 211), reference(sha256)]))

    assert store.erase("c", A).attachments_kept == names


def test_an_append_that_names_an_attachment_meanwhile_keeps_it(tmp_path):
    """A record appended after the logs were looked through, before the lock, keeps its attachment."""
    store, other = FolderStore(tmp_path), FolderStore(tmp_path)
    sha256, _ = store.blobs.put(b"bytes")
    other.blobs.put(b"bytes")
    store.append("c", turn(A, reference(sha256)))
    store.append("d", turn(B))
    appended: list[bool] = []

    class Late(Files):
        def read(self, number: int, length: int, offset: int) -> bytes:
            data = super().read(number, length, offset)
            if os.path.exists(log_path(tmp_path).with_suffix(".erase")) and not appended:
                appended.append(True)
                other.append("d", turn(C, reference(sha256)))
            return data

    report = FolderStore(tmp_path, calls=Late()).erase("c", A)

    assert appended
    assert (report.attachments, report.attachments_kept) == ([], [sha256])
    assert other.blobs.get(sha256) == b"bytes"


def test_no_record_ever_names_a_lost_attachment(tmp_path):
    """While some put, append and retry and others erase, every named attachment is there."""
    stores = [FolderStore(tmp_path) for _ in range(4)]
    refused: list[BaseException] = []

    def write(number: int) -> None:
        store = stores[number]
        for n in range(12):
            name = f"0199c000-0000-7000-8000-0000000{number:02}{n:03}"
            while True:
                sha256, _ = store.blobs.put(b"the same bytes")
                try:
                    store.append(f"c{number}", turn(name, reference(sha256)))
                    break
                except AttachmentMissing as missing:
                    refused.append(missing)
            if n % 3:
                store.erase(f"c{number}", name)
            elif not store.blobs.has(sha256):
                refused.append(AssertionError("a named attachment is gone"))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not any(isinstance(found, AssertionError) for found in refused)
    for number in range(4):
        named = [r["inputs"]["m"] for r in stores[0].read(f"c{number}") if r.get("inputs")]
        assert len(named) == 4
        assert stores[0].blobs.get(named[0]["$attachment"]["sha256"]) == b"the same bytes"


def test_shared_locks_keep_out_who_wants_it_alone(tmp_path):
    """Two may share a lock; who wants it alone waits for both."""
    path = str(tmp_path / "lock")
    one = locks.acquire(path, 0, create=True, kind=locks.SharedFile)
    two = locks.acquire(path, 0, create=True, kind=locks.SharedFile)
    with pytest.raises(LedgerError) as caught:
        locks.acquire(path, 0, create=True)
    assert caught.value.code == "store-busy"
    one.close()
    two.close()
    # A process that somebody else forks just now holds what was open until it is another program.
    locks.acquire(path, time.monotonic() + 20, create=True).close()


@pytest.mark.parametrize("at", range(9, 22))
def test_an_erasure_that_begins_while_a_log_is_read(folder, at):
    """A reader that found no plan, and then reads lines half overwritten, reads again."""
    os.utime(folder / "conversations", (1, 1))
    begun: list[int] = []

    class Meanwhile(Files):
        def read(self, number: int, length: int, offset: int) -> bytes:
            if not begun:
                begun.append(at)
                stand(folder, at)
            return super().read(number, length, offset)

    records = FolderStore(folder, calls=Meanwhile()).read("c")

    assert begun
    assert "canary" not in json.dumps(records)
    assert [record["kind"] for record in records] == EXPECTED_KINDS


def test_readers_meanwhile_see_all_or_nothing(tmp_path):
    """Readers that read while turns are erased, in many steps, see each whole or erased."""
    store = FolderStore(tmp_path)
    names = [f"0199c000-0000-7000-8000-0000000000{n:02}" for n in range(20)]
    for name in names:
        store.append("c", turn(name, [name] * 300))
        with log_path(tmp_path).open("ab") as file:
            for record in turn(name, [name] * 300):
                file.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")
    wrong: list[object] = []
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            for record in FolderStore(tmp_path).read("c"):
                said = record.get("inputs", record.get("outputs", {}))
                value = next(iter(said.values()), None)
                if record["kind"] not in ("turn", "ended") or value not in (
                    None,
                    [record["turn"]] * 300,
                ):
                    wrong.append(record)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in readers:
        thread.start()
    for name in names:
        store.erase("c", name)
    over.set()
    for thread in readers:
        thread.join()

    assert wrong == []


def test_an_interrupt_in_an_erasure(folder, tmp_path):
    """Interrupted at some line, an erasure leaves its locks free, and the same store finishes it."""
    nth, open_files = 0, len(os.listdir("/dev/fd"))
    while True:
        copy = tmp_path / f"copy-{nth}"
        shutil.copytree(folder, copy)
        store = FolderStore(copy, lock_timeout_s=2)
        raised = interrupted_at(nth, lambda store=store: store.erase("c", B))
        assert len(os.listdir("/dev/fd")) == open_files, nth
        assert store.verify("c").damaged is False
        store.erase("c", B)
        check_erased(copy)
        if not raised:
            break
        nth += 61
    assert nth > 600


def echo(message: str) -> str:
    return message


def test_on_a_full_disk_the_events_of_a_conversation_make_room_for_deleting_it(tmp_path):
    """What is decided has to be written down first; without events that go, it is told that there is no room."""
    calls = Failing()
    store = FolderStore(tmp_path, calls=calls)
    ledger.open("c", echo, store=store)("a")
    store.append("bare", [stop("a")])
    assert list((tmp_path / "trees").glob("*.jsonl"))

    for conversation, is_full in (("bare", True), ("c", False)):
        calls.fail["write"] = [error(errno.ENOSPC)]
        with pytest.raises(StoreFull) if is_full else nullcontext():
            assert store.delete(conversation)
        assert bool(store.read(conversation)) == is_full
    assert list((tmp_path / "trees").iterdir()) == []
