"""Which of Claude Code's files tell of the same conversations: seen at the beginning of each. Pure.

Files that begin with the same line, or with the same message of the model, are copies of each other; a
file that begins below a line of another goes on from it; a sub-agent's file belongs to its session.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence

from ledger.formats import claude_code_lines as source
from ledger.formats.base import F, File, Notes
from ledger.formats.pieces import Raw, string

_HEAD = 50
"""How many lines of a file are looked at to find what it goes on from."""
_SIDE_FILE = re.compile(r"(?:.*/)?(?:([^/]+)/subagents/)?agent-[^/]*\.jsonl?")


def together(files: Sequence[F]) -> Iterable[Sequence[F]]:
    """Join files that begin alike, that go on from each other, and sub-agents with their session."""
    heads = [_Head(file) for file in files]
    keys: dict[str, int] = {}
    group = list(range(len(files)))

    def join(one: int, key: str) -> None:
        other = keys.setdefault(key, one)
        while group[one] != one:
            one = group[one]
        while group[other] != other:
            other = group[other]
        group[max(one, other)] = min(one, other)

    for n, head in enumerate(heads):
        for key in head.keys:
            join(n, key)
    _join_needles(files, heads, join)
    found: dict[int, list[F]] = {}
    for n, file in enumerate(files):
        at = n
        while group[at] != at:
            at = group[at]
        found.setdefault(at, []).append(file)
    return found.values()


class _Head:
    """What the beginning of a file says of where it belongs."""

    def __init__(self, file: File) -> None:
        self.keys: list[str] = []
        self.needles: list[str] = []
        """Lines of other files that it goes on from."""
        self.folder = file.path.rpartition("/")[0]
        first = None
        for value, _ in itertools.islice(source.values(file, Notes()), _HEAD):
            first = first or self._first(value, file)
            message = source.message_id(value)
            if first and message and not value.get("isSidechain"):
                self.keys.append(f"message {message}")
                break
        beside = _SIDE_FILE.fullmatch(file.path)
        stem = file.path.rpartition("/")[2].partition(".")[0]
        session = string(beside[1]) if beside else stem
        self.keys += [f"session {session}"] if source.is_everywhere(session) else []

    def _first(self, value: Raw, file: File) -> bool:
        """Read the first line of the talk."""
        if string(value.get("type")) not in source.TALK | source.ON_THE_WAY:
            return False
        id = source.identity(value, "")
        self.keys += [f"line {id}", f"session {string(value.get('sessionId')) or id}"]
        above = [string(value.get(key)) for key in ("parentUuid", "logicalParentUuid")]
        self.needles = [uuid for uuid in above if uuid]
        if source.is_boundary(value):
            self.needles.append(string(value.get("uuid")))
        if value.get("isSidechain"):
            self.needles = []
        return True


def _join_needles(files: Sequence[F], heads: list[_Head], join: Callable[[int, str], None]) -> None:
    """Join a file with those of its folder that hold the lines it goes on from."""
    wanted: dict[str, dict[bytes, int]] = {}
    for n, head in enumerate(heads):
        for uuid in head.needles:
            wanted.setdefault(head.folder, {})[uuid.encode(errors="replace")] = n
    for n, (file, head) in enumerate(zip(files, heads, strict=True)):
        needles = wanted.get(head.folder)
        if not needles:
            continue
        pattern = re.compile(b"|".join(re.escape(needle) for needle in needles))
        for element in file.elements():
            for found in pattern.findall(getattr(element, "raw", b"")):
                if needles[found] != n:
                    join(n, f"needle {needles[found]}")
                    join(needles[found], f"needle {needles[found]}")
