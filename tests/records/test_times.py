"""Times: what is written, what is read, and what names no moment."""

import importlib
import json
import math
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.records import times

ZONES = st.integers(-86_399_999_999, 86_399_999_999).map(
    lambda us: timezone(timedelta(microseconds=us))
)
MOMENTS = st.datetimes(
    min_value=datetime(1, 1, 3),  # noqa: DTZ001 - the zone is drawn apart
    max_value=datetime(9999, 12, 29),  # noqa: DTZ001
    timezones=ZONES,
)


@given(MOMENTS)
def test_time_comes_back_equal(moment: datetime) -> None:
    """Every aware datetime, whatever its zone, comes back as the same moment in UTC."""
    back = times.from_text(times.to_text(moment))

    assert back == moment
    assert back is not None
    assert back.tzinfo is UTC


@given(MOMENTS)
def test_time_fits_the_public_schema(moment: datetime) -> None:
    """The schema of the public format accepts every time that we write."""
    jsonschema = importlib.import_module("jsonschema")
    functai = importlib.import_module("functai")
    text = files(functai).joinpath("schema/call.schema.json").read_text()

    jsonschema.Draft202012Validator(json.loads(text)["$defs"]["time"]).validate(
        times.to_text(moment)
    )


@given(st.lists(MOMENTS, min_size=2))
def test_times_sort_as_text(moments: list[datetime]) -> None:
    """The order of the texts is the order of the moments."""
    texts = sorted(times.to_text(m) for m in moments)

    assert texts == [times.to_text(m) for m in sorted(moments)]


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(5, 6, 7, tzinfo=UTC), "0005-06-07T00:00:00.000000Z"),
        (datetime(999, 12, 31, 23, 59, 59, 999999, UTC), "0999-12-31T23:59:59.999999Z"),
        (datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=14))), "2025-12-31T10:00:00.000000Z"),
        (
            datetime(2026, 1, 1, tzinfo=timezone(-timedelta(minutes=25, seconds=21))),
            "2026-01-01T00:25:21.000000Z",
        ),
    ],
    ids=["year 5", "year 999", "+14:00", "-00:25:21"],
)
def test_time_is_written_in_full(moment: datetime, text: str) -> None:
    """Years have four digits, fractions six, and odd zone offsets are taken off."""
    assert times.to_text(moment) == text


class Nowhere(tzinfo):
    """A zone that does not say where it is."""

    def utcoffset(self, moment: datetime | None) -> None:
        return None

    def dst(self, moment: datetime | None) -> None:
        return None

    def tzname(self, moment: datetime | None) -> str:
        return "nowhere"


@pytest.mark.parametrize("zone", [None, Nowhere()], ids=["naive", "zone without offset"])
def test_time_without_zone_is_refused(zone: tzinfo | None) -> None:
    """A time without an offset names no moment and is never read in the machine's zone."""
    with pytest.raises(ValueError, match="zone"):
        times.to_text(datetime(2026, 1, 1, tzinfo=zone))


@pytest.mark.parametrize(
    "moment",
    [
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))),
        datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=5))),
    ],
    ids=["before year 1", "after year 9999"],
)
def test_time_outside_the_years_is_refused(moment: datetime) -> None:
    """A moment that has no year of four digits in UTC is refused as a value."""
    with pytest.raises(ValueError, match="years"):
        times.to_text(moment)


@pytest.mark.parametrize(
    "text",
    [None, "", "now", "2026-01-01", "2026-01-01T00:00:00", "2026-02-30T00:00:00Z", "5", "\ud800"],
    ids=ascii,
)
def test_text_that_is_no_time_reads_as_none(text: str | None) -> None:
    """What is no time, or has no zone, reads as none and raises nothing."""
    assert times.from_text(text) is None


def test_time_of_another_zone_is_read() -> None:
    """Other writers' offsets and fractions are understood."""
    moment = times.from_text("2026-01-01T02:00:00.5+02:00")

    assert moment == datetime(2026, 1, 1, 0, 0, 0, 500_000, UTC)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"])
def test_time_that_leaves_the_years_reads_as_none(text: str) -> None:
    """A time that has no year of four digits in UTC reads as none."""
    assert times.from_text(text) is None


@given(st.floats())
def test_unix_time_never_raises(seconds: float) -> None:
    """Any float is a moment within a microsecond, or none."""
    moment = times.from_unix(seconds)

    if moment is None:
        assert not math.isfinite(seconds) or abs(seconds) > 6e10
    else:
        assert abs((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() - seconds) < 1e-4


@pytest.mark.parametrize(
    ("moment", "milliseconds"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(1970, 1, 1, 0, 0, 0, 1999, UTC), 1),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), -1),
    ],
    ids=str,
)
def test_milliseconds_round_down(moment: datetime, milliseconds: int) -> None:
    """Milliseconds are rounded down, before 1970 too."""
    assert times.to_milliseconds(moment) == milliseconds


def test_date_is_no_time() -> None:
    """A date reads as no time in text either."""
    assert times.from_text(date(2026, 1, 1).isoformat()) is None
