"""The checks of a suite run without pytest's runner: for a report, or to see that a fault is found."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from ledger.testing.suite import StoreSuite, checks


class Outcome(NamedTuple):
    """What came of one check."""

    check: str
    what: Literal["passed", "skipped", "failed"]
    why: str = ""


def run(suite: type[StoreSuite], *, only: Collection[str] | None = None) -> list[Outcome]:
    """Run the checks of a suite, each at a place of its own, and return what came of each.

    Args: only: the names of the checks to run; None: all.
    Not promised: that fixtures of a subclass are there, or that the random steps that fail are made
    short; that takes pytest.
    """
    return [_run(suite, name) for name in checks(suite) if only is None or name in only]


def _run(suite: type[StoreSuite], name: str) -> Outcome:
    one = suite()
    one._shrinks = False
    check = getattr(one, name)
    with tempfile.TemporaryDirectory(prefix="ledger-check-") as folder:
        try:
            with one._doing(check, Path(folder)):
                check()
        except pytest.skip.Exception as skipped:
            return Outcome(name, "skipped", str(skipped))
        except Exception as error:
            return Outcome(name, "failed", f"{type(error).__name__}: {error}")
    return Outcome(name, "passed")
