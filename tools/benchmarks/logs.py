"""Conversations to measure on: as `chat.record` would have written them, but made quickly."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import ledger
from ledger.records import codec, kinds, times
from ledger.turns.programs import recorded
from ledger.turns.world import SYSTEM

CHAT = "bench"
TEXT = "The quick brown fox jumps over the lazy dog, and then it rests. " * 6
"""384 bytes: it stands three times in a turn (asked, answered, as value), which then has 2 KB."""
ASKED_BEFORE = "asked-before"
"""The request id of the turn in the middle."""
AT_ONCE = 15
"""Turns of one append."""


def turn_records(
    turn: str, line: list[str], *, request_id: str | None = None
) -> list[dict[str, Any]]:
    """Return the records of one turn that is done, as `chat.record` writes them.

    Args: line: the turns before it, of which it was shown all; only the last two are looked at.
    """
    at = times.to_text(datetime.now(UTC))
    parent = line[-1] if line else None
    saw: list[dict[str, Any]] = [{"call": parent}] if line else []
    if len(line) > 1:
        saw.insert(0, {"saw_of": parent})
    saw_all = {"saw_all": True}
    program = recorded({"message": ""}, {"result": ""}).version
    sent: dict[str, Any] = {"parent": parent, "program": program, "inputs": {"message": TEXT}}
    sent["request_id"] = request_id
    asked = kinds.new("turn", at, turn=turn, saw=saw, **saw_all, **sent)
    answer: dict[str, Any] = {"outputs": {"result": TEXT}, "value": TEXT, "model": "m", "usage": {}}
    ended = kinds.new("ended", at, turn=turn, saw=saw, state="done", attempt=1, **answer)
    return [asked, ended]


def batches(turns: int, names: list[str]) -> Iterator[list[dict[str, Any]]]:
    """Yield the appends of a conversation, a program first; put the turns' ids into `names`."""
    program = recorded({"message": ""}, {"result": ""})
    batch = [kinds.new("program", times.to_text(datetime.now(UTC)), **program.keys())]
    for number in range(turns):
        turn = SYSTEM.turn_id()
        middle = ASKED_BEFORE if number == turns // 2 else None
        batch += turn_records(turn, names[-2:], request_id=middle)
        names.append(turn)
        if number % AT_ONCE == AT_ONCE - 1:
            yield batch
            batch = []
    if batch:
        yield batch


def make(folder: Path, turns: int) -> list[str]:
    """Make a folder store with a conversation of one line of turns; return their ids."""
    names: list[str] = []
    memory = ledger.MemoryStore()
    for batch in batches(turns, names):
        memory.append(CHAT, batch)
    with ledger.FolderStore(folder) as store:
        store.adopt(CHAT, memory.raw(CHAT))
    return names


def find_turns(folder: Path) -> None:
    """Have the conversation of a folder its index, as it would have if it had grown turn by turn."""
    ledger.open(CHAT, store=ledger.FolderStore(folder)).heads()


def log_of(folder: Path, conversation: str = CHAT) -> Path:
    """Return the file of a conversation."""
    return folder / "conversations" / f"{conversation}.jsonl"


def size_of(records: list[dict[str, Any]]) -> int:
    """Return about how many bytes records take in a log, seals included."""
    return sum(len(codec.body(record)) + 80 for record in records)
