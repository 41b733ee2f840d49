"""A world for tests: clocks that move when told, ids in a row, a name, and a boot."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ledger.records import ids, times

START = datetime(2026, 1, 1, tzinfo=UTC)


class FakeWorld:
    """Time, chance and identity under the test's control."""

    def __init__(self, holder: str = "here:1:fake", boot: str | None = "boot-1") -> None:
        self.time = START
        self.ticks = 1000.0
        self.boot_id = boot
        self.count = 0
        self.name = holder

    def now(self) -> datetime:
        """Give the time as it was set."""
        return self.time

    def pass_time(self, seconds: float) -> None:
        """Move both clocks."""
        self.set_clock(seconds)
        self.ticks += seconds

    def set_clock(self, seconds: float) -> None:
        """Move the wall clock alone, either way."""
        self.time += timedelta(seconds=seconds)

    def monotonic(self) -> float:
        """Give the seconds that passed."""
        return self.ticks

    def turn_id(self) -> str:
        """Give ids in a row."""
        self.count += 1
        return ids.uuid7(times.to_milliseconds(START), self.count)

    def holder(self) -> str:
        """Give the name this process goes by."""
        return self.name

    def boot(self) -> str | None:
        """Give the boot of the machine it runs on."""
        return self.boot_id
