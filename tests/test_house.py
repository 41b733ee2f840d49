"""House rules that no linter holds."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
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
