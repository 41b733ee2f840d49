"""What a caller may ask for, and how it is told no: the same in both faces."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import ledger
from ledger import errors
from tests.scenarios.support import asked, view

ROOT = Path(__file__).resolve().parents[2]


def echo(message: str) -> str:
    """A program that answers with the question."""
    return message


# -- settings --------------------------------------------------------------------------------------


@ledger.program(settings=["tone"])
def toned(message: str) -> str:
    """A program with a setting that is recorded."""
    return str(sorted(ledger.current().settings))


def test_an_unknown_setting_is_refused_by_every_verb(face, store):
    """A setting that was not named at `open` or by the program is a TypeError, and nothing is recorded."""
    chat = face.open("alex", toned, store=store, key="k")

    for verb, given in ((chat.send, {"ml": "a"}), (chat.tries, {"settings": [{}, {"ml": "a"}]})):
        with pytest.raises(TypeError, match="'ml'"):
            face.do(verb, "hi", **given)
    with pytest.raises(TypeError, match="'message' is an input"):
        face.do(chat.tries, settings=[{"message": "hi"}])
    assert view(store).all_turns() == []

    known = {"lm": "a", "tone": "b", "key": "c"}
    tried = face.do(chat.tries, "hi", settings=[known])
    assert [turn.result for turn in tried] == ["['key', 'lm', 'tone']"]


def test_a_parameter_that_a_send_takes_itself_is_refused(face, store):
    """A parameter `request_id` could never be given by name: such a program is refused when it is opened."""

    def program(message: str, request_id: str = "") -> str:
        return message

    with pytest.raises(TypeError, match="'request_id', which sends take themselves"):
        face.open("alex", program, store=store)

    def by_place(request_id: str, /) -> str:
        return request_id

    assert face.do(face.open("alex", by_place, store=store), "mine", request_id="r") == "mine"


def test_a_helper_may_take_a_request_id(face, store):
    """Only sends take `request_id`: a helper is called as it is written."""

    @ledger.program
    def helper(request_id: str) -> str:
        return request_id

    def program(message: str) -> str:
        return helper(request_id=message)

    assert face.do(face.open("alex", program, store=store), "hi") == "hi"


def test_a_parameter_called_settings_is_given_by_its_place(face, store):
    """A program may have an input `settings`; where `tries` takes that keyword, its place gives it."""

    def program(message: str, settings: dict[str, int]) -> int:
        return settings["x"]

    chat = face.open("alex", program, store=store)

    assert face.do(chat, "hi", settings={"x": 1}) == 1
    tried = face.do(chat.tries, "hi", {"x": 2}, settings=[{"lm": "a"}])
    assert [turn.result for turn in tried] == [2]


# -- places ----------------------------------------------------------------------------------------


def test_a_view_before_the_first_turn(face, store):
    """`continue_from(None)` stands before the first turn: its next turn begins a line, then it follows that."""
    chat = face.open("alex", echo, store=store)
    face.do(chat.send, "one")
    ledger.open("alex", store=store).keep_entry("app", "note", "at 1", turn=1)
    ledger.open("alex", store=store).keep_entry("app", "note", "everywhere")

    fresh = face.do(chat.continue_from, None) if face.name == "aio" else chat.continue_from(None)
    plain = view(store).continue_from(None)
    assert (plain.turns, plain.head, plain.render().rows) == ([], None, [])
    assert [entry["data"] for entry in plain.entries("app", "note")] == ["everywhere"]

    other = face.do(fresh.send, "two")
    then = face.do(fresh.send, "three")
    assert (other.parent, then.parent) == (None, other)
    assert face.do(chat.send, "four").parent == view(store).turn(1)
    assert asked(view(store).continue_from(then).turns) == ["two", "three"]


EVENT_PLACES = [{"writer": 1, "seq": 1}, {"writer": 1.0, "seq": 1.0, "kind": "started"}, "1:1"]


async def all_of(events):
    """Give all that comes."""
    return [event async for event in events]


@pytest.mark.parametrize("place", EVENT_PLACES, ids=str)
def test_events_after_a_place(face, store, place):
    """The place of an event is its writer and seq, an event that has them, or both as text."""
    turn = face.do(face.open("alex", echo, store=store).send, "hi")

    def kinds(after):
        events = turn.events(after)
        return [e["kind"] for e in (face.do(all_of, events) if face.name == "aio" else events)]

    assert kinds(None) == ["started", *kinds(place)]


@pytest.mark.parametrize(
    "place, error",
    [
        ("1", ValueError),
        ("1:x", ValueError),
        ("", ValueError),
        (7, TypeError),
        ({"writer": 1}, TypeError),
        ({"writer": True, "seq": 1}, TypeError),
        ({"writer": "1", "seq": 1}, TypeError),
    ],
)
def test_what_is_no_place_is_refused(face, store, place, error):
    """Anything else is refused, and told what a place is."""
    turn = face.do(face.open("alex", echo, store=store).send, "hi")

    with pytest.raises(error, match="an event is named by its writer and seq"):
        face.do(all_of, turn.events(place)) if face.name == "aio" else list(turn.events(place))


# -- inside a turn ---------------------------------------------------------------------------------


def test_a_conversation_inside_another_is_refused_with_the_way_out(face, store):
    """Whatever makes a turn inside a turn is refused alike; what the refusal says to do works."""
    diary = ledger.open("diary", store=store)

    def program(message: str) -> str:
        return diary.record(message, "noted").id

    chat = face.open("alex", program, store=store)
    with pytest.raises(errors.Nested) as caught:
        face.do(chat, "hi")

    assert (caught.value.conversation, caught.value.inside) == ("diary", "alex")
    assert "sent" not in str(caught.value)
    assert 'open alex with remembers={<conversation diary>: "own"}' in str(caught.value)
    allowed = face.open("alex", program, store=store, remembers={diary: "own"})
    assert face.do(allowed, "hi") == diary.head.id


def test_a_conversation_inside_itself_is_refused(face, store):
    """Of the turn's own conversation it is told that it could wait for itself."""

    def program(message: str) -> str:
        return ledger.open("alex", echo, store=store)(message)

    with pytest.raises(errors.Nested, match="could wait for itself; make it outside of programs"):
        face.do(face.open("alex", program, store=store), "hi")


# -- merging ---------------------------------------------------------------------------------------


class Verdict(NamedTuple):
    """Several outputs."""

    why: str
    what: str


def test_a_merge_of_several_outputs(face, store):
    """A merging program returns the outputs as the conversation's program does; else it is told what to return."""

    def judge(message: str) -> Verdict:
        return Verdict("because", message)

    chat = face.open("alex", judge, store=store)
    turns = [face.do(chat.send, message) for message in ("a", "b")]

    with pytest.raises(errors.RecordInvalid) as caught:
        face.do(chat.merge, turns, lambda answers: "just text")
    assert caught.value.reason == (
        "an answer of judge is Verdict(why, what), or a tuple of these, not str"
    )
    merged = face.do(chat.merge, turns, lambda answers: Verdict("both", answers[0]["result"]))
    assert merged.outputs == {"why": "both", "what": "a"}


# -- loading ---------------------------------------------------------------------------------------


def test_a_folder_is_opened_on_a_loop_without_loading():
    """Once `ledger.aio` is imported, opening the first folder loads no module of ours any more."""
    code = (
        "import sys, ledger.aio; before = set(sys.modules); "
        "ledger.aio.open('a', lambda message: message, store='nowhere'); "
        "print([m for m in set(sys.modules) - before if m.startswith(('ledger', 'filelock', 'portal'))])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
