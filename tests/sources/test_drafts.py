"""Tests of `ledger.sources.drafts`: what an import appends to a history."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import ledger
from ledger.formats import media
from ledger.formats.base import Draft, Notes, turn_id
from ledger.formats.nodes import Node
from ledger.formats.tree import Tree
from ledger.sources import drafts
from ledger.turns.log import Log

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def draft(nodes: list[Node], *raw: bytes, **keys: Any) -> Draft:
    """Return a draft of some records."""
    tree = Tree(nodes, format="f", conversation="c", notes=Notes())
    return Draft("f", "c", None, tree.turns, None, raw, Notes(), **keys)


def add(store: ledger.MemoryStore, found: Draft) -> dict[str, Any]:
    """Import a draft; return the data of its entry."""
    kept = []

    def decide(history):
        addition = drafts.addition(history, found, keeps_bytes=True, now=NOW)
        kept[:] = addition.blobs
        return addition.records

    Log(store, "c").append(decide)
    for data in kept:
        store.blobs.put(data)
    (*_, record) = (one for one in store.read("c") if one.get("entry") == "import")
    return record["data"]


def talk(count: int, *, steps: int = 0) -> list[Node]:
    """Return prompts with answers, then perhaps one with steps alone; each record used one token."""
    nodes: list[Node] = []
    for n in range(count):
        nodes.append(Node(f"p{n}", f"a{n - 1}" if n else None, "prompt", text=f"ask {n}"))
        nodes.append(Node(f"a{n}", f"p{n}", "answer", text="yes", usage={"output_tokens": 1}))
    if steps:
        nodes.append(Node("p", f"a{count - 1}", "prompt", text="work"))
    for n in range(steps):
        above = f"s{n - 1}" if n else "p"
        nodes.append(Node(f"s{n}", above, "step", usage={"output_tokens": 1}))
    return nodes


def used(store: ledger.MemoryStore) -> int:
    """Return what all turns have used."""
    turns = ledger.open("c", store=store).all_turns()
    return sum(turn.usage.get("output_tokens", 0) for turn in turns)


def test_of_a_grown_file_only_the_rest_is_kept():
    """A log that grew is kept in pieces, each of which says what it follows; nothing twice."""
    store = ledger.MemoryStore()
    first = add(store, draft(talk(1), b"one\n"))["raw"]
    second = add(store, draft(talk(2), b"one\ntwo\n"))["raw"]
    third = add(store, draft(talk(3), b"one\ntwo\n3\n", b"other"))["raw"]
    last = add(store, draft(talk(4), b"one\ntwo\n3\n"))["raw"]

    whole = first["$attachment"]
    assert second["after"] == {"sha256": whole["sha256"], "size": 4}
    assert second["rest"]["$attachment"]["size"] == 4
    assert third[0]["after"] == second["whole"]
    assert third[0]["rest"]["$attachment"]["size"] == 2
    assert third[1]["$attachment"]["media_type"] == "application/json"
    assert last["rest"] is None
    assert last["after"] == last["whole"] == third[0]["whole"]


def test_a_file_that_was_written_anew_is_kept_whole():
    """Bytes that do not begin with what was kept are kept as they are."""
    store = ledger.MemoryStore()
    add(store, draft(talk(1), b"one\n"))

    assert add(store, draft(talk(2), b"One\ntwo\n"))["raw"]["$attachment"]["size"] == 8


def test_what_a_turn_used_before_it_was_over_is_counted_once():
    """A turn imported while it ran, and again once it is done, counts each call once."""
    store = ledger.MemoryStore()
    add(store, draft(talk(1, steps=2)))
    assert used(store) == 3

    nodes = [*talk(1, steps=4), Node("a", "s3", "answer", text="done", usage={"output_tokens": 1})]
    add(store, draft(nodes))

    assert [turn.state for turn in ledger.open("c", store=store).all_turns()] == [
        "done",
        "abandoned",
        "done",
    ]
    assert used(store) == 6


def test_another_answer_takes_nothing_off_again():
    """What was counted before a turn was over is taken off its answer once, off no other answer."""
    store = ledger.MemoryStore()
    add(store, draft(talk(1, steps=2)))
    nodes = [*talk(1, steps=2), Node("a", "s1", "answer", text="done", usage={"output_tokens": 1})]
    add(store, draft(nodes))
    again = Node("b", "p", "answer", text="again", usage={"output_tokens": 1})

    add(store, draft([*nodes, again]))

    assert used(store) == 1 + 3 + 1


def test_a_turn_that_went_on_is_told():
    """More answer to a turn that is there changes nothing; the report says that there was more."""
    store = ledger.MemoryStore()
    add(store, draft(talk(1)))
    grown = draft([*talk(1), Node("more", "a0", "answer", text="and more")])

    add(store, grown)

    assert grown.notes.counts[drafts.GROWN] == 1
    assert ledger.open("c", store=store).head.result == "yes"


def test_what_was_erased_does_not_come_back_with_the_source():
    """After a turn was erased, the source's records, which still have it, are not kept again."""
    store = ledger.MemoryStore()
    add(store, draft(talk(2), b"secret"))
    chat = ledger.open("c", store=store)
    chat.forget(2)

    data = add(store, draft(talk(3), b"secret and more"))

    assert data["raw"] is None
    assert b"secret" not in store.raw("c")


def test_a_side_line_says_what_it_was_made_for():
    """The entry of a side line names the conversation, turn and call that it belongs to."""
    of = {"conversation": "main", "turn": turn_id("f", "main", "p", "a", None), "call": "call_1"}

    assert add(ledger.MemoryStore(), draft(talk(1), side_of=of))["side_of"] == of


def pictured() -> tuple[Draft, bytes]:
    """Return a draft with a picture in its last question."""
    blobs: dict[str, bytes] = {}
    nodes = talk(2)
    part = media.blob_part(b"pixels", "image/png", blobs)
    nodes[2].messages = [{"role": "user", "parts": [part]}]
    return draft(nodes, b"raw", blobs={**blobs, "0" * 64: b"else"}), b"pixels"


def test_the_bytes_that_new_turns_name_are_kept():
    """An attachment is kept with the turn that names it, and not again; others are not."""
    store = ledger.MemoryStore()
    found, pixels = pictured()
    add(store, draft(talk(1), b"raw"))

    history = Log(store, "c").read()
    more = drafts.addition(history, found, keeps_bytes=True, now=NOW)
    add(store, found)
    again = drafts.addition(Log(store, "c").read(), found, keeps_bytes=True, now=NOW)

    assert pixels in more.blobs
    assert b"else" not in more.blobs
    assert pixels not in again.blobs


def test_a_store_without_attachments_says_what_it_lost():
    """Where there is no place for bytes, that is told."""
    found, _ = pictured()

    history = Log(ledger.MemoryStore(), "c").read()
    addition = drafts.addition(history, found, keeps_bytes=False, now=NOW)

    assert [] == addition.blobs
    assert {drafts.LEFT: 1} == found.notes.counts
