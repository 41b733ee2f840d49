"""Makes a folder of the format as today's code writes it, to be frozen: `python -m tests.compat.make NAME`.

Run once for each released format, into a new folder; what is frozen is never made again.
"""

from __future__ import annotations

import json
import socket
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import ledger
from ledger import merging
from ledger.stores.folder import FolderStore

HERE = Path(__file__).resolve().parent
UNKNOWN = {"novel": {"deep": [1, 2.50, -0.0, None, "\u2028 \u0085 \0 é"]}, "": True}
"""Values whose spelling a careless reader would change."""


def ours(folder: Path) -> None:
    """Write conversations with all that this version can record."""
    store = FolderStore(folder)
    chat = ledger.open("alex", store=store)
    first = chat.record("What is 1/2 + 1/3?", "5/6", model="model-a", usage={"input_tokens": 7})
    why = chat.record("Why?", "Because.", model="model-a")
    other = chat.continue_from(first).record("Why?", "Six parts.", model="model-b")
    chat.merge([why, other], merging.pick(other))
    chat.keep_entry("ledger", "title", "Fractions \u2028 and more")
    chat.head = why
    chat.record({"a": 1, "b": [True, None, 1.5]}, {"sum": 2, "text": "\0 \u0085"}, parent=None)

    def fails(message: str) -> str:
        raise ValueError(f"told to fail: {message}")

    with suppress(ValueError):
        ledger.open("failed", fails, store=store).send("fail", request_id="r-1")
    sha256, size = store.blobs.put(b"the bytes of an attachment")
    reference = {"sha256": sha256, "media_type": "text/plain", "size": size, "name": "a.txt"}
    store.append("alex", [_entry("kept", {"file": {"$attachment": reference}})])

    forgets = ledger.open("erased", store=store)
    gone = forgets.record("a secret", "an answer")
    forgets.record("no secret", "another")
    forgets.forget(gone)

    ledger.open("torn", store=store).record("one", "1")
    ledger.open("torn", store=store).record("two", "2")
    _cut(folder, "torn", 30)

    ledger.open("void", store=store).record("one", "1")
    ledger.open("void", store=store).record("two", "2")
    _cut(folder, "void", 30)
    ledger.open("void", store=FolderStore(folder)).record("three", "3")

    ledger.open("damaged", store=store).record("one", "1")
    ledger.open("damaged", store=store).record("two", "2")
    log = folder / "conversations" / "damaged.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"one"', b'"One"', 1))


def unknown(folder: Path) -> None:
    """Write a conversation with kinds and keys that this version does not know, sealed and not."""
    store = FolderStore(folder)
    chat = ledger.open("future", store=store)
    chat.record("one", "1")
    turn, ended = (dict(record) for record in chat.store.read("future")[1:3])
    for number, record in enumerate((turn, ended)):
        record |= {
            "turn": "01a22a97-f751-7051-a503-db1839a9b96b",
            **UNKNOWN,
            f"key{number}": number,
        }
    store.append("future", [turn, ended, {**_entry("x", 1), "kind": "novel_kind", **UNKNOWN}])
    with (folder / "conversations" / "future.jsonl").open("ab") as file:
        for seq, kind in enumerate(("stop", "novel_kind", "entry"), 7):
            record = {
                **_entry("y", [seq]),
                "kind": kind,
                **UNKNOWN,
                "turn": turn["turn"],
                "seq": seq,
            }
            line = json.dumps(record, ensure_ascii=False, separators=(" , ", " :  "))
            file.write(line.replace("\u2028", "\\u2028").encode() + b"\n")
    chat.record("two", "2")


def functai(folder: Path) -> None:
    """Write a conversation with functai, as its users do."""
    from functai import stores

    from tests.adapters.functai_side import Scripted, tutor_of

    chat = tutor_of(Scripted()).conversation("alex", store=stores.FolderStore(folder))
    chat("one", request_id="r-1")
    chat("two")
    chat("three")
    here = str(HERE.parents[1]).encode()
    for events in (folder / "trees").glob("*.jsonl"):
        events.write_bytes(events.read_bytes().replace(here, b"/home/kim/chat"))


def _entry(entry: str, data: Any) -> dict[str, Any]:
    return {
        "functai_conversation": 1,
        "kind": "entry",
        "at": "2026-01-01T00:00:00.000000Z",
        "plugin": "compat",
        "entry": entry,
        "data": data,
    }


def _cut(folder: Path, conversation: str, size: int) -> None:
    log = folder / "conversations" / f"{conversation}.jsonl"
    log.write_bytes(log.read_bytes()[:-size])


def told(folder: Path) -> dict[str, Any]:
    """Return what is read from a folder: what a later version must read from it as well."""
    store = FolderStore(folder)
    return {
        conversation: {
            "turns": _turns(ledger.open(conversation, store=store)),
            "records": list(store.read(conversation)),
            "verdicts": store.verify(conversation).counts,
        }
        for conversation in store.conversations()
    }


def _turns(chat: ledger.Conversation) -> dict[str, Any]:
    head = chat.head
    return {
        "title": chat.title,
        "head": head.id if head is not None else None,
        "heads": [turn.id for turn in chat.heads()],
        "all": [
            {
                "id": turn.id,
                "parent": turn.parent.id if turn.parent is not None else None,
                "state": turn.state,
                "inputs": turn.inputs,
                "outputs": turn.outputs,
                "model": turn.model,
                "reads": [read.id for read in turn.reads],
                "saw": [seen.id for seen in turn.saw],
            }
            for turn in chat.all_turns()
        ],
    }


def main() -> None:
    """Make one folder for each writer, and beside it what was read from it."""
    warnings.simplefilter("ignore")
    socket.gethostname = lambda: "host"  # What is frozen says nothing of who made it.
    for make in (ours, unknown, functai):
        folder = HERE / f"{sys.argv[1]}-{make.__name__}"
        folder.mkdir()
        make(folder)
        text = json.dumps(told(folder), indent=1, ensure_ascii=True, sort_keys=True)
        folder.with_suffix(".json").write_text(text + "\n")


if __name__ == "__main__":
    main()
