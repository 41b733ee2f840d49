"""The turn that is running in this thread or task, as its program sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from typing import Any

from ledger.errors import RecordInvalid
from ledger.records.values import INTEGER_LIMIT


class Running:
    """What a program may ask about the turn it answers, and add to it."""

    def __init__(
        self,
        conversation: str,
        turn: str,
        settings: Mapping[str, Any],
        earlier: Callable[[], list[dict[str, Any]]],
    ) -> None:
        self.conversation = conversation
        """The conversation's id."""
        self.turn = turn
        """The turn's id, recorded before the program was called."""
        self.settings = dict(settings)
        """The conversation's settings with the turn's own over them."""
        self.model: str | None = None
        self.usage: dict[str, int] = {}
        self._earlier = earlier

    def earlier(self) -> list[dict[str, Any]]:
        """Return what the turn is shown: a dict per earlier turn, its inputs and outputs by name."""
        return self._earlier()

    def note(self, *, model: str | None = None, usage: Mapping[str, int] | None = None) -> None:
        """Say which model answered, and add to the token counts of this turn.

        Raises: record-invalid: a count is not a whole number of at least 0; nothing was added.
        TypeError: the model is no text.
        """
        check_model(model)
        counts = whole_counts(usage or {})
        if model is not None:
            self.model = model
        for name, count in counts.items():
            self.usage[name] = self.usage.get(name, 0) + count


def check_model(model: object) -> None:
    """Refuse a model that readers would not find again: it is named by text. Raises: TypeError."""
    if model is not None and not isinstance(model, str):
        raise TypeError(f"a model is named by text, not {type(model).__name__}")


def whole_counts(usage: Mapping[str, Any]) -> dict[str, int]:
    """Return token counts as a dict, each a whole number of at least 0.

    Raises: record-invalid naming the count.
    """
    for name, count in usage.items():
        if type(count) is not int or not 0 <= count <= INTEGER_LIMIT:
            raise RecordInvalid(path=f"usage.{name}", reason="a token count is a whole number >= 0")
    return dict(usage)


_CURRENT: ContextVar[Running | None] = ContextVar("ledger_current", default=None)


def current() -> Running:
    """Return the turn that this code runs in.

    Raises: LookupError: no turn is running here.
    """
    running = _CURRENT.get()
    if running is None:
        raise LookupError("no turn is running here; ledger.current() is for use inside a program")
    return running


def running_turn() -> Running | None:
    """Return the turn that this code runs in, or None."""
    return _CURRENT.get()


def enter(running: Running) -> Token[Running | None]:
    """Make a turn the running one of this context, until `leave`."""
    return _CURRENT.set(running)


def leave(token: Token[Running | None]) -> None:
    """Undo `enter`."""
    _CURRENT.reset(token)
