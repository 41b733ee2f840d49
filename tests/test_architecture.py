"""docs/explanation/architecture.md is the twin of the table in tests/test_layers.py."""

import re

from tests.test_layers import PACKAGE, SEES

PAGE = PACKAGE.parent / "docs" / "explanation" / "architecture.md"
SECTION = PAGE.read_text(encoding="utf-8").partition("## Who may see whom")[2].partition("\n## ")[0]
GROUP = re.compile(r"^\| \*(\w+)\* \| (.*) \|$", re.MULTILINE)
ROW = re.compile(r"^\| `([\w.]+)` \| (.*) \|$", re.MULTILINE)


def exists(place: str) -> bool:
    """Whether a place of the table has been written yet."""
    path = PACKAGE.joinpath(*place.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def named(cell: str, groups: dict[str, str]) -> set[str]:
    """The places that a cell names, its groups spelled out; a group may name those above it."""
    places = set(re.findall(r"`([\w.]+)`", cell))
    return places.union(*(named(groups[group], groups) for group in re.findall(r"\*(\w+)\*", cell)))


def test_the_page_has_the_table():
    """Each place that exists has a row, and its row names what the test lets it see."""
    groups = {name: cell.replace(f"*{name}*", "") for name, cell in GROUP.findall(SECTION)}
    shown = {place: named(cell, groups) - {place} for place, cell in ROW.findall(SECTION)}

    assert shown == {
        place: {seen for seen in sees if exists(seen)} - {place}
        for place, sees in SEES.items()
        if exists(place)
    }
