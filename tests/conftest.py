# Two Hypothesis profiles. By default the same tree is tried with the same examples, so a check that passed passes
# again; `tools/soak properties` looks for new ones. Neither has a deadline: a busy machine is no counterexample.
import importlib
import pkgutil

import pytest
from hypothesis import settings

import ledger

settings.register_profile("default", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=300, print_blob=True)
settings.load_profile("default")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the state machine of the store suite as Hypothesis marks its tests: `-m hypothesis` is all of them."""
    for item in items:
        if item.name.startswith("test_random_steps"):
            item.add_marker("hypothesis")


def pytest_collection_finish() -> None:
    """Load all of the package: Hypothesis takes examples from the constants of the modules that are loaded."""
    for module in pkgutil.walk_packages(ledger.__path__, "ledger."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
