"""What every store of ours does alike."""

from __future__ import annotations

import sys
import threading
import types

import pytest

from ledger.errors import (
    ConversationIdInvalid,
    LedgerError,
    RecordInvalid,
    StoreConflict,
    StoreGone,
)
from ledger.records import kinds
from ledger.stores.base import LedgerStore, Position, Store
from ledger.stores.folder import FolderStore
from ledger.stores.memory import MemoryStore
from tests.stores.support import AT, check_seals, foreign, stop, turns
from tests.testing.sql_places import open_sql, postgres_place, sqlite_place


@pytest.fixture(params=["memory", "folder", "sqlite", "postgres"])
def store(request, tmp_path):
    """Return an empty store of each kind."""
    made = {
        "memory": MemoryStore,
        "folder": lambda: FolderStore(tmp_path / "store"),
        "sqlite": lambda: open_sql(sqlite_place(tmp_path)),
        "postgres": lambda: open_sql(postgres_place()),
    }
    with made[request.param]() as store:
        yield store


def test_is_a_store(store):
    """Ours are stores by the protocol, and say what an append has reached."""
    checked: LedgerStore = store
    assert isinstance(checked, Store)
    assert (store.durability, store.persistent) in (("memory", False), ("disk", True))


def test_append_numbers_and_read_returns(store):
    """Records come back in order with their places, and nothing else is added."""
    assert store.append("c", [stop("a"), stop("b")]) == 2
    assert store.append("c", [stop("d")]) == 3

    assert store.read("c") == [
        {**stop(name), "seq": seq} for seq, name in enumerate(["a", "b", "d"], 1)
    ]
    assert turns(store.read("c", 2)) == ["d"]
    assert store.read("c", 3) == []


def test_bytes_are_sealed(store):
    """The kept bytes are sealed lines, each by the letter of the contract."""
    store.append("c", [stop("a"), stop("ü\u2028")])
    store.append("c", [stop("b")])

    check_seals(store.raw("c"))


def test_scan_says_what_read_says(store):
    """Structs and dicts of the same log have the same kinds, places and order."""
    other = {"functai_conversation": 1, "kind": "novel", "at": AT, "x": [1]}
    newer = foreign("z", 3).replace(b'conversation":1', b'conversation":2')
    store.append("c", [stop("a"), other])
    data = store.raw("c")
    store.delete("c")
    store.adopt("c", data + newer)

    structs = store.scan("c")

    assert [type(s) for s in structs] == [kinds.Stop, kinds.Other, kinds.Other]
    assert [s.seq for s in structs] == [1, 2, 3]
    assert structs == [kinds.of(record) for record in store.read("c")]
    assert structs.position == store.read("c").position == 3


def test_given_places_are_ignored(store):
    """A `seq` or `ledger` in a record is the store's to give, and `ledger` is not handed out."""
    store.append("c", [{**stop("a"), "seq": 9, "ledger": ["1/1", None, "x"]}])

    assert store.read("c") == [{**stop("a"), "seq": 1}]


def test_expect_refuses_and_changes_nothing(store):
    """An append that expects another count is refused, naming both, and adds nothing."""
    store.append("c", [stop("a")])
    before = store.raw("c")

    with pytest.raises(StoreConflict) as caught:
        store.append("c", [stop("b")], expect=0)

    assert (caught.value.expected, caught.value.found) == (0, 1)
    assert store.raw("c") == before
    assert store.append("c", [stop("b")], expect=1) == 2


def test_appending_nothing(store):
    """An append of no records checks `expect`, returns the count, and makes no conversation."""
    assert store.append("c", [], expect=0) == 0
    assert store.conversations() == []
    position = store.append("c", [stop("a")])
    assert store.append("c", []) == position
    assert store.append("c", [], expect=position).incarnation == position.incarnation
    with pytest.raises(StoreConflict):
        store.append("c", [], expect=2)


def test_batch_is_all_or_none(store):
    """A record that cannot be kept refuses its whole batch."""
    with pytest.raises(RecordInvalid):
        store.append("c", [stop("a"), {**stop("b"), "turn": float("nan")}])

    assert store.read("c") == []
    assert store.conversations() == []


def test_positions_tell_incarnations_apart(store):
    """After delete and making anew, an old position conflicts and is gone, at the same count."""
    old = store.append("c", [stop("a")])
    assert store.delete("c")
    new = store.append("c", [stop("b")])

    assert (old, new) == (1, 1)
    with pytest.raises(StoreConflict) as caught:
        store.append("c", [stop("x")], expect=old)
    assert caught.value.expected == caught.value.found == 1
    with pytest.raises(StoreGone):
        store.read("c", old)
    assert store.read("c", 1) == []
    assert store.append("c", [stop("x")], expect=int(old)) == 2
    assert turns(store.read("c", new)) == ["x"]


def test_position_survives_reading_and_appending(store):
    """Positions of append, read, scan and an empty read are one and the same."""
    given = store.append("c", [stop("a"), stop("b")])

    for found in (store.read("c"), store.scan("c"), store.read("c", given), store.read("c", 1)):
        assert isinstance(found.position, Position)
        assert found.position == given
        assert found.position.incarnation == given.incarnation
    at, salt = given.incarnation
    assert at == AT
    assert len(salt) == 22
    assert store.read("none").position.incarnation is None


def test_beyond_the_end_is_gone(store):
    """Reading after a place that the log does not have says so."""
    store.append("c", [stop("a")])

    with pytest.raises(StoreGone) as caught:
        store.read("c", 2)
    assert (caught.value.after, caught.value.found) == (2, 1)
    with pytest.raises(StoreGone):
        store.read("none", 1)
    with pytest.raises(ValueError, match="negative"):
        store.read("c", -1)


def test_delete(store):
    """Deleting says whether there was a conversation, and leaves the others."""
    store.append("c", [stop("a")])
    store.append("d", [stop("a")])

    assert store.delete("c")
    assert not store.delete("c")
    assert not store.delete("never")
    assert store.read("c") == []
    assert store.conversations() == ["d"]


def test_conversations_are_sorted(store):
    """The ids of the conversations that hold a record, sorted."""
    for name in ("b", "B", "a.b", "0"):
        store.append(name, [stop("x")])

    assert store.conversations() == ["0", "B", "a.b", "b"]


UNSAFE = [
    *(
        "",
        ".",
        "..",
        ".a",
        "-a",
        "_a",
        "a/b",
        "/etc/x",
        "../x",
        "a/../b",
        "a\\b",
        "C:\\x",
        "C:x",
        "a:b",
    ),
    *("a b", " a", "a ", "a\n", "\na", "a\0b", "a\tb", "%2e%2e", "a%2fb", "~a", "$a", "a;b", "a*"),
    *("é", "e\u0301", "\uff41", "\u0430", "a\u200b", "\u202ea", "\U0001f600", "\ud800", "\u0661"),
    *("a" * 201, "a" * 100_000, None, 1, b"a", ["a"]),
]


@pytest.mark.parametrize("name", UNSAFE, ids=lambda name: ascii(name)[:20])
def test_unsafe_ids_are_refused_everywhere(store, name):
    """An id that is no safe file name is refused at every entrance."""
    for call in (
        lambda: store.append(name, [stop("a")]),
        lambda: store.append(name, []),
        lambda: store.read(name),
        lambda: store.scan(name),
        lambda: store.wait(name, 0, 0),
        lambda: store.delete(name),
        lambda: store.raw(name),
        lambda: store.adopt(name, b"x"),
        lambda: store.verify(name),
    ):
        with pytest.raises(ConversationIdInvalid):
            call()


@pytest.mark.parametrize(
    "name", ["a" * 200, "a.jsonl", "a.lock", "a.torn-1", "CON", "nul.txt", "a."]
)
def test_odd_ids_keep_apart(store, name):
    """Ids that look like side files, or that Windows reserves, are conversations of their own here."""
    store.append("a", [stop("a")])
    store.append(name, [stop("b")])

    assert turns(store.read("a")) == ["a"]
    assert turns(store.read(name)) == ["b"]
    assert store.delete("a")
    assert turns(store.read(name)) == ["b"]


def test_wait_wakes_for_an_append(store):
    """A waiting thread wakes at an append of this process; at the end of its time it says no."""
    position = store.append("c", [stop("a")])
    assert store.wait("c", position, 0.01) is False
    assert store.wait("c", 0, 60) is True
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(store.wait("c", position, 60)))
    waiting.start()
    store.append("other", [stop("x")])

    store.append("c", [stop("b")])
    waiting.join(20)

    assert answers == [True]


def test_wait_notices_delete_and_another_incarnation(store):
    """A conversation that was deleted, or made anew with as many records, is not where it was."""
    position = store.append("c", [stop("a")])
    store.delete("c")
    assert store.wait("c", position, 0) is True
    store.append("c", [stop("b")])

    assert store.wait("c", position, 0) is True
    assert store.wait("c", int(position), 0) is False


def test_raw_and_adopt_copy_a_log_exactly(store):
    """A log put in under its id elsewhere is the same bytes, position and records."""
    position = store.append("c", [stop("a"), stop("b")])
    data, records = store.raw("c"), store.read("c")
    with pytest.raises(StoreConflict):
        store.adopt("c", data)
    store.delete("c")

    adopted = store.adopt("c", data)

    assert (adopted, adopted.incarnation) == (position, position.incarnation)
    assert store.raw("c") == data
    assert store.read("c") == records
    assert store.append("c", [stop("d")], expect=position) == 3
    assert store.verify("c").counts == {"sealed": 3}
    assert store.raw("none") == b""
    assert store.adopt("empty", b"") == 0
    assert store.conversations() == ["c"]


def test_records_are_copies(store):
    """What the caller does to a record after an append, or to one it read, changes nothing kept."""
    record = {**stop("a"), "list": [1]}
    store.append("c", [record])
    record["list"].append(2)
    store.read("c")[0]["list"].append(3)

    assert store.read("c")[0]["list"] == [1]


def test_threads_get_one_place_each(store):
    """Sixteen threads that use a new store at once each get places of their own."""
    barrier = threading.Barrier(16)
    places: list[int] = []

    def work(name: int) -> None:
        barrier.wait()
        for i in range(4):
            places.append(store.append("c", [stop(f"{name}-{i}")]))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(places) == list(range(1, 65))
    assert len(set(turns(store.read("c")))) == 64


def test_any_stack_depth(store):
    """What can be written can be read and written where the caller's stack is nearly used up."""
    deep: list = []
    for _ in range(150):
        deep = [deep]
    record = {**stop("a"), "deep": deep}
    store.adopt("c", foreign("f", 1))

    def down(left: int):
        if left:
            return down(left - 1)
        store.append("c", [record])
        return store.read("c"), store.scan("c")

    frames = 0
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        frame, frames = frame.f_back, frames + 1
    plain, structs = down(sys.getrecursionlimit() - frames - 60)

    assert plain[1]["deep"] == deep
    assert [s.seq for s in structs] == [1, 2]
    assert store.read("c") == plain


class Text(str):
    """A subclass of str."""


REFUSED = {
    "nan": float("nan"),
    "infinity": float("inf"),
    "beyond 2^53": 2**53,
    "many digits": 10**400,
    "bytes": b"x",
    "set": {1},
    "tuple": (1,),
    "object": object(),
    "int key": {1: "a"},
    "surrogate": "\ud800",
    "surrogate key": {"\udfff": 1},
    "str subclass": Text("x"),
    "reserved key": {"$attachment": 1},
}
KEPT = {
    "nul": "\x00",
    "line ends": "\r\n\u2028\u2029\u0085",
    "bom": "\ufeff",
    "emoji": "👩‍👩‍👧",
    "rtl": "\u202eabc\u05d0",
    "minus zero": -0.0,
    "float": 1.0,
    "small": 5e-324,
    "large": 1.7976931348623157e308,
    "2^53 - 1": 2**53 - 1,
    "empty": ["", {}, [], None, True, False],
    "looks sealed": ',"seq":1,"ledger":["1/1","' + "A" * 22 + '","' + "A" * 22 + '"]}',
}


@pytest.mark.parametrize("name", REFUSED)
def test_values_that_are_refused(store, name):
    """A value that would come back as another is refused with its path, and nothing is stored."""
    with pytest.raises(RecordInvalid) as caught:
        store.append("c", [{**stop("a"), "x": [REFUSED[name]]}])

    assert caught.value.path.startswith("x[0]")
    assert store.conversations() == []


@pytest.mark.parametrize("name", KEPT)
def test_values_that_are_kept(store, name):
    """Every legal value comes back equal, of the same type, from bytes with one line feed a line."""
    store.append("c", [{**stop("a"), "x": KEPT[name]}])

    found = store.read("c")[0]["x"]

    assert repr(found) == repr(KEPT[name])
    assert store.raw("c").count(b"\n") == 1
    for separator in ("\u2028", "\u2029", "\u0085"):
        assert separator.encode() not in store.raw("c")


def test_damage_reads_alike(tmp_path):
    """Every verdict of a damaged, mixed and torn log is the same in both stores."""
    folder, memory = FolderStore(tmp_path), MemoryStore()
    folder.append("c", [stop("a"), stop("b")])
    folder.append("c", [stop("d")])
    good = folder.raw("c").split(b"\n")[:-1]
    logs = [
        b"\n".join([*good[:2], good[2].replace(b'"d"', b'"e"')]) + b"\n",
        good[0] + b"\n",
        good[0] + b"\n" + foreign("f", 2) + b"\n  \n[]\n3\n{}\nnull\nxx\n" + good[2],
        b"\n".join([good[0], *good]) + b"\n",
        b"\n".join([good[0], good[2]]) + b"\n{torn",
        b"\r\n".join(good) + b"\r\n",
        b"\xef\xbb\xbf" + good[0] + b"\n\xff\xfe\n" + b"\0" * 9 + b"\n",
    ]
    for number, data in enumerate(logs):
        name = f"log-{number}"
        position = folder.adopt(name, data)
        assert memory.adopt(name, data) == position
        for read in ("read", "scan"):
            for after in range(position + 1):
                assert getattr(folder, read)(name, after) == getattr(memory, read)(name, after)
        assert folder.verify(name) == memory.verify(name)
        for store in (folder, memory):
            assert store.append(name, [stop("next")], expect=position) == position + 1
        assert turns(folder.read(name)) == turns(memory.read(name))


def test_errors_are_ours(store):
    """What a store raises on purpose carries a stable code."""
    store.append("c", [stop("a")])
    with pytest.raises(LedgerError) as caught:
        store.append("c", [stop("b")], expect=7)
    assert caught.value.code == "store-conflict"


def test_with_statement(store):
    """A store can be left and used again: nothing is held open."""
    with store as inside:
        inside.append("c", [stop("a")])
    assert turns(store.read("c")) == ["a"]
    assert store.append("c", [stop("b")]) == 2
