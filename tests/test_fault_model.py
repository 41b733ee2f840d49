"""The list of faults is complete, and every test that it names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
PAGE = TESTS.parent / "docs" / "explanation" / "fault-model.md"
ROW = re.compile(r"\| ([A-Z]\d+) \|(.*)\|")
NAMED = re.compile(r"`([a-z_/]+\.py)::(test_[a-z0-9_]+)`")
COUNTS = "A8 B14 C11 D15 E14 F16 G8 H10 K2 X5 S12 L6"
"""The sections of the page, each with its last row."""
RECIPES = ["T2", "T8", "T9", "T10", "T11", "T14", "T22", "T26", "T27", "T28", "T30", "T33", "T37"]


def rows() -> dict[str, str]:
    """Return the rows of the page by their ids."""
    found = [ROW.fullmatch(line) for line in PAGE.read_text(encoding="utf-8").splitlines()]
    return {row[1]: row[2] for row in found if row is not None}


def test_every_fault_has_a_row():
    """Each fault that was asked for is on the page, in order, once."""
    wanted = [f"{s[0]}{i}" for s in COUNTS.split() for i in range(1, int(s[1:]) + 1)]
    assert list(rows()) == wanted + RECIPES


@pytest.mark.parametrize("fault", rows())
def test_a_row_names_a_test_or_says_why_not(fault):
    """A row without a test gives the reason."""
    assert NAMED.search(rows()[fault]) or "no test: " in rows()[fault]


def test_every_named_test_exists():
    """No test that the page names was renamed or removed."""
    named = set(NAMED.findall(PAGE.read_text(encoding="utf-8")))
    known = {
        (file, node.name)
        for file in {file for file, _ in named}
        if (TESTS / file).exists()
        for node in ast.walk(ast.parse((TESTS / file).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }
    assert len(named) > 100
    assert named - known == set()
