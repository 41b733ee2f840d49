"""Nothing that `redact` takes out reaches a store: no record, no event, no name of a file, no error that is told."""

from __future__ import annotations

import base64
import re
import threading
from pathlib import Path
from typing import Any

import pytest

import ledger
from ledger import errors

EMAIL = "alex@example.com"
MASK = "[e-mail]"


def mask(text: str) -> str:
    """Replace e-mail addresses."""
    return re.sub(r"[\w.+-]+@[\w-]+(\.[\w-]+)+", MASK, text)


def kept(store: Any) -> str:
    """All that a folder keeps: its files' names, and every byte of them."""
    files = sorted(path for path in Path(store.folder).rglob("*") if path.is_file())
    assert files
    names = "\n".join(str(path.relative_to(store.folder)) for path in files)
    return names + "".join(path.read_bytes().decode("latin-1") for path in files)


@pytest.fixture
def store(tmp_path):
    """A folder."""
    return ledger.FolderStore(tmp_path / "s")


def events_of(face: Any, turn: Any) -> list[dict[str, Any]]:
    """The events of a turn that ended."""
    if face.name == "blocking":
        return list(turn.events())

    async def all_() -> list[dict[str, Any]]:
        return [event async for event in turn.events()]

    found: list[dict[str, Any]] = face.do(all_)
    return found


def everything(message: str, cc: str = EMAIL) -> str:
    """Put the address everywhere that a program can put it."""
    turn = ledger.current()
    turn.note(messages={"role": "assistant", "parts": [{"type": "text", "content": EMAIL}]})
    turn.emit(f"to {EMAIL}")
    asked = turn.reply({"to": EMAIL}, lambda: {"said": [EMAIL]})
    found = turn.tool("send", {"to": EMAIL}, lambda: {"sent": EMAIL}, id="c")
    assert (asked, found) == ({"said": [EMAIL]}, {"sent": EMAIL})
    assert helper({"who": EMAIL}) == [EMAIL]
    assert turn.messages()[-1]["parts"][0]["content"] == EMAIL  # What is live is live.
    return f"sent to {message}"


@ledger.program
def helper(of: dict[str, str]) -> list[str]:
    """Remember what it is given."""
    ledger.current().tool("look", EMAIL, lambda: EMAIL, effects="reads")
    return [of["who"]]


def test_nothing_reaches_the_disk(face, store):
    """Inputs, outputs, messages, steps, helpers, pieces, settings, entries, titles, errors, summaries, merges."""

    def failing(message: str, cc: str = EMAIL) -> str:
        ledger.current().emit(f"{EMAIL} {EMAIL}")
        raise ValueError(f"no such person: {EMAIL}")

    def summarize(earlier: str, rows: list[Any]) -> str:
        return f"{earlier} {EMAIL}"

    how: dict[str, Any] = {"store": store, "redact": mask, "remembers": {helper: "conversation"}}
    chat = face.open("alex", everything, lm=f"of {EMAIL}", **how)
    user = {"role": "user", "parts": [{"type": "text", "content": EMAIL}]}
    assert face.do(chat, EMAIL, messages=[user]) == f"sent to {EMAIL}"
    turn = face.do(chat.send, EMAIL)
    events_of(face, turn)
    both = {"message": EMAIL, "cc": EMAIL}
    face.do(chat.record, both, {"result": [EMAIL]}, messages=[user])
    face.do(chat.set_title, EMAIL)
    face.do(chat.keep_entry, "mine", "note", {"text": EMAIL})
    broken = face.open("alex", failing, **how)
    with pytest.raises(ValueError, match=EMAIL) as caught:
        face.do(broken, EMAIL)
    assert caught.value.args == (f"no such person: {EMAIL}",)  # The program's own, as it raised it.
    face.do(face.open("alex", store=store, redact=mask).merge, [1, 2], ledger.merging.text(EMAIL))
    rule = ledger.compacted(summarize, keep_last=1, every=1)
    long = face.do(face.open("alex", everything, context=rule, **how).continue_from, 3)
    assert face.do(long, EMAIL)

    assert EMAIL not in kept(store)
    turns = face.do(chat.all_turns)
    assert turns[0].inputs == {"message": MASK, "cc": MASK}
    assert turns[0].result == f"sent to {MASK}"
    assert turns[-1].saw_summary == f" {MASK}"
    failed = next(turn for turn in turns if turn.state == "failed")
    assert failed.error == {"type": "ValueError", "message": f"no such person: {MASK}"}
    assert failed.partial == f"{MASK} "
    assert EMAIL not in str([events_of(face, turn) for turn in turns])


def pieces_of(face: Any, stream: Any) -> str:
    """What a stream says, joined."""
    if face.name == "blocking":
        with stream:
            return "".join(stream)

    async def all_() -> str:
        async with stream:
            return "".join([piece async for piece in stream])

    found: str = face.do(all_)
    return found


@pytest.mark.parametrize("cut", range(len(EMAIL) + 1))
def test_an_address_that_is_said_in_pieces(face, store, cut):
    """Wherever a stream cuts it, the caller has the pieces as they are, and what is kept has them redacted whole."""

    def answer(message: str) -> Any:
        yield "Ask "
        yield EMAIL[:cut]
        ledger.current().tool("look", cut, lambda: "x", effects="reads")
        yield EMAIL[cut:]
        yield "!"

    chat = face.open("alex", answer, store=store, redact=mask)
    stream = chat.stream("who?")
    assert pieces_of(face, stream) == f"Ask {EMAIL}!"
    turn = stream.turn
    said = "".join(e["text"] for e in events_of(face, turn) if e["kind"] == "text")

    assert face.result(stream) == f"Ask {EMAIL}!"
    assert (turn.result, said) == (f"Ask {MASK}!", f"Ask {MASK}!")
    assert all(part not in kept(store) for part in (EMAIL, "alex@", "@example", "example.com"))


@pytest.mark.parametrize("cut", range(1, len(EMAIL)))
def test_a_text_that_breaks_off(store, cut):
    """Of a text that was stopped in the middle of a word that word is left out: nobody knows what it was to be."""
    said = threading.Event()

    def answer(message: str) -> str:
        ledger.current().emit(f"Ask {EMAIL[:cut]}")
        said.set()
        while not ledger.current().stopped:
            said.wait(0.01)
        return EMAIL

    chat = ledger.open("alex", answer, store=store, redact=mask)
    stream = chat.stream("who?")
    assert said.wait(20)
    assert stream.turn.partial is None  # Nothing of it is kept before it ends.
    stream.close()

    assert (stream.turn.state, stream.turn.partial) == ("stopped", "Ask ")
    assert f"Ask {EMAIL[:cut]}" not in kept(store)


def test_a_question_and_its_answer(face, store):
    """What a person is asked and says is redacted; the tool is called with what it was asked about, redacted too,
    since who goes on with a turn has nothing else."""
    sent: list[Any] = []

    def answer(message: str) -> str:
        def send() -> str:
            sent.append(message)
            return f"sent to {message}"

        return str(ledger.current().tool("send", {"to": message}, send))

    how: dict[str, Any] = {"store": store, "redact": mask, "approve": "changes"}
    chat = face.open("alex", answer, **how)
    with pytest.raises(errors.TurnWaiting) as caught:
        face.do(chat, EMAIL)
    assert EMAIL not in str(caught.value)
    assert EMAIL not in str(caught.value.questions)
    turn = face.do(chat.turn, 1)
    assert turn.waiting[0]["input"] == {"to": MASK}
    face.do(turn.approve, by=EMAIL, reason=f"for {EMAIL}")

    assert face.do(turn.resume) == f"sent to {MASK}"
    assert sent == [MASK]
    assert EMAIL not in kept(store)


def test_a_rule_that_is_a_function_is_asked_about_the_call_itself(store):
    """A function that decides at once decides on what the tool will be given, not on what is kept of it."""
    asked: list[Any] = []

    def rule(question: dict[str, Any]) -> str:
        asked.append(question["input"])
        return f"not to {EMAIL}"

    def answer(message: str) -> str:
        return str(ledger.current().tool("send", {"to": message}, lambda: "sent"))

    chat = ledger.open("alex", answer, store=store, redact=mask, approve=rule)

    assert chat(EMAIL) == f"This call was not allowed. Reason: not to {EMAIL}"
    assert asked == [{"to": EMAIL}]
    assert EMAIL not in kept(store)


def test_who_goes_on_redacts_too(face, store):
    """A turn whose texts are redacted is gone on with by who redacts, and by nobody else."""

    def answer(message: str) -> str:
        turn = ledger.current()
        paid = turn.reply({"ask": message}, lambda: f"reply to {message}")
        return str(turn.tool("send", {"paid": paid}, lambda: paid))

    how: dict[str, Any] = {"store": store, "approve": "changes"}
    with pytest.raises(errors.TurnWaiting):
        face.do(face.open("alex", answer, redact=mask, **how), EMAIL)
    without = face.do(face.open("alex", answer, **how).turn, 1)
    face.do(without.approve)

    with pytest.raises(errors.TurnState, match="redact"):
        face.do(without.resume)
    left = face.do(face.open("alex", answer, **how).resume_all)
    assert (left, list(left.left)) == ([], [without.id])
    (turn,) = face.do(face.open("alex", answer, redact=mask, **how).resume_all)
    assert turn.result == f"reply to {MASK}"
    assert EMAIL not in kept(store)


def test_a_request_that_is_sent_again(face, store):
    """Sent again under its id it is the same turn, by what is kept of it: that is all there is to compare."""

    def answer(message: str) -> str:
        return f"to {message}"

    chat = face.open("alex", answer, store=store, redact=mask)
    assert face.do(chat, EMAIL, request_id="r") == f"to {EMAIL}"
    assert face.do(chat, EMAIL, request_id="r") == f"to {MASK}"
    assert face.do(chat, "other@example.com", request_id="r") == f"to {MASK}"
    with pytest.raises(errors.RequestMismatch):
        face.do(chat, "nobody", request_id="r")
    assert len(face.do(chat.all_turns)) == 1


@pytest.mark.parametrize("broken", ["raises", "no text"])
def test_a_function_that_fails_refuses_the_turn(face, store, broken):
    """If it fails on what is sent, nothing is recorded; on what was answered, the turn fails; no text is told."""

    def redact(text: str) -> Any:
        if EMAIL not in text:
            return text
        if broken == "raises":
            raise ValueError(text)
        return None

    def answer(message: str) -> str:
        ledger.current().emit(f"{EMAIL} !")
        return f"{message} {EMAIL}"

    chat = face.open("alex", answer, store=store, redact=redact)
    with pytest.raises(errors.RecordInvalid, match=r"inputs\.message: redact") as caught:
        face.do(chat, EMAIL)
    assert EMAIL not in str(caught.value)
    assert store.read("alex") == []

    with pytest.raises(errors.RecordInvalid, match=r"outputs\.result: redact") as caught:
        face.do(chat, "x")
    (turn,) = face.do(chat.all_turns)
    assert (turn.state, turn.error["code"], turn.partial) == ("failed", "record-invalid", None)
    assert EMAIL not in str(caught.value) + kept(store)


def test_one_that_always_fails_still_ends_its_turns(store):
    """A function that fails from now on cannot keep a turn from ending: it ends without what could not be kept."""
    fails = False

    def redact(text: str) -> str:
        if fails:
            raise ValueError(text)
        return text

    def answer(message: str) -> str:
        nonlocal fails
        fails = True
        return EMAIL

    chat = ledger.open("alex", answer, store=store, redact=redact)
    with pytest.raises(errors.RecordInvalid):
        chat("x")

    (turn,) = chat.all_turns()
    assert (turn.state, turn.error) == ("failed", {"type": "RecordInvalid"})


def test_what_is_shown_before_is_what_would_be_kept(face, store):
    """`render` shows inputs as they would be recorded."""
    chat = face.open("alex", everything, store=store, redact=[mask, str.upper])

    assert face.do(chat.render, EMAIL).inputs == dict.fromkeys(("message", "cc"), MASK.upper())
    with pytest.raises(TypeError, match="redact"):
        face.open("alex", everything, store=store, redact="e-mail")


# -- where a text hides -------------------------------------------------------------------------------


def hidden(tmp_path, act):
    """Do something in a conversation whose e-mail addresses are masked. Returns: every byte that was written."""
    chat = ledger.open("c", lambda message: message, store=tmp_path / "s", redact=mask_addresses)
    act(chat)
    files = [path for path in (tmp_path / "s").rglob("*") if path.is_file()]
    return b"\n".join(path.read_bytes() + str(path).encode() for path in files)


def mask_addresses(text):
    """Mask e-mail addresses."""
    return re.sub(r"[\w.]+@[\w.]+", "[e-mail]", text)


def test_a_text_that_is_cut_is_cut_between_words(tmp_path):
    """Half an address is no address that a function knows: what is too long ends before the word."""

    def raises(message: str) -> str:
        turn = ledger.current()
        told = "y" * 9_980 + " alex.very.private@example.com"

        def tool():
            raise ValueError(told)

        return turn.tool("t", {}, tool)

    chat = ledger.open("c", raises, store=tmp_path / "s", redact=mask_addresses)
    with pytest.raises(ValueError, match="private"):
        chat("hi")
    written = b"".join(p.read_bytes() for p in (tmp_path / "s").rglob("*") if p.is_file())
    assert b"private" not in written
    assert b"y" * 9_980 in written


def test_arguments_spelled_otherwise_are_redacted(tmp_path):
    """JSON in a text may spell a text so that no function knows it: it is redacted as what it says."""
    call = {"name": "mail", "arguments": '{"to": "zoe.secret\\u0040example.com"}'}
    said = [
        {"role": "user", "content": "write"},
        {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": "a", "content": "sent"},
        {"role": "assistant", "content": "done"},
    ]
    written = hidden(tmp_path, lambda chat: chat.sync(said, format="openai"))
    assert b"[e-mail]" in written
    assert b"zoe.secret" not in written


def test_documents_that_are_text_are_redacted(tmp_path):
    """A plain text document is text, wherever it is kept; so is the name of a file."""
    text = {"type": "text", "media_type": "text/plain", "data": "mail yan.doe@example.com"}
    said = [
        {"role": "user", "content": [{"type": "document", "source": text, "title": "a.b@c.de"}]},
        {"role": "assistant", "content": "read"},
    ]
    written = hidden(tmp_path, lambda chat: chat.sync(said, format="anthropic"))
    assert b"yan.doe" not in written
    assert base64.b64encode(b"yan.doe")[:8] not in written
    assert b"a.b@c.de" not in written
    part = {"type": "uri", "modality": "document", "uri": "https://x", "name": "pia@e.com.pdf"}
    messages = [{"role": "user", "parts": [part]}]
    written = hidden(tmp_path / "2", lambda chat: chat.send("hi", messages=messages))
    assert b"pia@e.com" not in written
