"""A world for tests: a clock that moves when told, ids in a row, and a name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ledger.records import ids, times

START = datetime(2026, 1, 1, tzinfo=UTC)


class FakeWorld:
    """Time, chance and identity under the test's control."""

    def __init__(self, holder: str = "here:1:fake") -> None:
        self.time = START
        self.count = 0
        self.name = holder

    def now(self) -> datetime:
        """Give the time as it was set."""
        return self.time

    def pass_time(self, seconds: float) -> None:
        """Move the clock."""
        self.time += timedelta(seconds=seconds)

    def turn_id(self) -> str:
        """Give ids in a row."""
        self.count += 1
        return ids.uuid7(times.to_milliseconds(START), self.count)

    def holder(self) -> str:
        """Give the name this process goes by."""
        return self.name

    def boot(self) -> str | None:
        """x"""
        return None

    def monotonic(self) -> float:
        """x"""
        return (self.time - START).total_seconds()
