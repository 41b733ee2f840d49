"""Logs full of what is no record: bounded memory and time, the same answer each time, never a crash."""

from __future__ import annotations

import json
import warnings

import pytest

import ledger
from ledger.errors import DamageWarning, StoreVersion
from ledger.stores.folder import FolderStore
from tests.hostile.bombs import DEEP, bomb, measured
from tests.records import oracle
from tests.stores.support import Recorded, Unflushed, check_seals, foreign, log_path, stop, turns

GOOD = foreign("good", 2)
BOM = b"\xef\xbb\xbf"
IS_RECORD = b'{"functai_conversation":1,"kind":"stop","at":"2026-01-01T00:00:00.000000Z",'

NO_RECORDS = {
    "100,000 brackets open": b"[" * DEEP,
    "100,000 braces open": b'{"a":' * DEEP,
    "100,000 lists": b"[" * DEEP + b"]" * DEEP,
    "a record 100,000 deep": IS_RECORD + b'"turn":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "a million digits": b"9" * 1_000_000,
    "a record of a million digits": IS_RECORD + b'"turn":"x","n":0.' + b"9" * 1_000_000 + b"e9999}",
    "a mark before a record": BOM + GOOD[:-1],
    "a zero byte before": b"\0" + GOOD[:-1],
    "a zero byte inside": GOOD[:40] + b"\0" + GOOD[40:-1],
    "a zero byte after": GOOD[:-1] + b"\0",
    "zero bytes": b"\0" * 5000,
    "UTF-16": GOOD[:-1].decode().encode("utf-16").replace(b"\n", b" "),
    "bytes that are no text": GOOD.replace(b"good", b"\xff\xfe\xc0\x80")[:-1],
    "half of a character": GOOD.replace(b"good", b"\xf0\x9f\x98")[:-1],
    "half of a surrogate pair": GOOD.replace(b"good", b"\\ud83d")[:-1],
    "a merge marker": b"<<<<<<< HEAD",
    "a merge separator": b"=======",
    "a comment": b"// nothing to see",
    "a comment after": GOOD[:-1] + b" # nothing",
    "a comma after": GOOD[:-1] + b",",
    "two records": GOOD[:-1] + GOOD[:-1],
    "a record in a list": b"[" + GOOD[:-1] + b"]",
    "a number": b"5",
    "a text": b'"good"',
    "nothing": b"null",
    "an empty list": b"[]",
    "an empty object": b"{}",
    "an object": b'{"a":1}',
    "a kind alone": b'{"kind":"turn"}',
    "a format in words": GOOD.replace(b'conversation":1', b'conversation":"1"')[:-1],
    "a format as a float": GOOD.replace(b'conversation":1', b'conversation":1.0')[:-1],
    "a format that is true": GOOD.replace(b'conversation":1', b'conversation":true')[:-1],
    "a kind that is none": GOOD.replace(b'"stop"', b"7")[:-1],
    "our own word for it": GOOD.replace(b'"stop"', b'"unreadable"')[:-1],
    "not a number": IS_RECORD + b'"turn":"x","n":NaN}',
    "infinity": IS_RECORD + b'"turn":"x","n":-Infinity}',
    "a leading zero": IS_RECORD + b'"turn":"x","n":007}',
    "single quotes": GOOD.replace(b'"', b"'")[:-1],
    "a seal and nothing else": b'{,"seq":2,"ledger":["1/1","AAAAAAAAAAAAAAAAAAAAAA","AAAAAAAAAAAAAAAAAAAAAA"]}',
    "a seal of a batch that is none": GOOD[:-2]
    + b',"seq":2,"ledger":["3/2","AAAAAAAAAAAAAAAAAAAAAA","AAAAAAAAAAAAAAAAAAAAAA"]}}',
}


@pytest.mark.parametrize("what", NO_RECORDS)
def test_a_line_that_is_no_record(tmp_path, what):
    """Whatever the bytes of a line are, it keeps its place as unreadable, is reported, and hurts no other."""
    store = FolderStore(tmp_path, calls=Unflushed())
    store.append("c", [stop("a")])
    with log_path(tmp_path).open("ab") as file:
        file.write(NO_RECORDS[what] + b"\n")
    store.append("c", [stop("b")])

    for opened in (store, FolderStore(tmp_path)):
        assert turns(opened.read("c")) == ["a", None, "b"]
        assert [type(found).__name__ for found in opened.scan("c")] == [
            "Stop",
            "Unreadable",
            "Stop",
        ]
        assert opened.read("c")[1] == {"kind": "unreadable", "seq": 2}
    assert [found.seq for found in store.damage("c")] == [2]
    chat = ledger.open("c", store=FolderStore(tmp_path))
    with pytest.warns(DamageWarning):
        chat.record("a question", "an answer")


READ_AS_THEY_ARE = {
    "CR before LF": (GOOD[:-1] + b"\r\n", "good"),
    "spaces after": (GOOD[:-1] + b" \t \n", "good"),
    "spaces before": (b"   " + GOOD, "good"),
    "blank lines around": (b"\n \t\n" + GOOD + b"\r\n\x0b\n", "good"),
    "the last of two equal keys": (GOOD.replace(b'"turn"', b'"turn":"bad","turn"'), "good"),
    "the last of two kinds": (GOOD.replace(b'"kind"', b'"kind":"novel","kind"'), "good"),
    "the last of two formats": (
        GOOD.replace(b'"kind"', b'"functai_conversation":1,"kind"'),
        "good",
    ),
    "an integer beyond 64 bits": (GOOD.replace(b'"seq"', b'"n":%d,"seq"' % 10**30), "good"),
    "depth 150": (GOOD.replace(b'"seq"', b'"n":%b,"seq"' % (b"[" * 150 + b"]" * 150)), "good"),
    "line separators in a text": (foreign("a\u2028b\u2029c\u0085d", 2), "a\u2028b\u2029c\u0085d"),
    "a zero in a text": (GOOD.replace(b"good", b"a\\u0000b"), "a\0b"),
    "a mark in a text": (GOOD.replace(b"good", BOM + b"x"), "\ufeffx"),
}


@pytest.mark.parametrize("what", READ_AS_THEY_ARE)
def test_an_odd_line_that_is_a_record(tmp_path, what):
    """What any JSON reader takes for a record is one, the same to read and to scan; ours seal it."""
    line, expected = READ_AS_THEY_ARE[what]
    store = FolderStore(tmp_path, calls=Unflushed())
    store.append("c", [stop("a")])
    with log_path(tmp_path).open("ab") as file:
        file.write(line)
    store.append("c", [stop("b")])

    assert turns(store.read("c")) == ["a", expected, "b"]
    assert [found.turn for found in store.scan("c")] == ["a", expected, "b"]
    assert store.damage("c") == []
    assert store.verify("c").counts == {"sealed": 2, "unsealed": 1}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_log_in_another_encoding(tmp_path, encoding):
    """A whole log that an editor saved otherwise is damage from its first line on; it opens, and says so."""
    store = FolderStore(tmp_path)
    store.append("c", [stop("a")])
    store.append("c", [stop("b")])
    text = log_path(tmp_path).read_text()
    log_path(tmp_path).write_text(text, encoding=encoding)

    found = FolderStore(tmp_path).read("c")

    assert turns(found)[0] is None
    assert FolderStore(tmp_path).verify("c").damaged
    if encoding == "utf-8-sig":
        assert turns(found) == [None, "b"]


def test_a_log_with_other_line_ends(tmp_path):
    """A log that a tool gave CR LF ends reads whole, and its seals still check."""
    store = FolderStore(tmp_path)
    store.append("c", [stop("a")])
    store.append("c", [stop("b"), stop("d")])
    data = log_path(tmp_path).read_bytes()
    log_path(tmp_path).write_bytes(data.replace(b"\n", b"\r\n"))
    opened = FolderStore(tmp_path)

    assert turns(opened.read("c")) == ["a", "b", "d"]
    assert opened.append("c", [stop("e")]) == 4
    assert turns(FolderStore(tmp_path).read("c")) == ["a", "b", "d", "e"]
    assert opened.verify("c").counts == {"sealed": 4}


@pytest.mark.parametrize("zeros", [1, 100, 5000])
def test_zero_bytes_at_the_end(tmp_path, zeros):
    """A length that outlived its bytes, as after a loss of power, is a torn tail and is set aside."""
    store = FolderStore(tmp_path)
    store.append("c", [stop("a")])
    before = log_path(tmp_path).read_bytes()
    log_path(tmp_path).write_bytes(before + b"\0" * zeros)

    assert turns(FolderStore(tmp_path).read("c")) == ["a"]
    assert FolderStore(tmp_path).verify("c").torn_bytes == zeros
    assert FolderStore(tmp_path).append("c", [stop("b")]) == 2

    check_seals(log_path(tmp_path).read_bytes())
    assert log_path(tmp_path).with_name("c.torn-1").read_bytes() == b"\0" * zeros


def test_bytes_of_another_file_at_the_end(tmp_path):
    """What a disk gave back of somebody else's file, without a line feed, is set aside and not glued to."""
    store = FolderStore(tmp_path)
    store.append("c", [stop("a")])
    with log_path(tmp_path).open("ab") as file:
        file.write(b"\x7fELF\x02" + bytes(range(256)).replace(b"\n", b""))

    assert store.append("c", [stop("b")]) == 2
    assert turns(FolderStore(tmp_path).read("c")) == ["a", "b"]


# -- newer formats ---------------------------------------------------------------------------------


def newer(name: str, seq: int) -> bytes:
    """Return a line of format 2."""
    return foreign(name, seq).replace(b'conversation":1', b'conversation":2')


def later(name):
    """Return a record of format 2."""
    return {**stop(name), "functai_conversation": 2}


def written(*records):
    """Return the log of some records as a version of this library writes it that knows format 2."""
    log = oracle.Log("c")
    for record in records:
        log.ours([json.dumps(record, separators=(",", ":")).encode()], [bytes(16)])
    return log.data


@pytest.mark.parametrize("before", [1, 3])
@pytest.mark.parametrize("size", [10, 70_000])
@pytest.mark.parametrize("sealed", [True, False])
def test_a_newer_record_at_the_end_refuses_a_cold_append(tmp_path, before, size, sealed):
    """However large the last lines are, a fresh store finds the last record to be of a newer format."""
    store = FolderStore(tmp_path, calls=Unflushed())
    for i in range(before):
        store.append("c", [stop(f"{i}" * size)])
    if sealed:
        log_path(tmp_path).write_bytes(
            written(*(stop(f"{i}" * size) for i in range(before)), later("n" * size))
        )
    else:
        with log_path(tmp_path).open("ab") as file:
            file.write(newer("n" * size, before + 1))
    kept = log_path(tmp_path).read_bytes()

    with pytest.raises(StoreVersion):
        FolderStore(tmp_path).append("c", [stop("b")])

    assert log_path(tmp_path).read_bytes() == kept
    assert [found["seq"] for found in FolderStore(tmp_path).read("c")] == [*range(1, before + 2)]


def test_a_newer_record_far_from_the_end(tmp_path):
    """A store that read it refuses to append; a fresh one looks at the end only, as its page says."""
    FolderStore(tmp_path).adopt("c", written(later("n"), *(stop("x" * 50) for _ in range(1000))))
    knows = FolderStore(tmp_path)
    assert knows.read("c")[0]["functai_conversation"] == 2

    with pytest.raises(StoreVersion):
        knows.append("c", [stop("b")])
    assert FolderStore(tmp_path).append("c", [stop("b")]) == 1002
    with pytest.raises(StoreVersion):
        knows.append("c", [stop("b")])


# -- size ------------------------------------------------------------------------------------------

SCALE = 16_000_000
"""How large the bombs are here, in bytes. `tools/soak hostile` takes 100 MB and a million records."""


@pytest.mark.parametrize("kind", ["no end", "no end and nothing else", "a record", "no record"])
def test_memory_is_bounded_by_the_largest_line(tmp_path, kind):
    """A huge line costs each call a few times its own length, also when it never ends."""
    bomb(tmp_path, kind, SCALE)

    for call, grown in measured(tmp_path, ["read", "scan", "verify", "list", "append"]).items():
        assert grown < 4.5 * SCALE + 8_000_000, call


def test_a_large_record_costs_a_few_times_its_size(tmp_path):
    """Reading a record of ours takes its own size three times (its result is one), checking it twice."""
    bomb(tmp_path, "our record", SCALE)

    for call, grown in measured(tmp_path, ["read", "scan", "verify", "append"]).items():
        assert grown < (3.2 if call in ("read", "scan") else 2.5) * SCALE + 2_000_000, call


def test_a_long_log_is_not_read_to_append_or_to_read_its_end(tmp_path):
    """Appending, reading the end and waiting read some blocks of a long log, and verify little memory."""
    bomb(tmp_path, "records", SCALE)
    size = log_path(tmp_path).stat().st_size
    assert size > 10_000_000
    count = int(FolderStore(tmp_path).read_end("c"))

    for work in (
        lambda store: store.append("c", [stop("x")]),
        lambda store: store.append("c", [stop("x")], expect=count + 1),
        lambda store: store.read("c", count),
        lambda store: store.scan("c", count - 5),
        lambda store: store.wait("c", count + 2, 0),
        lambda store: store.conversations(),
    ):
        calls = Recorded()
        work(FolderStore(tmp_path, calls=calls))
        assert calls.bytes_read() < 1_000_000

    assert measured(tmp_path, ["verify"])["verify"] < 12_000_000


def test_a_long_log_of_another_writer_costs_its_own_size(tmp_path):
    """Lines that no seal covers are held until one does: memory for a few times the log, and no more."""
    bomb(tmp_path, "foreign records", SCALE)

    for call, grown in measured(tmp_path, ["verify", "append"]).items():
        assert grown < 6 * SCALE, call
    assert FolderStore(tmp_path).verify("c").counts["sealed"] == 1


def test_a_conversation_of_bombs_is_listed_with_the_others(tmp_path):
    """What a hostile log holds is told in a warning; the store lists it and its neighbours."""
    for name in ("good", "c"):
        ledger.open(name, store=tmp_path).record("a question", "an answer")
    with log_path(tmp_path).open("ab") as file:
        for line in NO_RECORDS.values():
            file.write(line + b"\n")

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        chats = [
            ledger.open(name, store=tmp_path) for name in FolderStore(tmp_path).conversations()
        ]
        assert [chat.head.result for chat in chats] == ["an answer"] * 2

    assert [str(warning.message).split(":")[0] for warning in told] == ["conversation c"]
