"""Tests of `ledger.formats.chain`: names made of what was said, held to a plain reading of the rule."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.formats import chain
from ledger.formats.base import DraftTurn, Notes
from ledger.formats.chain import Link
from ledger.formats.nodes import Kind, Node
from ledger.formats.tree import Tree

KINDS: st.SearchStrategy[Kind] = st.sampled_from(["prompt", "answer", "step", "aside"])
LISTS = st.lists(st.tuples(KINDS, st.sampled_from("ab")), max_size=8)
Said = list[tuple[Kind, str]]


def links(said: Said) -> list[Link]:
    return [Link(Node("", None, kind, text=text), [kind, text]) for kind, text in said]


def turns(said: Said, *more: Said) -> list[DraftTurn]:
    nodes = chain.branches([links(said), *(links(other) for other in more)])
    return Tree(nodes, format="x", conversation="c", notes=Notes()).turns


def spelled(said: Said) -> list[tuple[str, ...]]:
    """Return each turn of a list as all that was said up to its end.

    Context, and steps that nobody asked for, are no part of a turn until something is said.
    """
    ends: list[tuple[str, ...]] = []
    so_far: tuple[str, ...] = ()
    last = ""
    for kind, text in said:
        so_far += (kind, text)
        if kind == "aside" or (kind == "step" and not ends):
            continue
        if not ends or (kind == "prompt" and last != "prompt"):
            ends.append(so_far)
        else:
            ends[-1] = so_far
        last = kind
    return ends


@settings(max_examples=100)
@given(LISTS, LISTS)
def test_turns_are_the_same_exactly_when_all_up_to_their_end_is(one, other):
    """Two lists share the turns that they have in common from the start, and no others."""
    mine, theirs = spelled(one), spelled(other)
    by_id = {t.id: end for t, end in zip(turns(one), mine, strict=True) if t.state == "done"}
    found = {t.id: end for t, end in zip(turns(other), theirs, strict=True) if t.state == "done"}

    for id in by_id.keys() & found.keys():
        assert by_id[id] == found[id]
    assert len(by_id.keys() & found.keys()) == len(set(by_id.values()) & set(found.values()))


@settings(max_examples=100)
@given(LISTS, LISTS)
def test_lists_read_together_give_what_each_gives_alone(one, other):
    """The tree of two lists has the turns that each has when it is read by itself."""
    alone = {turn.id for turn in [*turns(one), *turns(other)] if turn.state == "done"}
    both = {turn.id for turn in turns(one, other) if turn.state == "done"}

    assert alone == both


@settings(max_examples=100)
@given(LISTS, LISTS)
def test_a_longer_list_keeps_the_turns_of_a_shorter(one, more):
    """What is said later, from the next prompt on, changes no name."""
    longer = [*one, ("prompt", "new"), *more]

    assert {turn.id for turn in turns(one) if turn.state == "done"} <= {t.id for t in turns(longer)}


def test_an_id_of_its_own_stands_before_a_name():
    """People find the record in the source; the name alone makes it this one."""
    (node,) = chain.named([Link(Node("", None, "prompt"), "hi", "h-1")])

    assert "h-1." + chain.beginning([Link(Node("", None, "prompt"), "hi")]) == node.id


def test_what_python_reads_and_json_does_not_have_is_named_too():
    """Lone surrogates, numbers without end and keys in any order give a name, always the same."""
    one = chain.beginning([Link(Node("", None, "prompt"), {"a": "\ud800", "b": float("inf")})])

    assert one == chain.beginning(
        [Link(Node("", None, "prompt"), {"b": float("inf"), "a": "\ud800"})]
    )
