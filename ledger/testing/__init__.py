"""What tests of stores need: the suite that every store passes, ours and other people's.

    from ledger.testing import StoreSuite

A store is tested by one subclass of `StoreSuite`; docs/how-to/test-a-store.md shows a whole one. This
needs pytest and hypothesis, the extra `testing`; nothing else of the ledger does.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ledger.testing.running import Outcome, run
    from ledger.testing.suite import StoreSuite

_PLACES = {"StoreSuite": "suite", "Outcome": "running", "run": "running"}
_CHECKS = (
    "ability_checks",
    "adding_checks",
    "bytes_checks",
    "erase_checks",
    "identity_checks",
    "machine",
    "process_checks",
    "seals",
    "suite",
    "thread_checks",
    "value_checks",
    "wait_checks",
)
"""The modules whose asserts pytest shall explain."""

__all__ = ["Outcome", "StoreSuite", "run"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'ledger.testing' has no attribute {name!r}")
    _require()
    value = getattr(import_module(f"ledger.testing.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


def _require() -> None:
    missing = [name for name in ("pytest", "hypothesis") if find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError(
            f"ledger.testing needs {' and '.join(missing)}: "
            "python -m pip install 'turn-ledger[testing]'",
            name=missing[0],
        )
    import pytest

    modules = [f"ledger.testing.{name}" for name in _CHECKS]
    pytest.register_assert_rewrite(*(name for name in modules if name not in sys.modules))
