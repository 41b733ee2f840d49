"""What a turn was asked is asked again: the same inputs and the same user side, with what is given in their place.

The user side of a turn may hold more than its inputs tell (pictures, instructions). An input that is given anew takes
its place there too, where it stands as a text of its own; where it does not, nobody can say what is to be replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ledger.errors import TurnState
from ledger.records import kinds
from ledger.records.messages import Message
from ledger.turns import forgotten
from ledger.turns.beside import MESSAGES
from ledger.turns.programs import Program
from ledger.turns.view import View
from ledger.views import History

FORGOTTEN = "nobody knows what it was asked"


def again(
    view: View,
    history: History,
    turn: str,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    raised: Callable[[Any], Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a send that asks what a turn was asked, but for what is given anew.

    Args: raised: gives a recorded value with its attachments.
    Raises: TypeError: there is no program, or it does not take an input of the turn; something is given twice; a text
    that is given anew has no place in what the turn was sent as messages. turn-state: the turn was forgotten, or
    nobody asked anything in it.
    """
    program = view.program
    if program is None:
        raise TypeError(
            "this conversation was opened without a program: nothing can be asked again"
        )
    forgotten.refuse(history, turn, FORGOTTEN)
    node = history.node(turn)
    placed = program.positional(args)
    twice = next((name for name in placed if name in kwargs), None)
    if twice is not None:
        raise TypeError(f"{program.description.name}: input {twice!r} is given twice")
    given = {**placed, **kwargs}
    recorded = node.inputs()
    unknown = next((name for name in recorded if name not in program.inputs), None)
    if unknown is not None:
        raise TypeError(
            f"{program.description.name} has no input {unknown!r}, which the turn was sent with"
        )
    asked = {**program.read_inputs(recorded, raised), **given}
    said = kinds.payload(node.record.messages, node.seq, f"turn {node.id}")
    if said and MESSAGES not in asked and view.takes_messages:
        if not given and not any(message["role"] == "user" for message in said):
            reason = "nobody asked anything in it, as in one that begins with a greeting: send a message instead"
            raise TurnState(turn=node.id, state=node.outcome or "running", reason=reason)
        asked[MESSAGES] = _edited(program, said, recorded, given)
    return program.spread(asked)


def _edited(
    program: Program,
    said: list[Message],
    recorded: Mapping[str, Any],
    given: Mapping[str, Any],
) -> list[Message]:
    for parameter, value in given.items():
        if not program.parameter(parameter):
            continue
        name = program.recorded_as(parameter)
        old, new = recorded.get(name), program.write_input(parameter, value)
        if type(new) is type(old) and new == old:
            continue
        if not isinstance(old, str) or not isinstance(new, str) or not _holds(said, old):
            raise TypeError(
                f"the turn was sent with messages, in which its input {name!r} is no text of its own that another "
                "could replace: give the messages as well (messages=), or messages=None for the inputs alone"
            )
        said = [_with(message, old, new) for message in said]
    return said


def _holds(said: list[Message], text: str) -> bool:
    return any(
        _is(part, text)
        for message in said
        if message["role"] == "user"
        for part in message["parts"]
    )


def _is(part: Mapping[str, Any], text: str) -> bool:
    return bool(part["type"] == "text" and part["content"] == text)


def _with(message: Message, old: str, new: str) -> Message:
    if message["role"] != "user":
        return message
    parts = [{**part, "content": new} if _is(part, old) else part for part in message["parts"]]
    return {**message, "parts": parts}
