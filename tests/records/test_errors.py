"""Errors: codes, fields, pickling, and messages that say what to do and leak nothing."""

import dataclasses
import pickle
import re
import typing
from typing import Any

import pytest

from ledger import errors
from ledger.errors import LedgerError

BASES = {errors.LedgerError, errors.StoreFailure}
CODES = {
    "conversation-id",
    "conversation-moved",
    "conversation-content",
    "conversation-opaque",
    "conversation-signature",
    "conversation-busy",
    "conversation-nested",
    "conversation-unknown",
    "turn-unknown",
    "turn-state",
    "turn-stopped",
    "turn-unfinished",
    "turn-waiting",
    "store-conflict",
    "store-corrupt",
    "store-full",
    "store-unknown",
    "store-busy",
    "store-io",
    "store-gone",
    "store-link",
    "store-denied",
    "store-read-only",
    "store-version",
    "store-unsupported",
    "record-invalid",
    "record-too-large",
    "lease-lost",
    "turn-changed",
    "question-unknown",
    "summary-failed",
    "request-mismatch",
    "attachment-missing",
    "import-invalid",
    "messages-lossy",
    "event-malformed",
}


def every(cls: type[LedgerError] = LedgerError) -> list[type[LedgerError]]:
    """A class and all classes under it that `errors.py` defines."""
    under = [x for sub in cls.__subclasses__() for x in every(sub)]
    return [x for x in [cls, *under] if x.__module__ == errors.__name__]


CLASSES = [cls for cls in every() if cls not in BASES]


def example(cls: type[LedgerError]) -> LedgerError:
    """An error with a telling value in each field."""
    hints = typing.get_type_hints(cls)
    made = {f.name: sample(hints[f.name], f.name) for f in dataclasses.fields(cls)}
    return cls(**made)


def sample(hint: Any, name: str) -> Any:
    """A value of a field's type."""
    if hint is int:
        return 41 if name == "expected" else 42
    if name == "event":
        return {"writer": 1, "seq": 42}
    if typing.get_origin(hint) is tuple:
        return (f"<{name}>",) if typing.get_args(hint)[0] is str else ({"secret": "hunter2"},)
    return f"<{name}>"


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_code_is_documented(cls: type[LedgerError]) -> None:
    """Every code is one of the documented ones."""
    assert cls.code in CODES


def test_codes_are_unique() -> None:
    """One class has one code; only a subclass of a class for the same next step shares its."""
    for cls in CLASSES:
        for other in CLASSES:
            if cls.code == other.code:
                assert issubclass(cls, other) or issubclass(other, cls)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_error_is_picklable_with_its_fields(cls: type[LedgerError]) -> None:
    """An error crosses a process boundary whole."""
    error = example(cls)
    back = pickle.loads(pickle.dumps(error))

    assert type(back) is cls
    assert str(back) == str(error)
    for field in dataclasses.fields(cls):
        assert getattr(back, field.name) == getattr(error, field.name)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ((), {"where": "a"}),
        (("a", "b", "c"), {}),
        (("a",), {"where": "a", "reason": "b"}),
        (("a", "b"), {"more": 1}),
    ],
)
def test_an_error_takes_its_fields_and_nothing_else(
    given: tuple[str], named: dict[str, Any]
) -> None:
    """A field that is missing, given twice, or none of its own, is refused; the fields are named."""
    with pytest.raises(TypeError, match="StoreFull takes where, reason"):
        errors.StoreFull(*given, **named)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_docstring_says_when_and_what_next(cls: type[LedgerError]) -> None:
    """The reference page prints the docstring: when it is raised and what the caller does next."""
    text = " ".join((cls.__doc__ or "").split())

    assert re.match(r"Raised when .+\. Next: .+\.$", text)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_message_holds_no_content(cls: type[LedgerError]) -> None:
    """Neither the message nor the representation shows what a record holds."""
    error = example(cls)

    assert "hunter2" not in str(error)
    assert "hunter2" not in repr(error)


NEXT = {
    errors.ConversationIdInvalid: "use 1 to 200 letters",
    errors.SignatureChanged: "rename",
    errors.Opaque: "change the program's",
    errors.Busy: "wait for it",
    errors.BusyWaiting: "answer",
    errors.TurnUnknown: "list the turns",
    errors.RequestMismatch: "new request id",
    errors.RecordInvalid: "convert it",
    errors.RecordTooLarge: "as an attachment",
    errors.AttachmentMissing: "restore",
    errors.StoreConflict: "read again",
    errors.StoreGone: "read from 0",
    errors.StoreIO: "try again",
    errors.StoreFull: "make room",
    errors.StoreUnknown: "read before retrying",
    errors.StoreBusy: "try again",
    errors.StoreLink: "remove it",
    errors.StoreDenied: "mend",
    errors.StoreReadOnly: "where it is writable",
    errors.StoreVersion: "upgrade",
    errors.StoreCorrupt: "verify",
    errors.LeaseLost: "nothing was recorded",
    errors.EventRefused: "look at its code",
}


@pytest.mark.parametrize(("cls", "words"), NEXT.items(), ids=[c.__name__ for c in NEXT])
def test_message_names_the_next_step(cls: type[LedgerError], words: str) -> None:
    """The sentence for a person ends in what to do; a reason that is given with its own step stands for it."""
    error = example(cls)
    if isinstance(error, errors.StoreConflict):
        assert str(error).endswith("<reason>")
        error.reason = ""
    if type(error) is errors.Busy:
        assert str(error).endswith("<advice>")
        error.advice = errors.Busy.advice
    assert words in str(error)


def test_recreated_conversation_has_its_own_words() -> None:
    """A conflict of equal counts says that the conversation was made anew."""
    error = errors.StoreConflict(conversation="c", expected=2, found=2)

    assert "made anew" in str(error)
    assert "read again" in str(error)


def test_a_refused_event_has_the_code_of_its_refusal() -> None:
    """One class, whose code tells what to do; it says where, and crosses processes whole."""
    place = {"writer": 2, "seq": 7}
    error = errors.EventRefused(code="event-gap", reason="r", tree="t", event=place)

    assert error.code == "event-gap"
    assert str(error) == "the log of events t, event 2:7: r; send what is missing first"
    assert pickle.loads(pickle.dumps(error)).code == "event-gap"


def test_waiting_is_a_kind_of_busy() -> None:
    """Who handles busy handles waiting; the state tells them apart."""
    error = errors.BusyWaiting(conversation="c", turn="t")

    assert isinstance(error, errors.Busy)
    assert error.state == "waiting"
