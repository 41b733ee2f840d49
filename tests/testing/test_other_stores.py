"""Stores of other people pass the suite, having said what they lack."""

from __future__ import annotations

from tests.testing.suites import LinesSuite, SimpleSuite


class TestSimpleStore(SimpleSuite):
    """A store in memory that keeps no bytes."""


class TestLinesStore(LinesSuite):
    """A store with the bare two methods, for several processes."""
