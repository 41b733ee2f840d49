"""House rules that no linter holds."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "ledger"
FILES = sorted(path.relative_to(TESTS) for path in TESTS.rglob("test_*.py"))


@pytest.mark.parametrize("path", FILES, ids=str)
def test_every_test_states_its_claim(path):
    """A test's docstring is the claim that it tests."""
    tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
    silent = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert silent == []


def test_no_thread_waits_where_an_interrupt_does_harm():
    """What Python itself has written in Python to wait on is left held by an interrupt: see `ledger.bells`."""
    unsafe = {"Barrier", "BoundedSemaphore", "Condition", "Event", "Queue", "Semaphore"}
    names = {f"threading.{name}" for name in unsafe} | {"queue.Queue", "concurrent.futures.wait"}
    found = []
    for path in sorted(set(PACKAGE.rglob("*.py")) - set(PACKAGE.rglob("testing/*.py"))):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                used |= {f"{node.module}.{alias.name}" for alias in node.names}
        found += [f"{path.relative_to(PACKAGE)}: {name}" for name in sorted(used & names)]
    assert found == []


def test_nothing_else_lies_at_the_top():
    """The top level holds what it is to hold: a store that somebody's experiment left there is no part of it."""
    known = {"pyproject.toml", "ledger", "tests", "docs", "tools", "README.md"}
    known |= {"CHANGELOG.md", "LICENSE", "CONTRIBUTING.md", "build", "dist"}
    found = {path.name for path in TESTS.parent.iterdir()}
    assert {name for name in found - known if not name.startswith(".")} <= {"turn_ledger.egg-info"}
