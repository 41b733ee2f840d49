"""Made-up exports of any size; what is in them was said by nobody."""

from __future__ import annotations

import json
import os
import random
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

WORDS = ("alpha", "beta", "gamma", "delta", "code", "test", "file", "error", "parse", "build")
START = 1_700_000_000


class Chance:
    """Text and ids that are the same in every run."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def words(self, count: int) -> str:
        """Return some words."""
        return " ".join(self._random.choices(WORDS, k=count))

    def id(self) -> str:
        """Return a UUID."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def between(self, least: int, most: int) -> int:
        """Return a number."""
        return self._random.randint(least, most)


# -- ChatGPT ---------------------------------------------------------------------------------------


def chatgpt_talk(number: int, *, longer: bool) -> dict[str, Any]:
    """Return a conversation of ChatGPT's export: some 20 exchanges, one answer in ten made twice."""
    chance = Chance(number)
    clock = float(START + number * 3600)
    mapping: dict[str, Any] = {
        "root": {"id": "root", "message": None, "parent": None, "children": []}
    }
    at = "root"

    def say(parent: str, role: str, words: int) -> str:
        nonlocal clock
        clock += 1
        id = chance.id()
        message = {
            "id": id,
            "author": {"role": role, "name": None, "metadata": {}},
            "create_time": clock,
            "update_time": None,
            "content": {"content_type": "text", "parts": [chance.words(words)]},
            "status": "finished_successfully",
            "end_turn": role == "assistant" or None,
            "weight": 1.0,
            "metadata": {
                "model_slug": "gpt-4o",
                "request_id": chance.id(),
                "timestamp_": "absolute",
            },
            "recipient": "all",
            "channel": None,
        }
        mapping[id] = {"id": id, "message": message, "parent": parent, "children": []}
        mapping[parent]["children"].append(id)
        return id

    for _ in range(chance.between(5, 35) + longer):
        asked = say(at, "user", chance.between(5, 60))
        at = say(asked, "assistant", chance.between(50, 400))
        if chance.between(1, 10) == 1:
            at = say(asked, "assistant", chance.between(50, 400))
    about = {"create_time": START, "update_time": clock, "current_node": at}
    return {
        "title": f"talk {number}",
        **about,
        "mapping": mapping,
        "conversation_id": f"talk-{number}",
    }


def write_chatgpt(path: Path, talks: int, *, every: int = 0) -> None:
    """Write an export of so many conversations. Args: every: one in so many has an exchange more."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(talks):
            talk = chatgpt_talk(number, longer=every > 0 and number % every == 0)
            file.write((", " if number else "[") + json.dumps(talk))
        file.write("]")
    aged(path, every)


def aged(path: Path, seconds: int) -> None:
    """Say that a file was written long ago: one that was written just now may still grow, and is read again."""
    os.utime(path, (START, START + seconds))


def talks_of(size_bytes: int) -> int:
    """Return how many conversations make an export of about this size."""
    some = [len(json.dumps(chatgpt_talk(number, longer=False))) for number in range(100)]
    return max(1, size_bytes * len(some) // sum(some))


# -- Claude Code -----------------------------------------------------------------------------------


def session(number: int, *, longer: bool) -> Iterator[dict[str, Any]]:
    """Yield the lines of a session: some 7 prompts, each with tool rounds."""
    chance = Chance(number)
    name, parent, clock = chance.id(), None, number * 3600

    def line(kind: str, message: dict[str, Any], **keys: Any) -> dict[str, Any]:
        nonlocal parent, clock
        clock += 1
        id = chance.id()
        at = datetime.fromtimestamp(START + clock, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        about = {
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/u/p",
            "version": "2.1.0",
        }
        made = {"parentUuid": parent, **about, "sessionId": name, "type": kind, "uuid": id}
        parent = id
        return {**made, "timestamp": at, "message": message, **keys}

    def reply(id: str, part: dict[str, Any]) -> dict[str, Any]:
        usage = {"input_tokens": 10, "cache_read_input_tokens": 9000, "output_tokens": 150}
        said = {"id": id, "type": "message", "role": "assistant", "model": "claude-opus-4"}
        return line("assistant", {**said, "content": [part], "usage": usage}, requestId=f"req_{id}")

    for _ in range(chance.between(3, 12) + longer):
        yield line("user", {"role": "user", "content": chance.words(20)})
        for _ in range(chance.between(0, 6)):
            id, call = f"msg_{chance.id()}", f"toolu_{chance.id()}"
            signed = {"thinking": chance.words(60), "signature": "x" * 400}
            yield reply(id, {"type": "thinking", **signed})
            asked = {"name": "Bash", "input": {"command": chance.words(10)}}
            yield reply(id, {"type": "tool_use", "id": call, **asked})
            out = chance.words(300)
            result = {"type": "tool_result", "tool_use_id": call, "content": out}
            said = {"role": "user", "content": [result]}
            yield line("user", said, toolUseResult={"stdout": out, "stderr": ""})
        yield reply(f"msg_{chance.id()}", {"type": "text", "text": chance.words(120)})


def write_sessions(folder: Path, sessions: int, *, every: int = 0) -> None:
    """Write session files as Claude Code keeps them; with `every`, only those that have grown."""
    for number in range(0, sessions, every or 1):
        path = folder / "projects" / f"-home-u-p{number % 50}" / f"{Chance(number).id()}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = session(number, longer=every > 0)
        path.write_text("".join(json.dumps(one) + "\n" for one in lines), "utf-8")
        os.utime(
            path, (START, START + every)
        )  # Long ago: what was written just now is still growing.
