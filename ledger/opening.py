"""A conversation is opened: who answers in it, where it is kept, and what its turns are shown."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ledger.conversation import Conversation
from ledger.records import ids, redacting
from ledger.records.redacting import Redact
from ledger.stores.resolve import store_for
from ledger.turns import approving, programs
from ledger.turns.helping import Remembering
from ledger.turns.judging import judge_for
from ledger.turns.log import Log
from ledger.turns.view import View
from ledger.turns.world import SYSTEM, world_of
from ledger.views import Rule, rules
from ledger.views.place import Sends
from ledger.views.rules import Chooser


def open(
    id: str | None = None,
    program: Callable[..., Any] | None = None,
    *,
    store: Any = None,
    context: Rule | Chooser | None = None,
    sends: Sends = "queue",
    rename: Mapping[str, str] | None = None,
    earlier_without: Sequence[str] = (),
    approve: approving.Rule | None = None,
    remembers: Mapping[Any, Any] | None = None,
    redact: Redact | Sequence[Redact] | None = None,
    **settings: Any,
) -> Conversation:
    """Open a conversation by id, again or for the first time. Nothing is written by opening.

    Args: id: 1 to 200 letters, digits, `.`, `_`, `-`; None: a new one. program: a callable whose
    parameters are the inputs and whose return value is the answer; None: a ledger to read and
    record into. store: None: this process's memory; True: the folder that the command line takes where none is named
    (TURN_LEDGER_STORE, else `turn-ledger` under the user's data); a folder; the URL of a database; or a store.
    context: which earlier turns the next turn is shown: `all_turns()`, `last_turns(n)`, `within(...)`, `only(...)`,
    `compacted(...)`, a `pipeline(...)` of them, or a function of earlier turns that gives those to show.
    sends: what a send does while the turn before it runs: `queue` waits (those of one process, to one store object or
    path, start in the order in which they were sent; between processes no order is promised), `refuse` raises
    conversation-busy, `branch` goes beside it. rename: parameter of the program -> name the field is
    recorded under. earlier_without: outputs of the program, `reasoning` or `calls`, that earlier turns
    lack. approve: which tool calls a person is asked
    about first: `changes`, `all`, a list of tool names and paths (`answer/refund`), or a function that is
    asked at once and answers True, False, a reason to refuse, or None to wait for a person. remembers: what
    helpers remember (`ledger.remember`): helper -> `conversation`, `turn` or `remember(...)`; and
    conversations that may be used inside turns -> `own`. redact: a text -> the text that may be kept, or
    several such functions, applied in order: to every text of a value before it is written. settings: what
    programs find in `current().settings`; recorded are `lm`, when it is text, and those the program declares.
    Raises: conversation-id; conversation-opaque; conversation-content: the store would keep a field that
    may not be kept; TypeError for a program, store or `sends` that cannot be one.
    Not promised: that the conversation exists; a first turn makes it.
    """
    if sends not in ("queue", "refuse", "branch"):
        raise ValueError(f"sends is 'queue', 'refuse' or 'branch', not {sends!r}")
    rule = rules.of(context)
    name = ids.check_conversation(id if id is not None else SYSTEM.turn_id())
    if program is None and rename:
        raise TypeError("rename maps the parameters of a program, and there is none")
    if isinstance(earlier_without, str):
        raise TypeError(f"earlier_without is a list of names, not {earlier_without!r}")
    approving.check(approve)
    check_settings(settings)
    answering = programs.Program(program, rename=rename) if program is not None else None
    if answering is not None:
        answering.check_sendable()
    masking = redacting.of(redact)
    log = Log(store_for(store), name, masking)
    world = world_of(log.store)
    view = View(
        name,
        answering,
        rule=rule,
        sends=sends,
        settings=settings,
        earlier_without=earlier_without,
        world=world,
        judge=judge_for(log, world),
        approve=approve,
        remembering=Remembering.of(remembers or {}),
        redact=masking,
    )
    chat = Conversation(log, view)
    if answering is not None:
        chat._maker.check_content(answering.description, answering.keep)
    return chat


_NAMES = (
    "store",
    "context",
    "sends",
    "rename",
    "earlier_without",
    "approve",
    "remembers",
    "redact",
    "program",
)


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings that are most likely meant as something else: a misspelt `approve` asks nobody.

    Raises: TypeError naming what was meant.
    """
    for name in settings:
        meant = difflib.get_close_matches(name, _NAMES, n=1, cutoff=0.8)
        if meant:
            raise TypeError(
                f"there is no {name!r}; is {meant[0]!r} meant? No setting is called so like it"
            )
        if name in ("results", "rerun"):
            raise TypeError(f"{name!r} is said of one turn: turn.resume({name}=...)")
