"""The frame every import format stands in: what a format finds, and what a person is told.

A format turns files into `Draft`s, one per conversation, and `Skipped`s for what it could not read.
It opens nothing, appends nothing and decides nothing about a store: it says which files belong
together, and reads them group by group. Turn ids are made from the source alone (`turn_id`), so the
same source gives the same ids on every machine.

Must stay in step: `turn_id` and docs/decisions/0003-imported-turn-ids.md. Ids that were written
once are compared for ever, so the rule here never changes for a format that has been released.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from ledger.records import ids, times

Message = dict[str, Any]
"""A provider-neutral message, as docs/reference/format.md describes it."""


def turn_id(
    format: str, conversation: str, user: str | None, first: str | None, created: datetime | None
) -> str:
    """Return the id of an imported turn: the same source gives the same id, everywhere and always.

    A UUIDv7 of the user record's time in milliseconds (0 without a usable time) and the first 74
    bits of SHA-256 of the canonical JSON `[format, conversation, user, first]`.

    Args: user: the source's id of the user record: the one directly above the answer; None when the
    source has an answer without a prompt. first: the source's id of the first record of the answer
    path that no sibling turn shares, as `tree` finds it; None when the turn is unanswered.
    """
    named = msgspec.json.encode([format, conversation, user, first])  # Of text it is canonical.
    digest = hashlib.sha256(named).digest()
    milliseconds = times.to_milliseconds(created) if created else 0
    if not 0 <= milliseconds < 1 << 48:
        milliseconds = 0
    return ids.uuid7(milliseconds, int.from_bytes(digest[:10], "big") >> 6)


@dataclass(slots=True)
class DraftTurn:
    """One turn as the source has it: what was asked, and one whole answer to it.

    (1) `outputs` is None exactly when `state` is "abandoned". (2) `parent` is the id of a turn that
    stands earlier in its draft and is done. (3) Every value passes `ledger.records.values.check`.
    """

    id: str
    parent: str | None
    inputs: dict[str, Any]
    """`{"message": text}`."""
    outputs: dict[str, Any] | None
    """`{"result": text}`; the text may be empty (an answer that is an image)."""
    state: Literal["done", "abandoned"]
    model: str | None
    usage: dict[str, int] | None
    """Token counts: `input_tokens` (all that the models read; of these `cache_read_tokens` and
    `cache_write_tokens`), `output_tokens` (all that they wrote; of these `reasoning_tokens`). What a
    source does not tell is left out. A call that several turns share is counted in the oldest."""
    messages_in: list[Message]
    """The user side: hidden context that is new here, then the prompt."""
    messages_out: list[Message]
    """All that came after: thinking, tool rounds, answer. An unanswered turn may have steps."""
    source: dict[str, Any]
    """`format`, `conversation`, `records` (ids folded into it, in order), and where known `prompt`,
    `context` (ids of hidden records), `created`, `updated`, `cut` (why the answer is not whole);
    and `order`, `preferred`, `rank`: see docs/reference/format.md."""


@dataclass(slots=True)
class Skipped:
    """Something of the source that gives no turns, and why."""

    what: str
    reason: str


@dataclass(slots=True)
class Notes:
    """What was not taken as it stood, counted; it ends in the report."""

    counts: Counter[str] = field(default_factory=Counter)
    """How often each thing happened, by a phrase for people."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Types this version does not know, kept as they are, by name."""
    skipped: list[Skipped] = field(default_factory=list)

    def add(self, other: Notes) -> None:
        """Take another's counts and skipped records into these."""
        self.counts.update(other.counts)
        self.unknown.update(other.unknown)
        self.skipped.extend(other.skipped)


@dataclass(slots=True)
class Draft:
    """One conversation as found."""

    format: str
    source_id: str
    """The source's id of the conversation: any text, not yet a safe name."""
    title: str | None
    turns: list[DraftTurn]
    """Parents come before their children; else the order of the source, never that of time."""
    current: str | None
    """The turn the source calls current; None when it calls none so."""
    raw: Sequence[bytes]
    """The source's own records of the conversation, byte for byte: one for each file."""
    notes: Notes
    raw_type: str = "application/json"
    """The media type of `raw`."""
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    """The bytes that messages name as attachments, by lower-case hex SHA-256."""
    side_of: dict[str, Any] | None = None
    """Of a side line (a sub-agent): what it was made for, as far as known: `conversation` (its
    source id), `turn`, `call` (the id of the tool call)."""
    growing: bool = False
    """Whether one of its files was written to just now: what it was about may go on."""
    held: frozenset[str] = frozenset()
    """Turns that may go on, left for a later import unless they are there; see `sources.holding`."""
    prefix: str = ""
    """What its id and those of its turns are under; see `sources.belonging`."""


@dataclass(slots=True)
class Exported:
    """One conversation of our own JSON: its log, and the bytes its attachments name."""

    conversation: str
    raw_log: bytes
    blobs: Mapping[str, bytes]
    """By lower-case hex SHA-256."""


@dataclass(slots=True)
class Element:
    """One top-level value of a JSON source: its own bytes, and where they begin."""

    raw: bytes
    at: int


@dataclass(slots=True)
class Broken:
    """The place at which a JSON source stops being readable, and why."""

    at: int
    reason: str


Found = Draft | Exported | Skipped


class Unreadable(Exception):
    """Raised by a `File` that cannot be read on; the text says why."""


Row = dict[str, Any]
"""A row of a database by the names of its columns: text, numbers, bytes, None."""


class Schema(dict[str, tuple[str, ...]]):
    """What a database holds: the names of the columns, by the name of the table."""


class File(Protocol):
    """One file, opened anew for each reading."""

    @property
    def name(self) -> str:
        """Its path, for people; of a file in a zip `<zip>: <path in it>`."""

    @property
    def path(self) -> str:
        """Its path within what was given, with `/`: of a file that was given itself, its name."""

    def growing(self, last: datetime | None) -> bool:
        """Say whether it was written to just now: then what stands last in it may not be all there.

        Args: last: the time of its last line. None, when no line tells one: the file's own time
        counts, which is that of a copy where it was copied.
        """

    def elements(self) -> Iterator[Element | Broken]:
        """Read its values: those of a JSON file, or one a line. A database has none."""

    def rows(self, query: str, *values: Any) -> Iterator[Row]:
        """Read rows of a database, which is never written to.

        Raises: Unreadable: it is no database, or is damaged, or the query does not fit it.
        """


F = TypeVar("F", bound=File)
"""A file, as whoever opens it knows it."""


class Format(Protocol):
    """What a format is: a module (or object) with two words and three functions."""

    @property
    def name(self) -> str:
        """The word for it in records and reports: `chatgpt`. Never changes: ids are made of it."""

    @property
    def home(self) -> re.Pattern[str] | None:
        """Where its files lie: matches their paths as a program names them. None: anywhere."""

    def looks_like(self, sample: object) -> bool:
        """Say whether a decoded value, or the `Schema` of a database, is of this format.

        Never raises.
        """

    def together(self, files: Sequence[F]) -> Iterable[Sequence[F]]:
        """Say which files tell of the same conversations, each file once: they are read at once."""

    def drafts(self, files: Sequence[File]) -> Iterator[Found]:
        """Read the files of one group; what does not read is a `Skipped`, the rest is read."""


def alone(files: Sequence[F]) -> Iterable[Sequence[F]]:
    """Take each file by itself: `together` of a format whose files know nothing of each other."""
    return ([file] for file in files)


MOST_TOLD = 10
"""How many things skipped for one reason a report tells one by one, to people."""


MOST_LISTED = 60
"""Of how many sources a report tells one by one what was new, to people; of more, by format alone."""


@dataclass(slots=True)
class Counted:
    """What a source holds: a file, or files that tell of the same conversations."""

    what: str
    """The path of the first file; for a file in a zip `<zip>: <path in it>`."""
    format: str
    files: int
    conversations: int = 0
    turns: int = 0
    new: int = 0
    """How many of the turns were added."""


@dataclass(slots=True)
class Report:
    """What an import did, for the person who asked for it."""

    conversations: int = 0
    """Conversations that gained something."""
    turns: int = 0
    """Turns that were added."""
    conversations_known: int = 0
    """Conversations of the source that were there already, whole."""
    turns_known: int = 0
    """Turns of the source that were there already, and were left as they are."""
    held: int = 0
    """Conversations whose last turn may still go on: it was left for a later import."""
    files: int = 0
    """Files that hold conversations, as far as they were found."""
    files_read: int = 0
    """Those of them that are done with."""
    sources: list[Counted] = field(default_factory=list)
    """What each source holds, in the order in which they were read."""
    notes: Notes = field(default_factory=Notes)

    @property
    def found(self) -> int:
        """How many conversations the source held: new, known, or only just begun."""
        return self.conversations + self.conversations_known + self.held

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        return {
            "conversations": self.conversations,
            "turns": self.turns,
            "conversations_known": self.conversations_known,
            "turns_known": self.turns_known,
            "held": self.held,
            "files": self.files,
            "sources": [asdict(source) for source in self.sources],
            "skipped": [{"what": skip.what, "reason": skip.reason} for skip in self.notes.skipped],
            "unknown": dict(_by_name(self.notes.unknown)),
            "notes": dict(_by_name(self.notes.counts)),
        }

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the report as lines of text for people."""
        out = [
            f"imported {_count(self.conversations, 'conversation')}, {_count(self.turns, 'turn')}"
        ]
        if self.conversations_known or self.turns_known:
            out.append(
                f"already there: {_count(self.conversations_known, 'whole conversation')}, "
                f"{_count(self.turns_known, 'turn')}"
            )
        if self.held:
            turns = "the last turn" if self.held == 1 else "the last turns"
            out.append(
                f"{turns} of {_count(self.held, 'conversation')} left out, which may still go on; "
                "import again in some minutes"
            )
        if len(self.sources) > 1:
            out += _by_format(self.sources)
        out += listed(self.notes.skipped)
        out += [
            f"unknown type {name}: {n}, kept as it is" for name, n in _by_name(self.notes.unknown)
        ]
        out += [f"{what}: {n}" for what, n in _by_name(self.notes.counts)]
        return out


def _by_format(sources: list[Counted]) -> list[str]:
    """Return a line for each format; and, unless there are very many, one for each source with something new."""
    by_format: dict[str, list[Counted]] = {}
    for source in sources:
        by_format.setdefault(source.format, []).append(source)
    lines = []
    for format, found in by_format.items():
        whole = Counted(format, format, sum(source.files for source in found))
        for source in found:
            whole.conversations += source.conversations
            whole.turns += source.turns
            whole.new += source.new
        lines.append(f"{format}, {_count(whole.files, 'file')}: {_held(whole)}")
        told = [source for source in found if source.new] if len(sources) <= MOST_LISTED else []
        lines += [f"  {source.what}{_and_more(source)}: {_held(source)}" for source in told]
        if told and (others := len(found) - len(told)):
            lines.append(f"  nothing new in {_count(others, 'other')}")
    return lines


def _held(source: Counted) -> str:
    new = "all new" if source.new == source.turns else f"{source.new:,} new"
    told = f"{_count(source.conversations, 'conversation')}, {_count(source.turns, 'turn')}"
    return f"{told}, {new}" if source.turns else told


def _and_more(source: Counted) -> str:
    return f" and {_count(source.files - 1, 'more file')}" if source.files > 1 else ""


def listed(skipped: list[Skipped]) -> list[str]:
    """Return a line for each thing that was skipped; of very many for one reason, the first ones."""
    left = Counter(skip.reason for skip in skipped)
    shown: Counter[str] = Counter()
    lines = []
    for skip in skipped:
        shown[skip.reason] += 1
        if shown[skip.reason] <= MOST_TOLD:
            lines.append(f"skipped {skip.what}: {skip.reason}")
    for reason, count in left.items():
        if count > MOST_TOLD:
            lines.append(f"skipped {count - MOST_TOLD:,} more: {reason}")
    return lines


def _by_name(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted((name, n) for name, n in counts.items() if n)


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
