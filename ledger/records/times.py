"""Times as records hold them: RFC 3339, UTC, six fraction digits, `Z`. No clock here."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def to_text(moment: datetime) -> str:
    """Write an aware datetime as a record's time.

    Raises: ValueError: it has no zone, or lies in UTC outside the years 1 to 9999.
    """
    if moment.tzinfo is UTC:
        return moment.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
    if moment.utcoffset() is None:
        raise ValueError("a time without a zone names no moment")
    try:
        utc = moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("a time outside the years 1 to 9999 cannot be written") from error
    return utc.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def told(moment: datetime | None) -> str | None:
    """Write an aware datetime for people and programs that are told of it, no longer than it is; None: None."""
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")


def from_text(text: str | None) -> datetime | None:
    """Read a record's time; None for a text that is not one."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None


def from_unix(seconds: float) -> datetime | None:
    """Read a Unix time in seconds; None when it is outside the years a datetime can hold."""
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        return None


def to_milliseconds(moment: datetime) -> int:
    """Return whole milliseconds since 1970, rounded down."""
    return (moment - _EPOCH) // _MILLISECOND
