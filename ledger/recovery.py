"""Every interrupted turn of a store is gone on with: what a worker does when it starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import copy_context
from typing import Any

from ledger.conversation import Conversation
from ledger.errors import LedgerError
from ledger.opening import open
from ledger.stores.resolve import store_for
from ledger.turn import Turn
from ledger.turns import resuming
from ledger.turns.resuming import Crew, Resumed, Resumption
from ledger.turns.unended import Unended


def resume_all(
    store: Any, programs: Callable[..., Any] | Iterable[Callable[..., Any]], **how: Any
) -> Resumed[Turn]:
    """Go on with every interrupted turn in a store that one of some programs made: after a deploy, say.

    A turn's program is found by its version, else by its name and fields.
    Args: store: as for `open`; it must list its conversations. programs: one or several. how: what
    conversations are opened with (`approve`, `remembers`, settings), and `at_once` as in
    `Conversation.resume_all`.
    Returns: the turns that were gone on with here, as they are now; its `left` says of the others why.
    Raises: store-unsupported: the store does not list its conversations; TypeError. Other store errors,
    after the turns that could be gone on with are over.
    """
    at_once = how.pop("at_once", 32)
    found, left = interrupted(store, programs, how)
    crew = Crew([resumption for _, resumption in found], copy_context(), at_once=at_once)
    resuming.finish(crew)
    turns = [chat._turn(r.turn) for chat, r in found if r in crew.resumed]
    return Resumed(turns, {**left, **crew.left})


def interrupted(
    store: Any, programs: Callable[..., Any] | Iterable[Callable[..., Any]], how: Mapping[str, Any]
) -> tuple[list[tuple[Conversation, Resumption]], dict[str, str]]:
    """Return the turns of a store that can be gone on with by some programs, each in its conversation.

    And of those that cannot why, by their ids; of a conversation that cannot be read, by its id.
    """
    kept_in = store_for(store)
    given = [programs] if callable(programs) else list(programs)
    # Nothing may be there to be gone on with; what was given is wrong all the same.
    views = [open(None, program, store=kept_in, **how)._view for program in given]
    asked = [(v.program and v.program.description.version, v.redact is None) for v in views]
    found: list[tuple[Conversation, Resumption]] = []
    left: dict[str, str] = {}
    unended = Unended(kept_in)
    for name, look in unended.looks().items():
        seen = unended.see(name, look)
        known = unended.left(name, seen, tuple(asked)) if seen is not None else None
        if known is None:
            chats = [open(name, program, store=kept_in, **how) for program in given]
            fit, known = _fitting(chats)
            found += fit
            if seen is not None:
                unended.note(name, seen, tuple(asked), known)
        left |= known
    return found, left


def _fitting(
    chats: list[Conversation],
) -> tuple[list[tuple[Conversation, Resumption]], dict[str, str]]:
    """Return the turns of a conversation that can be gone on with, and of the others why.

    Args: chats: it, opened with each program.
    """
    fit: dict[str, list[Conversation]] = {}
    reasons: dict[str, str] = {}
    for chat in chats:
        chat = Conversation(chats[0]._log, chat._view)  # One reading for all of them.
        try:
            turns, others = resuming.resumable(chat._log, chat._view)
        except LedgerError as error:
            reasons[chat.id] = str(error)
            break
        for turn in turns:
            fit.setdefault(turn, []).append(chat)
        reasons |= others
    found = []
    for turn, candidates in fit.items():
        best = min(
            candidates, key=lambda chat: not resuming.is_exactly(chat._view, chat._log, turn)
        )
        found.append((best, Resumption(best._log, best._view, turn)))
    return found, {turn: why for turn, why in reasons.items() if turn not in fit}
