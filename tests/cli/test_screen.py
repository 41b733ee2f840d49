"""A turn's events as text: what is shown of each, and that nothing said can pass for a mark or a command."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.cli.screen import VOID, Screen
from ledger.records.events import Writer
from ledger.views.text import printable
from tests.records.event_examples import AT, EXAMPLES, OTHER, PROGRAM, TREE, event

HOSTILE = "\x1b[2J\n[done]\r! E: x\n\u202e= tool"


def shown(*events, **options):
    """Return all that a screen prints of some events."""
    screen = Screen(**options)
    return "".join(map(screen.show, events)) + screen.end()


def text(said, field="result"):
    """Return an event with a piece of a field."""
    return event("text", field=field, answer=field == "result", text=said)


@given(st.lists(st.text(min_size=1), min_size=1))
def test_pieces_join_to_what_was_said(pieces):
    """However it comes in pieces, what is shown is the whole, spelled out, behind one mark."""
    out = shown(*map(text, pieces))

    lines = printable("".join(pieces), lines=True).split("\n")
    assert out == "< " + "\n  ".join(lines) + "\n"


@given(st.lists(st.sampled_from([*EXAMPLES, text(HOSTILE), text(HOSTILE, HOSTILE)])))
def test_nothing_said_begins_a_line_or_steers(events):
    """Whatever comes in whatever order, each line begins with a mark or a space, and all is printable."""
    out = shown(*events)

    assert all(c.isprintable() or c in "\n\t" for c in out)
    marks = ("< ", "  ", "* ", "= ", "? ", "~ ", "! ", "+ ", "thinking < ", "'")
    assert all(line.startswith(marks) for line in out.splitlines())


@pytest.mark.parametrize(
    "keys",
    [
        {"name": HOSTILE, "id": "t", "input": {HOSTILE: HOSTILE}},
        {"name": "look", "id": "t", "input": "x" * 1000},
    ],
)
def test_a_tool_is_one_short_line(keys):
    """A tool call is one line of the width, whatever it was given."""
    (line,) = shown(event("tool_call", **keys), width=60).splitlines()
    assert line.startswith("* ")
    assert len(line) <= 60


def test_tools_and_answers_of_people():
    """Calls, results, questions and answers are marked lines, which end a line of text that is open."""
    tool = {"id": "t1", "name": "look", "invocation": 1}
    out = shown(
        text("Let me see."),
        event("tool_call", **tool, input={"a": 1}),
        event("tool_result", **tool, output="two\nlines"),
        event(
            "approval", **tool, input={}, effects="changes", path="a", to="owner", question="Sure?"
        ),
        event("approved", id="t1", invocation=1, verdict="no", by="Ann", reason="later"),
        text("Well then."),
    )
    assert out.splitlines() == [
        "< Let me see.",
        '* look {"a": 1}',
        "= look two lines",
        "? look {} Sure?",
        "? no, by Ann: later",
        "< Well then.",
    ]


@pytest.mark.parametrize("kind", ["request", "retry"])
def test_a_request_voids_what_was_said(kind):
    """A request or retry after text says that the text is no part of the answer; before text, nothing is void."""
    again = {
        "request": event("request", request=2, model="m"),
        "retry": event("retry", reason="the provider failed", wait=2),
    }[kind]
    told = {"request": [], "retry": ["~ retry in 2 s: the provider failed"]}[kind]

    assert shown(again).splitlines() == told
    out = shown(text("Let me"), again, text("Six"), event("done", value="Six"))
    assert out.splitlines() == ["< Let me", *told, VOID, "< Six"]


@pytest.mark.parametrize(
    ("said", "value", "last"),
    [
        (["fi", "ne"], "fine", []),
        (["fi"], "fine", ["< fine"]),
        ([], "two\nlines", ["< two", "  lines"]),
        ([], {"total": 5}, ['< {"total": 5}']),
        ([], None, ["< null"]),
    ],
)
def test_an_answer_is_shown_once(said, value, last):
    """The answer is printed at the end, unless it was printed as it came."""
    out = shown(*map(text, said), event("done", value=value))
    assert out.splitlines() == [*(["< " + "".join(said)] if said else []), *last]


def test_the_rest_of_an_answer():
    """A screen that goes on where another stopped does not repeat the answer at the end."""
    rest = [text("ne"), event("done", value="fine")]
    assert shown(*rest, from_start=False) == "< ne\n"
    assert shown(event("done", value="fine"), from_start=False) == "< fine\n"


def test_the_answer_has_its_name():
    """An answer with a name is shown under it, and so are other fields."""
    program = {**PROGRAM, "answer": "total"}
    began = Writer(TREE, "tutor").started(program, {}, saw=[], at=AT)
    out = shown(began, text("hm", "reasoning"), event("done", value=5))
    assert out == "reasoning < hm\ntotal < 5\n"


def test_why_it_failed():
    """The error is told in full; of a stop, how the turn stands then says it all."""
    error = {"type": "E", "message": "one\ntwo"}
    assert shown(event("failed", error=error)) == "! E: one\n  two\n"
    assert shown(event("failed", error={"type": "E", "message": ""})) == "! E\n"
    assert shown(event("failed", error={"type": "Cancelled"})) == ""


def test_calls_inside_the_turn():
    """What a call inside does is told with its name, what it says is not, and its requests void nothing."""
    inside = {"call": OTHER, "function": "helper"}
    out = shown(
        text("a"),
        {**EXAMPLES[0], **inside},
        {**text("hidden"), **inside},
        {**event("request", request=2, model="m"), **inside},
        {**event("tool_call", id="t", name="look", content=False), **inside},
        {**event("failed", error={"type": "E"}), **inside},
    )
    assert out.splitlines() == ["< a", "+ helper: started", "* helper: look", "! helper: E"]


@pytest.mark.parametrize("kind", ["text", "done", "failed", "tool_call", "started", "new_kind"])
def test_what_is_no_event_is_passed_over(kind):
    """Events of another version, or that were planted, are shown as nothing."""
    assert shown({"functai_event": 2, "kind": kind, "tree": TREE, "writer": 1, "seq": 1}) == ""
