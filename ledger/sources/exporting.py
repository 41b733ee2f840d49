"""Exporting: conversations as one file, for other programs, for training, for people.

    json                 complete: every line of the log, and the attachments; imported, it is the same again
    markdown             to be read by people
    openai-chat          a line for each branch, as OpenAI Chat Completions
    anthropic            a line for each branch, as Anthropic Messages
    sharegpt             a line for each branch, as ShareGPT
    open-webui           a list of chats, each with its whole tree
    preferences          a line for each pair of answers that were rated otherwise, as TRL has them
    preferences-openai   the same, as OpenAI has them

Conversations are read one after the other, and each piece is given as it is made: memory holds one
conversation and one of its rows.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ledger.conversation import Conversation
from ledger.errors import ImportInvalid, LedgerError, LossWarning, StoreUnsupported
from ledger.formats import (
    export_chat,
    export_open_webui,
    export_pairs,
    export_sharegpt,
    jsonl,
    markdown,
)
from ledger.formats import export_json as document
from ledger.formats.talks import Exporter, How, Pairs, Talk
from ledger.opening import open as open_conversation
from ledger.records import codec, times, values
from ledger.sources.kept_bytes import KeptBytes
from ledger.sources.new_file import new_file
from ledger.stores.resolve import store_for
from ledger.turn import Turn
from ledger.turns import loops
from ledger.turns.attachments import plain
from ledger.turns.view import TurnLike

Branches = Literal["head", "all"]
Given = Conversation | Iterable[Conversation] | str | os.PathLike[str] | Any

_ROWS: dict[str, Exporter] = {
    exporter.name: exporter
    for exporter in (
        *(export_chat.openai, export_chat.anthropic, export_sharegpt),
        *(export_open_webui, export_pairs.trl, export_pairs.openai),
    )
}
FORMATS = ("json", "markdown", *_ROWS)
WHOLE = frozenset({"json", "open-webui", "preferences", "preferences-openai"})
"""The formats that take conversations whole: there is no branch to choose."""
ROWS = frozenset(_ROWS) - {"open-webui"}
"""The formats made of rows that end with a turn, so that turns can be chosen."""
_LISTS = frozenset({"open-webui"})
"""Those whose rows are the elements of one JSON list; else a row is a line."""


@dataclass(frozen=True, slots=True)
class _Wish:
    """What is to be written of each conversation."""

    format: str
    branches: Branches
    how: How


class Export:
    """A file made of conversations, in pieces of bytes: made anew each time it is iterated over."""

    def __init__(self, chats: Given, wish: _Wish, turn: TurnLike | None) -> None:
        self._chats = chats
        self._wish = wish
        self._turn = turn
        self.conversations = 0
        """How many conversations were read."""
        self.rows = 0
        """How many rows were made: lines or elements; of `json` and `markdown`, one for each conversation."""
        self.notes: Counter[str] = Counter()
        """What was left out or could not be said, by a phrase for people, with how often."""
        self.failed: dict[str, LedgerError] = {}
        """Of several conversations those that could not be read, and why; they hide no other."""

    def __iter__(self) -> Iterator[bytes]:
        self.conversations = self.rows = 0
        self.notes.clear()
        self.failed.clear()
        whole = self._wish.format in _LISTS or (
            self._wish.format == "json" and not isinstance(self._chats, Conversation)
        )
        yield from (
            _listed(self._documents())
            if whole
            else (piece for document in self._documents() for piece in document)
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it as a new file: it is there whole, for its owner only, or not at all.

        Raises: FileExistsError: there is something under the name. OSError; store errors.
        """
        with new_file(path) as file:
            for piece in self:
                file.write(piece)

    def _documents(self) -> Iterator[Iterator[bytes]]:
        """Yield what is made: for a list its elements, else whatever stands behind each other."""
        for chat in _conversations(self._chats):
            self.conversations += 1
            try:
                for made in self._made(chat):
                    self.rows += 1
                    yield made
            except LedgerError as error:
                if isinstance(self._chats, Conversation):
                    raise
                self.failed[chat.id] = error

    def _made(self, chat: Conversation) -> Iterator[Iterator[bytes]]:
        wish, notes = self._wish, self.notes
        if wish.format == "json":
            yield _json(chat, notes)
        elif wish.format == "markdown":
            gap = b"\n" if self.conversations > 1 else b""
            view = chat if self._turn is None else chat.continue_from(self._turn)
            # Whole before any of it is given: what fails leaves no half of a document.
            text = list(_markdown(view, every=wish.branches == "all"))
            yield (gap * (n == 0) + piece.encode() for n, piece in enumerate(text))
        else:
            exporter = _ROWS[wish.format]
            rows = exporter.rows(self._talk(chat), wish.how, notes)
            spelled = jsonl.line if wish.format not in _LISTS else _element
            yield from (iter([spelled(row)]) for row in rows)

    def _talk(self, chat: Conversation) -> Talk:
        head = chat.head
        at = head if self._turn is None else chat.turn(self._turn)
        return Talk(
            id=chat.id,
            title=chat.title,
            history=chat._log.read(),
            head=None if head is None else head.id,
            at=None if at is None else at.id,
            every=self._wish.branches == "all" or self._wish.format in WHOLE,
            read=KeptBytes(chat, self.notes).read,
        )


def export(
    chats: Given,
    format: str,
    *,
    branches: Branches = "head",
    turn: TurnLike | None = None,
    tools: Iterable[dict[str, Any]] = (),
    pairs: Pairs = "all",
    instructions: str = "",
    min_rating: float | None = None,
    labels: Sequence[str] = (),
    models: Sequence[str] = (),
) -> Export:
    """Return conversations as one file of another format, made piece by piece.

        ledger.export("chats", "openai-chat", branches="all").write("train.jsonl")

    Args: chats: a conversation, several, or a store (or its folder): all that it has. format: `json`,
    `markdown`, `openai-chat`, `anthropic`, `sharegpt`, `open-webui`, `preferences` (as TRL has them),
    `preferences-openai`. branches: the one that each view stands on, or `all`; formats that hold whole
    trees take all. turn: of one conversation, the branch through this turn. tools: definitions of tools as
    the format has them, for rows that call tools; none: what was called is described. pairs: of preferences,
    `all` pairs of answers to the same question whose ratings differ, or `extremes`: the best and the worst.
    instructions: what the system says in each row in which none are recorded, as those are that a program gives
    its model by `current().messages(name, instructions=...)`. min_rating, labels, models: which turns rows are
    for: whose `mean_rating` (of what each person said last) is at least so; that have all of these labels,
    themselves or by their conversation; that one of these answered. A row ends with the last such turn of
    its branch, and has all before it; of preferences the chosen answer is one.
    Returns: the pieces, in bytes, when iterated over; it writes a file (`write`), and tells in `notes` what
    was left out, such as attachments whose bytes are missing or were altered, and in `failed` which of several
    conversations could not be read (rows that were made of one before it failed are there).
    Raises: ValueError: there is no such format or choice. TypeError. While it is made: turn-unknown,
    store-unsupported: the store lists no conversations, or keeps no lines (json); store errors.
    It blocks while it is read; on an event loop, read it in a thread.
    Not promised: that what one format cannot say is in it; `json` alone has everything.
    """
    if format not in FORMATS:
        raise ValueError(f"nothing is exported as {format!r}; known: {', '.join(FORMATS)}")
    if branches not in ("head", "all"):
        raise ValueError(f"branches is 'head' or 'all', not {branches!r}")
    if pairs not in ("all", "extremes"):
        raise ValueError(f"pairs is 'all' or 'extremes', not {pairs!r}")
    if turn is not None and (format in WHOLE or branches == "all"):
        raise ValueError(f"a turn names one branch; {format} takes all of them here")
    if format not in _ROWS and instructions:
        raise ValueError(f"{format} has no rows to put instructions into")
    how = How(
        tuple(tools),
        pairs,
        _text("instructions", instructions),
        min_rating,
        _names("labels", labels),
        _names("models", models),
    )
    if min_rating is not None and not isinstance(min_rating, int | float):
        raise TypeError(f"min_rating is a number, not {min_rating!r}")
    if format not in ROWS and how.chooses:
        raise ValueError(
            f"min_rating, labels and models choose rows; {format} is whole conversations"
        )
    if turn is not None and not isinstance(chats, Conversation):
        raise TypeError("a turn is one of one conversation: give that conversation")
    if not isinstance(chats, Conversation | Iterable | os.PathLike) and not _is_store(chats):
        reason = "a conversation as `ledger.open` gives it, several, or a store"
        raise TypeError(f"what is exported is {reason}; not {type(chats).__name__}")
    return Export(chats, _Wish(format, branches, how), turn)


def _text(name: str, given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError(f"{name} is text, not {type(given).__name__}")
    return given


def _names(name: str, given: Sequence[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise TypeError(f"{name} is a list of names, not {given!r}")
    return tuple(given)


def export_json(chat: Conversation) -> bytes:
    """Return everything of a conversation: every line of its log as it is, and its attachments.

    Imported into an empty store it gives the identical log. An attachment whose bytes are missing or
    were altered is left out with a `LossWarning`; what names it stays. `export(chat, "json")` gives the same in
    pieces, and tells in its `notes`.
    Raises: TypeError: it is no conversation, or its store is not one of ours, so it has no lines; store errors.
    """
    notes = Counter[str]()
    made = b"".join(_json(_conversation(chat), notes))
    if notes:
        warnings.warn("; ".join(notes), LossWarning, stacklevel=2)
    return made


def log_of(data: bytes, conversation: str, *, source: str = "the copy") -> bytes:
    """Return the bytes of a log from a copy of its file, or from what `export_json` wrote.

    Raises: import-invalid: it is an export of another conversation, or one that does not read.
    """
    if not document.begins(data):
        return data
    exported = document.load(data, source=source)
    if exported.conversation != conversation:
        raise ImportInvalid(
            source=source, reason=f"an export of {exported.conversation}, not of {conversation}"
        )
    return exported.raw_log


def export_markdown(chat: Conversation) -> str:
    """Return the branch that a view stands on as Markdown, to be read by people.

    `export(chat, "markdown", branches="all")` has all branches. Raises: TypeError: it is no conversation.
    """
    return "".join(_markdown(_conversation(chat), every=False))


def _conversation(given: Any) -> Conversation:
    """Return what is exported. Raises: TypeError: it is no conversation."""
    if not isinstance(given, Conversation):
        takes = "what is exported here is a conversation, as `ledger.open(id, store=...)` gives it"
        all_of_them = "`ledger.export(store, format)` takes all of a store"
        raise TypeError(f"{takes}, not {type(given).__name__}; {all_of_them}")
    return given


def _conversations(chats: Given) -> Iterator[Conversation]:
    """Yield the conversations that are meant, each opened when it is its turn."""
    if isinstance(chats, Conversation):
        yield chats
        return
    if not isinstance(chats, str | os.PathLike) and not _is_store(chats):
        yield from map(_conversation, chats)
        return
    store = store_for(chats)
    yield from (open_conversation(id, store=store) for id in listed(store))


def _is_store(given: Any) -> bool:
    return all(callable(getattr(given, method, None)) for method in ("append", "read"))


def listed(store: Any) -> list[str]:
    """Return the ids of a store's conversations. Raises: store-unsupported: it does not list them."""
    found = getattr(loops.blocking(store), "conversations", None)
    if not callable(found):
        raise StoreUnsupported(store=type(store).__name__, method="conversations")
    return list(found())


def _listed(elements: Iterable[Iterator[bytes]]) -> Iterator[bytes]:
    """Yield elements as one JSON list."""
    yield b"["
    for number, element in enumerate(elements):
        yield b",\n" if number else b"\n"
        yield from element
    yield b"\n]\n"


def _element(row: Any) -> bytes:
    return jsonl.line(row).rstrip(b"\n")


# -- our own JSON ----------------------------------------------------------------------------------


def _json(chat: Conversation, notes: Counter[str]) -> Iterator[bytes]:
    raw = getattr(chat.store, "raw", None)
    if raw is None:
        raise TypeError(f"{type(chat.store).__name__} keeps no lines to export")
    log: bytes = raw(chat.id)
    return document.dump(chat.id, log, KeptBytes(chat, notes).streams(sorted(set(_named(log)))))


def _named(log: bytes) -> Iterator[str]:
    for line in log.split(b"\n"):
        if values.REFERENCE.encode() in line:
            yield from values.references(codec.decode_plain(line))


# -- Markdown --------------------------------------------------------------------------------------


def _markdown(chat: Conversation, *, every: bool) -> Iterator[str]:
    turns = chat.turns
    others = _other_branches(chat, turns) if every else ()
    return markdown.document(chat.title or chat.id, map(_row, turns), others)


def _other_branches(chat: Conversation, first: list[Turn]) -> Iterator[markdown.Branch]:
    """Yield what other branches have beyond those before them, in log order."""
    history = chat._log.read()
    told = {turn.id for turn in first}
    for start in list(history.order):
        line = []
        at: str | None = start
        while at is not None and at not in told:
            told.add(at)
            line.append(chat.turn(at))
            at = next((child for child in history.children(at)), None)
        if line:
            after = line[0].parent
            ordinal = None if after is None else after.ordinal
            yield markdown.Branch(ordinal, map(_row, line))


def _row(turn: Turn) -> markdown.Row:
    return {
        "ordinal": turn.ordinal,
        "id": turn.id,
        "inputs": plain(turn.inputs),
        "outputs": plain(turn.outputs) if turn.state == "done" else None,
        "model": turn.model,
        "state": "erased" if turn.erased else turn.state,
        "started": times.to_text(turn.started) if turn.started is not None else None,
        "messages": turn.messages,
    }
