"""A list of messages is cut into turns, and turns are compared by what they say."""

import copy
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.records import messages, transcripts
from ledger.records.transcripts import cut, digest, is_whole


def said(role, *parts):
    """A message: text, or parts as they are."""
    return {
        "role": role,
        "parts": [{"type": "text", "content": p} if isinstance(p, str) else p for p in parts],
    }


def call(id, name="look", arguments=None):
    return {"type": "tool_call", "id": id, "name": name, "arguments": arguments or {}}


def result(id, response="found"):
    return said("tool", {"type": "tool_call_response", "id": id, "response": response})


def sizes(found):
    """How many messages each piece has: the instructions, each turn, what is left over."""
    return len(found.instructions), [len(turn) for turn in found.turns], len(found.left)


S, D, U, A = (said(role, role) for role in ("system", "developer", "user", "assistant"))
C, R = said("assistant", call("c1")), result("c1")

CUTS = [
    ("nothing", [], (0, [], 0)),
    ("one turn", [U, A], (0, [2], 0)),
    ("instructions are no turn", [S, D, U, A], (2, [2], 0)),
    ("only instructions", [S], (1, [], 0)),
    ("a question without an answer", [S, U], (1, [], 1)),
    ("two turns", [U, A, U, A], (0, [2, 2], 0)),
    ("an open tail", [U, A, U], (0, [2], 1)),
    ("users in a row are one side", [U, U, A], (0, [3], 0)),
    ("a greeting is a turn", [A, U, A], (0, [1, 2], 0)),
    ("a tool round", [U, C, R, A], (0, [4], 0)),
    ("a call without a result", [U, C], (0, [], 2)),
    ("a result without an answer", [U, C, R], (0, [], 3)),
    ("closed by what follows", [U, C, R, U, A], (0, [3, 2], 0)),
    ("closed without a result", [U, C, U, A], (0, [2, 2], 0)),
    ("a late result is in its call's turn", [U, C, U, R, A], (0, [5], 0)),
    ("a developer between turns begins one", [U, A, D, U, A], (0, [2, 3], 0)),
    ("ids that come again", [U, C, R, A, U, C, R, A], (0, [4, 4], 0)),
    ("an id called again closes its earlier call", [U, C, U, C, R, A], (0, [2, 4], 0)),
]


@pytest.mark.parametrize("given, found", [row[1:] for row in CUTS], ids=[row[0] for row in CUTS])
def test_where_a_list_is_cut(given, found):
    """Each rule of the cut, by how many messages the pieces have."""
    assert sizes(cut(given)) == found


def test_behind_a_turn_nothing_is_an_instruction():
    """A list that goes on behind a turn has a system's message as a part of the next one."""
    assert sizes(cut([S, U, A], begun=True)) == (0, [3], 0)


EACH = st.sampled_from([S, D, U, A, C, R, said("assistant", call("c2")), result("c2")])


@given(st.lists(EACH, max_size=14))
def test_the_pieces_are_the_list(given):
    """In order, the pieces are the list; each turn but the first begins with a user's side, behind an answer."""
    found = cut(given)

    assert [*found.instructions, *[m for t in found.turns for m in t], *found.left] == given
    pieces = [*found.turns, *([found.left] if found.left else [])]
    assert all(pieces)
    for before, turn in pairwise(pieces):
        assert turn[0]["role"] in messages.USER_SIDE
        assert before[-1]["role"] not in messages.USER_SIDE
    assert not found.left or not is_whole(found.left)


@given(st.lists(EACH, max_size=14))
def test_calls_and_results_stay_together(given):
    """The latest call under an id before a result is in the result's turn."""
    found = cut(given)
    home = [i for i, turn in enumerate([*found.turns, found.left]) for _ in turn]
    body = given[len(found.instructions) :]
    for at, message in enumerate(body):
        for part in message["parts"]:
            if part["type"] != "tool_call_response":
                continue
            earlier = [
                i
                for i, other in enumerate(body[:at])
                if any(p["type"] == "tool_call" and p["id"] == part["id"] for p in other["parts"])
            ]
            between = [
                i
                for i, other in enumerate(body[:at])
                if any(
                    p["type"] == "tool_call_response" and p["id"] == part["id"]
                    for p in other["parts"]
                )
            ]
            if earlier and not any(i > earlier[-1] for i in between):
                assert home[earlier[-1]] == home[at]


@given(st.lists(EACH, max_size=10), st.lists(EACH, max_size=6))
def test_what_is_whole_stays_whole(given, more):
    """A longer list has the turns of the shorter one, but its last, unless a late result joins them."""
    late = any(m["role"] == "tool" for m in more)
    short, long = cut(given).turns, cut([*given, *more]).turns
    if short and not late:
        assert long[: len(short) - 1] == short[:-1]
    if not late and more and more[0]["role"] == "user":
        assert long[: len(short)] == short


SAME = [
    ("what one provider understands", lambda t: t[0].update(only={"x": {"mark": 1}})),
    ("the same in a part", lambda t: t[0]["parts"][0].update(only={"x": {"mark": 1}})),
    ("why it ended", lambda t: t[-1].update(finish_reason="stop")),
    (
        "ids of calls",
        lambda t: (t[1]["parts"][0].update(id="z"), t[2]["parts"][0].update(id="z")),
    ),
    (
        "how parts are grouped",
        lambda t: t.append({"role": "assistant", "parts": [t[3]["parts"].pop()]}),
    ),
]
OTHER = [
    ("a text", lambda t: t[0]["parts"][0].update(content="other")),
    ("an argument", lambda t: t[1]["parts"][0].update(arguments={"n": True})),
    ("a result", lambda t: t[2]["parts"][0].update(response="other")),
    ("whose result", lambda t: t[2]["parts"][0].update(id="c9")),
    ("a role", lambda t: t[0].update(role="developer")),
    ("a name", lambda t: t[0].update(name="Ada")),
    ("a part less", lambda t: t[3]["parts"].pop()),
]


def exchange():
    return [U, said("assistant", call("c1", arguments={"n": 1})), R, said("assistant", "a", "b")]


@pytest.mark.parametrize("change", [row[1] for row in SAME], ids=[row[0] for row in SAME])
def test_what_is_not_compared(change):
    """What changes on the way through a provider and back makes no other turn."""
    changed = copy.deepcopy(exchange())
    change(changed)

    assert digest(changed) == digest(exchange())


@pytest.mark.parametrize("change", [row[1] for row in OTHER], ids=[row[0] for row in OTHER])
def test_what_is_compared(change):
    """Anything that was said makes another turn; 1 and true are not the same."""
    changed = copy.deepcopy(exchange())
    change(changed)

    assert digest(changed) != digest(exchange())


def test_the_texts_of_a_turn():
    """What the user asked, all of it; what the assistant said last."""
    turn = [U, said("user", "one", "two"), said("assistant", "wait", call("c")), result("c"), A]

    assert transcripts.asked(turn) == "user\n\none\ntwo"
    assert transcripts.answered(turn) == "assistant"
    assert transcripts.answered([U, said("assistant", call("c")), result("c")]) == ""
