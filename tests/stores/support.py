"""What the tests of the stores share: records, raw bytes, a dumb reading of the format, processes."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

from ledger.stores.files import Files

AT = "2026-01-01T00:00:00.000000Z"
ROOT = Path(__file__).parents[2]


def stop(name: str) -> dict:
    """Return a short record."""
    return {"functai_conversation": 1, "kind": "stop", "at": AT, "turn": name}


def foreign(name: str, seq: int) -> bytes:
    """Return a line as another implementation writes it, with its line feed."""
    return (
        f'{{"functai_conversation":1,"kind":"stop","at":"{AT}","turn":"{name}","seq":{seq}}}\n'
    ).encode()


def turns(records: list) -> list:
    """Return the names in plain records, None for an unreadable one."""
    return [record.get("turn") for record in records]


def log_path(folder: Path | str, conversation: str = "c") -> Path:
    """Return where the contract puts a conversation's log."""
    return Path(folder) / "conversations" / f"{conversation}.jsonl"


def lock_path(folder: Path | str, conversation: str = "c") -> Path:
    """Return where the contract puts a conversation's append lock."""
    return Path(folder) / "conversations" / f"{conversation}.lock"


def check_seals(data: bytes, conversation: str = "c") -> None:
    """Check every line of a log that only we wrote, by the letter of the contract."""

    def text(raw: bytes) -> str:
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    chain = text(hashlib.sha256(conversation.encode()).digest()[:16])
    assert data == b"" or data.endswith(b"\n")
    for seq, line in enumerate(data.split(b"\n")[:-1], 1):
        found = re.search(rb',"seq":(\d+),"ledger":\["(\d+)/(\d+)","([^"]{22})","', line)
        assert found is not None
        assert int(found[1]) == seq
        end = found.end() - 1
        expected = text(hashlib.sha256(chain.encode() + line[:end]).digest()[:16])
        assert line[end:] == f'"{expected}"]}}'.encode()
        chain = expected


class Recorded(Files):
    """File calls that note what was done, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple] = []

    def read(self, number: int, length: int, offset: int) -> bytes:
        data = super().read(number, length, offset)
        self.calls.append(("read", offset, len(data)))
        return data

    def write(self, number: int, data: memoryview, offset: int) -> int:
        self.calls.append(("write", offset, len(data)))
        return super().write(number, data, offset)

    def cut(self, number: int, size: int) -> None:
        self.calls.append(("cut", size))
        super().cut(number, size)

    def flush(self, number: int) -> None:
        self.calls.append(("flush",))
        super().flush(number)

    def flush_folder(self, path: str) -> None:
        self.calls.append(("flush_folder", path))
        super().flush_folder(path)

    def bytes_read(self) -> int:
        return sum(call[2] for call in self.calls if call[0] == "read")


class Unflushed(Files):
    """File calls that flush nothing, where a test does much and is not about flushing."""

    def flush(self, number: int) -> None:
        pass

    def flush_folder(self, path: str) -> None:
        pass


class Counting(Unflushed):
    """Counts the bytes that are read."""

    read_bytes = 0

    def read(self, number: int, length: int, offset: int) -> bytes:
        data = super().read(number, length, offset)
        self.read_bytes += len(data)
        return data


class Failing(Unflushed):
    """File calls that flush nothing and fail as told: `fail[name]` is a list of errors, None for a call that works."""

    def __init__(self) -> None:
        self.fail: dict[str, list[BaseException | int | None]] = {}

    def _next(self, name: str) -> int | None:
        waiting = self.fail.get(name)
        if not waiting:
            return None
        what = waiting.pop(0)
        if isinstance(what, BaseException):
            raise what
        return what

    def read(self, number: int, length: int, offset: int) -> bytes:
        self._next("read")
        return super().read(number, length, offset)

    def write(self, number: int, data: memoryview, offset: int) -> int:
        allowed = self._next("write")
        return super().write(number, data if allowed is None else data[:allowed], offset)

    def cut(self, number: int, size: int) -> None:
        self._next("cut")
        super().cut(number, size)

    def flush(self, number: int) -> None:
        self._next("flush")
        super().flush(number)

    def flush_folder(self, path: str) -> None:
        self._next("flush_folder")
        super().flush_folder(path)


def error(number: int) -> OSError:
    """Return the system's error of a number."""
    return OSError(number, os.strerror(number))


PRELUDE = """
import os, sys, time, signal, threading
from ledger.stores.folder import FolderStore
from ledger.errors import LedgerError, StoreConflict
AT = "2026-01-01T00:00:00.000000Z"
def stop(name):
    return {"functai_conversation": 1, "kind": "stop", "at": AT, "turn": name}
def say(word):
    print(word, flush=True)
folder = sys.argv[1]
"""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a process that runs code after the prelude."""
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PRELUDE + textwrap.dedent(code)]
        + [str(argument) for argument in arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def run(code: str, *arguments: object, timeout: float = 60) -> str:
    """Run code in a process of its own, and return what it said."""
    process = start(code, *arguments)
    said, _ = process.communicate(timeout=timeout)
    assert process.returncode == 0, said
    return said


def heard(process: subprocess.Popen[str]) -> str:
    """Return the next word that a process says."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: subprocess.Popen[str]) -> None:
    """Kill a process, whatever it does, and close its pipes."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()


def until(condition, timeout_s: float = 20) -> None:
    """Return when a condition holds; fail when it does not in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)
