"""Tests of `ledger.sources.holding`, and of when a file grows: what may still go on."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import pytest

from ledger.formats.base import Draft, Notes, Skipped
from ledger.formats.nodes import Node
from ledger.formats.tree import Tree
from ledger.sources import holding
from ledger.sources.opened import Opened
from tests.worlds import START

SOON, OLD = START - timedelta(seconds=119), START - timedelta(seconds=120)


def draft(*nodes: Node, current: str | None = None, **keys: Any) -> Draft:
    """Return a draft of some records."""
    tree = Tree(nodes, format="f", conversation="c", notes=Notes())
    at = tree.turn_at(current) if current else None
    return Draft("f", "c", None, tree.turns, at, [], Notes(), **{"growing": True, **keys})


def held(*drafts: Draft) -> list[set[str]]:
    """Return what was asked in the turns that are held of each draft."""
    marked = holding.marked([Skipped("x", "y"), *drafts], lambda: START)
    found = [one for one in marked if isinstance(one, Draft)]
    return [{t.inputs["message"] for t in one.turns if t.id in one.held} for one in found]


def ask(name: str, created: Any = OLD, above: str | None = None) -> Node:
    """Return a prompt."""
    return Node(name, above, "prompt", text=name, created=created)


def test_what_has_no_answer_and_is_new_may_go_on():
    """Held are turns without an answer that are current, of the last minutes, or of no known time."""
    answer = Node("a", "answered", "answer", text="yes", created=SOON)
    nodes = [ask("old"), ask("new", SOON), ask("timeless", None), ask("answered", SOON), answer]

    assert held(draft(*nodes)) == [{"new", "timeless"}]
    assert held(draft(*nodes, current="old")) == [{"old", "new", "timeless"}]
    assert held(draft(*nodes, current="a")) == [{"new", "timeless"}]


def test_what_does_not_grow_is_over():
    """Of a source that nobody writes to nothing is held, whatever times it tells."""
    assert held(draft(ask("p", SOON), current="p", growing=False)) == [set()]


def test_a_sub_agent_waits_for_the_turn_it_works_for():
    """All turns of a side line are held with the turn that it was made for, and its own side lines too."""
    main = draft(ask("p", SOON))
    answered = [ask("side"), Node("a", "side", "answer", text="yes", created=OLD)]
    side = draft(*answered, side_of={"turn": main.turns[0].id})
    inner = draft(*answered, side_of={"turn": side.turns[0].id})
    other = draft(*answered, side_of={"turn": "another"})

    assert held(main, side, inner, other) == [{"p"}, {"side"}, {"side"}, set()]


@pytest.mark.parametrize("in_zip", [False, True])
def test_a_file_grows_by_its_last_line_else_by_its_own_time(tmp_path, in_zip):
    """The file's time counts where no line tells one, or tells one that is still to come; a zip's never."""
    path = tmp_path / "file"
    path.touch()
    file = Opened("file", "file", lambda: path.open("rb"), path, in_zip=in_zip, now=lambda: START)

    def growing(seconds: float | None, written: float) -> bool:
        os.utime(path, (START.timestamp() + written,) * 2)
        return file.growing(None if seconds is None else START + timedelta(seconds=seconds))

    assert [growing(-119, -999), growing(-120, 0), growing(119, -999)] == [True, False, True]
    assert [growing(None, -119), growing(None, -120)] == [not in_zip, False]
    assert [growing(120, 0), growing(120, -999)] == [not in_zip, False]
