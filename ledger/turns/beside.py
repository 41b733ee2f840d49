"""What a send is given beside its program's inputs and settings, for its turn only.

A program may have an input, or a conversation a setting, of one of these names: there it stays that.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ledger.records import messages
from ledger.records.messages import Message
from ledger.turns import approving
from ledger.turns.attachments import Attachment, lowered
from ledger.views import Rule, rules


class Beside(NamedTuple):
    """What one turn is given of its own; None: as the conversation was opened with."""

    messages: list[Message] | None = None
    """Its user side; None: its inputs say all of it."""
    rule: Rule | None = None
    """Which earlier turns it is shown."""
    approve: approving.Rule | None = None
    """Which of its tools a person is asked about."""
    expect: Any = ...
    """What names the turn that is to be the newest where it is made; None: none; `...`: whichever is."""


NOTHING = Beside()
MESSAGES = "messages"
"""The keyword under which a send is given its user side."""
EXPECT = "expect"
"""The keyword under which a send names the turn that its sender saw as the newest; None says: none."""
NAMES = (MESSAGES, "context", "approve", EXPECT)
"""The keywords of a send that say one turn's own."""


def take(
    kwargs: Mapping[str, Any], taken: Collection[str], given: list[Attachment]
) -> tuple[Beside, dict[str, Any]]:
    """Return what keywords say of this, checked, and the others.

    Args: taken: the names that are inputs or settings. given: takes the attachments of the messages.
    Raises: record-invalid naming the message or part. TypeError, ValueError: it is no context, or no rule.
    """
    own = [name for name in NAMES if name in kwargs and name not in taken]
    rest = {name: value for name, value in kwargs.items() if name not in own}
    told, context, approve = (kwargs[name] if name in own else None for name in NAMES[:-1])
    expect: Any = kwargs[EXPECT] if EXPECT in own else ...
    approving.check(approve)
    rule = None if context is None else rules.of(context)
    return Beside(None if told is None else _user_side(told, given), rule, approve, expect), rest


def _user_side(told: Any, given: list[Attachment]) -> list[Message]:
    before = len(given)
    said = messages.check_user_side(exchange_of(told, given))
    # With attachments it is a copy already, and they are yet to be kept.
    return copy.deepcopy(said) if len(given) == before else said


def exchange_of(exchange: Any, given: list[Attachment]) -> Any:
    """Return messages of a caller's as they are recorded: an attachment may stand for a part, or in one.

    Args: given: takes the attachments. Raises: record-invalid: a value cannot be kept exactly.
    """
    told = [_with_parts(message) for message in exchange] if type(exchange) is list else exchange
    return lowered(told, "messages", given, references=True)


def _with_parts(message: Any) -> Any:
    parts = message.get("parts") if type(message) is dict else None
    if type(parts) is not list:
        return message
    made = [part.part() if isinstance(part, Attachment) else part for part in parts]
    return {**message, "parts": made}
