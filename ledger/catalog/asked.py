"""What a question to the catalog is asked with, checked, each refusal naming the argument and what it takes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, tzinfo
from typing import Any, get_args
from zoneinfo import ZoneInfo

from ledger.records import times
from ledger.views.states import State

STATES = get_args(State)
MOST = 1_000_000
"""How many rows can be asked for at once."""


def moment(name: str, given: Any, zone: tzinfo = UTC, *, end: bool = False) -> str | None:
    """Return a time as records have it. Args: zone: of which a date is a day. end: of a date its end is meant.

    Raises: TypeError: it is neither a datetime nor a date; ValueError: a datetime has no zone.
    """
    if given is None:
        return None
    if not isinstance(given, date):
        takes = "takes an aware datetime or a date, as datetime.now(UTC) - timedelta(days=7)"
        raise TypeError(f"{name} {takes}; not {given!r}")
    if not isinstance(given, datetime):
        given = datetime.combine(given, time.max if end else time.min, zone)
    try:
        return times.to_text(given)
    except ValueError as error:
        raise ValueError(
            f"{name}: {error}; datetime.now(UTC) has a zone, and so has a date"
        ) from None


def zone_of(given: Any) -> tzinfo:
    """Return a time zone, which may be given by its name.

    Raises: TypeError: it is neither; ValueError: there is none of that name.
    """
    if isinstance(given, str):
        try:
            return ZoneInfo(given)
        except (LookupError, ValueError, OSError):
            message = f"timezone: there is no time zone {given!r}; 'Europe/Berlin' is one"
            raise ValueError(message) from None
    if not isinstance(given, tzinfo):
        raise TypeError(
            f"timezone takes a tzinfo, or a name such as 'Europe/Berlin'; not {given!r}"
        )
    return given


def text(name: str, given: Any) -> str:
    """Return a text; of None none. Raises: TypeError."""
    if given is not None and not isinstance(given, str):
        raise TypeError(f"{name} is text, not {type(given).__name__}")
    return given or ""


def names(name: str, given: Sequence[str]) -> tuple[str, ...]:
    """Return a list of names. Raises: TypeError: it is one text."""
    if isinstance(given, str):
        raise TypeError(f"{name} is a list of names, not {given!r}")
    return tuple(given)


def conversations(given: Any) -> tuple[str, ...] | None:
    """Return ids of conversations, of which one may be given alone; None: all are meant. Raises: TypeError."""
    if given is None:
        return None
    listed = [text("conversation", id) for id in ([given] if isinstance(given, str) else given)]
    # No conversation has another name, and not every database could be asked for it.
    return tuple(id for id in listed if id.isascii() and "\0" not in id)


def states(given: Sequence[str]) -> tuple[str, ...]:
    """Return states of turns. Raises: TypeError; ValueError: there is no such state."""
    for state in names("states", given):
        if state not in STATES:
            raise ValueError(f"a turn is {', '.join(STATES)}; there is no state {state!r}")
    return tuple(given)


def count(name: str, given: Any, least: int) -> int:
    """Return a number of rows or turns. Raises: ValueError."""
    if type(given) is not int or not least <= given <= MOST:
        raise ValueError(f"{name} is a whole number from {least} to {MOST:,}, not {given!r}")
    return given
