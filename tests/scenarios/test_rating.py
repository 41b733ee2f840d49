"""Turns are rated and labelled, in both faces and on both stores; forgetting and redacting reach that too."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import ledger
from ledger import errors


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def labels_of(face: Any, chat: Any) -> list[str]:
    """The labels of a conversation, awaited where they have to be."""
    found: list[str] = chat.labels if face.name == "blocking" else face.do(_awaited, chat.labels)
    return found


def test_ratings_and_labels_are_seen_by_everyone(face, store):
    """What one conversation object records another one reads, and the turn's own object at once."""
    chat = face.open("alex", store=store)
    turn = face.do(chat.record, "one", "1")
    other = face.do(chat.record, "two", "2")

    assert face.do(turn.rate, 4, by="maria", why="short") == turn
    face.do(turn.rate, True)
    face.do(turn.rate, 5, by="maria")
    assert face.do(turn.label, "good") == turn
    face.do(turn.label, "later")
    assert face.do(turn.unlabel, "later") == turn
    face.do(chat.label, "fractions")

    for seen in (turn, ledger.open("alex", store=store).turn(1)):
        assert [(r.value, r.by, r.why) for r in seen.ratings] == [
            (True, None, None),
            (5, "maria", None),
        ]
        assert all(r.at is not None and r.at.tzinfo is not None for r in seen.ratings)
        assert (seen.rating, seen.labels) == (5, ["good"])
    assert (other.rating, other.ratings, other.labels) == (None, [], [])
    assert labels_of(face, chat) == ["fractions"]
    face.do(chat.unlabel, "fractions")
    assert labels_of(face, chat) == []


def test_the_records_are_entries_of_our_own(face, store):
    """They are `ledger`/`rating` and `ledger`/`label` at their turn; a label that is so already adds nothing."""
    chat = face.open("alex", store=store)
    turn = face.do(chat.record, "one", "1")
    face.do(turn.rate, 0.5, by="judge")
    face.do(turn.label, "x")
    face.do(turn.label, "x")
    face.do(turn.unlabel, "y")
    face.do(chat.label, "x")

    kept = [r for r in store.read("alex") if r["kind"] == "entry"]
    assert [(r["plugin"], r["entry"], r.get("turn"), r["data"]) for r in kept] == [
        ("ledger", "rating", turn.id, {"value": 0.5, "by": "judge", "why": None}),
        ("ledger", "label", turn.id, {"label": "x", "on": True}),
        ("ledger", "label", None, {"label": "x", "on": True}),
    ]


def test_what_cannot_be_is_refused_and_records_nothing(face, store):
    """A value, a name, a reason or a label of the wrong kind is refused by name before anything is written."""
    chat = face.open("alex", store=store)
    turn = face.do(chat.record, "one", "1")
    before = store.read("alex")
    for error, call, args in (
        (TypeError, turn.rate, {"value": "five"}),
        (ValueError, turn.rate, {"value": float("nan")}),
        (TypeError, turn.rate, {"value": 1, "by": 7}),
        (TypeError, turn.rate, {"value": 1, "why": b"x"}),
        (ValueError, turn.label, {"text": "two\nlines"}),
        (ValueError, turn.unlabel, {"text": ""}),
        (TypeError, chat.label, {"text": None}),
        (ValueError, chat.unlabel, {"text": " x"}),
        (errors.RecordInvalid, turn.rate, {"value": 1, "why": "\ud800"}),
    ):
        with pytest.raises(error):
            face.do(call, **args)
    assert store.read("alex") == before


def test_a_turn_that_failed_can_be_rated(face, store):
    """A rating says something of any turn that is there, answered or not."""

    def program(message: str) -> str:
        raise ArithmeticError

    chat = face.open("alex", program, store=store)
    with pytest.raises(ArithmeticError):
        face.do(chat, "x")
    turn = ledger.open("alex", store=store).turn(1)

    assert turn.mean_rating is None
    assert turn.rate(False, why="it broke").rating is False
    assert turn.mean_rating == 0.0


def test_forgetting_a_turn_takes_what_was_said_of_it(face, store):
    """Its ratings and labels go with it, from the log too; then it takes no new ones. The others stay."""
    chat = face.open("alex", store=store)
    turn = face.do(chat.record, "one", "1")
    kept = face.do(chat.record, "two", "2")
    for each in (turn, kept):
        face.do(each.rate, 5, by="canary-by", why="canary-why")
        face.do(each.label, "canary-label")

    receipt = face.do(chat.forget, turn)

    assert receipt.erased.records["entry"] == 2
    assert (turn.ratings, turn.rating, turn.labels) == ([], None, [])
    assert store.raw("alex").count(b"canary") == 3
    for call, args in (
        (turn.rate, [1]),
        (turn.rate, [None]),
        (turn.label, ["x"]),
        (turn.unlabel, ["x"]),
    ):
        with pytest.raises(errors.TurnState, match="forgotten"):
            face.do(call, *args)
    assert kept.labels == ["canary-label"]


def test_a_turn_that_is_not_there(face, store):
    """A turn whose conversation was deleted meanwhile is refused as unknown; nothing is recorded."""
    chat = face.open("alex", store=store)
    turn = face.do(chat.record, "one", "1")
    store.delete("alex")
    with pytest.raises(errors.TurnUnknown):
        face.do(turn.rate, 1)
    assert store.read("alex") == []


def test_what_is_said_of_turns_is_redacted(face, store):
    """Reasons, names and labels go through `redact`; a label is found again by what it was, and taken off."""

    def mask(text: str) -> str:
        return text.replace("secret", "[gone]")

    chat = face.open("alex", store=store, redact=mask)
    turn = face.do(chat.record, "one", "1")
    face.do(turn.rate, 1, by="secret", why="a secret")
    face.do(turn.label, "secret")
    face.do(turn.label, "secret")
    face.do(chat.label, "secret")

    assert b"secret" not in store.raw("alex")
    assert [(r.by, r.why) for r in turn.ratings] == [("[gone]", "a [gone]")]
    assert turn.labels == ["[gone]"]
    face.do(turn.unlabel, "secret")
    face.do(chat.unlabel, "[gone]")
    assert (turn.labels, labels_of(face, chat)) == ([], [])


def test_two_who_rate_at_once_are_both_kept(face, store):
    """Ratings are appended whatever the log holds by then: nobody is refused."""
    chat = face.open("alex", store=store)
    turn = face.do(chat.record, "one", "1")
    running = [face.begin(turn.rate, n, by=f"p{n}") for n in range(8)]
    for each in running:
        each.result(60)

    assert {(r.by, r.value) for r in turn.ratings} == {(f"p{n}", n) for n in range(8)}
