"""The public modules show what is theirs."""

import sys
from importlib import import_module

import pytest

MODULES = [
    *("ledger", "ledger.aio", "ledger.aio.catalog", "ledger.catalog", "ledger.errors"),
    *("ledger.formats", "ledger.formats.dialects", "ledger.merging", "ledger.testing"),
]


@pytest.mark.parametrize("place", MODULES)
def test_dir_shows_public_names_alone(place):
    """Each name that `dir` shows is there, and is neither a foreign module nor something imported for use inside."""
    module = import_module(place)
    shown = [name for name in dir(module) if name != "__version__"]

    assert shown
    assert not [name for name in shown if name.startswith("_")]
    for name in shown:
        value = getattr(module, name, None) or import_module(f"{place}.{name}")
        assert getattr(value, "__module__", value.__class__.__name__) not in sys.stdlib_module_names
        assert getattr(value, "__name__", "ledger").partition(".")[0] not in sys.stdlib_module_names
