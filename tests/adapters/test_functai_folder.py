"""One folder, two libraries: each opens and continues what the other wrote."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from functai import Cancelled, ConversationError, Waiting, ai, module, tool
from functai.conversations import _Log as TheirLog

import ledger
from ledger import errors, merging
from tests.adapters.functai_side import (
    Scripted,
    agreed,
    echo,
    fresh,
    judge_of,
    ours,
    ours_says,
    theirs_says,
    tutor_of,
)

EXPORT = Path(__file__).parents[2] / "docs" / "tutorial" / "chatgpt-export.json"


@pytest.fixture
def model():
    """A scripted model."""
    return Scripted()


@pytest.fixture
def written_by_us(tmp_path):
    """A conversation of ours: renamed fields, branches, a merge, recorded and failed turns, a head."""
    chat = ledger.open("alex", ours, store=tmp_path)
    first = chat.send("one", request_id="r-1", lm="model-a")
    with pytest.raises(ValueError, match="told to fail"):
        chat("fail")
    second = chat.record("two", "2", model="model-b", usage={"input_tokens": 3, "output_tokens": 1})
    renamed = ledger.open(
        "alex", lambda question: question, store=tmp_path, rename={"question": "message"}
    ).continue_from(first)
    third = renamed.send("three")
    chat.merge([second, third], merging.pick(third))
    chat("four")
    chat.record("elsewhere", "e", parent=None)
    chat.title = "A title"
    chat.head = second
    return tmp_path


@pytest.fixture
def written_by_functai(tmp_path, model):
    """A conversation of functai's: an AI function and a module, branches, a merge, failed, stopped."""
    tutor = tutor_of(model)
    chat = tutor.conversation("alex", store=fresh(tmp_path))
    chat("one", request_id="r-1")
    first, second = chat.turns[0], chat.predict("two")
    beside = chat.continue_from(first)
    beside("two again")
    merging_at = chat.continue_from(first)
    merging_at.merge([second.call_id, beside.turns[-1]], judge_of(model))
    merging_at("three")
    model.fails = ValueError("told to fail")
    with pytest.raises(ValueError, match="told to fail"):
        merging_at("fail")
    model.go.clear()
    model.entered.clear()
    stream = merging_at.stream("stop me")
    assert model.entered.wait(20)
    stream.turn.stop()
    model.go.set()
    with pytest.raises(Cancelled):
        _ = stream.result
    modular = echo.conversation("alex", store=fresh(tmp_path))
    modular("four")
    with pytest.raises(ValueError, match="told to fail"):
        modular("fail")
    modular("five")
    modular.remember("notes", "note", {"n": 1})
    modular.remember("notes", "note", {"n": 2}, turn=second.call_id)
    return tmp_path


# -- what we wrote, read and continued by functai


def test_functai_reads_what_we_wrote(written_by_us):
    """Turns, branches, merge, renamed fields, states, errors and head are the same in functai."""
    said = agreed(
        echo.conversation("alex", store=fresh(written_by_us)),
        ledger.open("alex", store=written_by_us),
    )

    assert [turn["state"] for turn in said["all"]].count("failed") == 1
    assert len(said["all"]) == 7
    assert len(said["turns"]) == 2
    assert any(turn["reads"] for turn in said["all"])


def test_functai_continues_what_we_wrote(written_by_us, model):
    """An AI function and a module make the next turns, shown ours; then both say the same again."""
    tutor = tutor_of(model)
    chat = tutor.conversation("alex", store=fresh(written_by_us))
    chat("five")
    assert [part.text for m in model.requests[0].messages for part in m.parts] == [
        "<message>\none\n</message>\n",
        "<result>\nours one\n</result>",
        "<message>\ntwo\n</message>\n",
        "<result>\n2\n</result>",
        "<message>\nfive\n</message>\n",
    ]
    beside = chat.continue_from(chat.all_turns()[0])
    beside("six")
    chat.head = beside.turns[-1]
    last = echo.conversation("alex", store=fresh(written_by_us))
    last("seven")

    said = agreed(last, ledger.open("alex", store=written_by_us))
    assert [turn["inputs"]["message"] for turn in said["all"][-3:]] == ["five", "six", "seven"]
    assert len(said["turns"]) == 3


def test_an_open_conversation_of_ours_reads_on(written_by_us):
    """A conversation of ours that was open before functai appended agrees with it after."""
    before = ledger.open("alex", ours, store=written_by_us)
    assert len(before.all_turns()) == 7
    theirs = echo.conversation("alex", store=fresh(written_by_us))
    theirs("theirs")
    before("and ours")
    theirs("theirs again")

    said = agreed(theirs, before)
    assert [t["result"] for t in said["all"][-3:]] == [
        "echo theirs",
        "ours and ours",
        "echo theirs again",
    ]
    assert said["all"][-1]["parent"] == said["all"][-2]["id"] == said["turns"][-2]


def test_functai_merges_turns_of_ours(tmp_path, model):
    """Branches that we made are merged by functai; its merge is an ordinary turn here."""
    chat = ledger.open("alex", store=tmp_path)
    first = chat.record("one", "1")
    a = chat.record("two", "2a", model="a")
    b = chat.continue_from(first).record("two", "2b", model="b")
    theirs = tutor_of(model).conversation("alex", store=fresh(tmp_path)).continue_from(first.id)
    merged = theirs.merge([a.id, b.id], judge_of(model))

    found = chat.turn(merged.id)
    assert (found.result, found.reads, found.parent) == ("reply 1", [a, b], first)
    assert chat.heads() == [found]
    agreed(theirs, ledger.open("alex", store=tmp_path))


def test_functai_continues_an_imported_conversation(tmp_path):
    """A ChatGPT export that we imported is read and continued by functai: branches, head and all."""
    ledger.import_conversations(EXPORT, store=ledger.FolderStore(tmp_path))
    for conversation in ledger.FolderStore(tmp_path).conversations():
        own = ledger.open(conversation, store=tmp_path)
        theirs = echo.conversation(conversation, store=fresh(tmp_path))
        agreed(theirs, own)
        assert theirs("go on") == "echo go on"
        said = agreed(theirs, own)
        assert said["turns"][-1] == said["head"] == said["all"][-1]["id"]


def test_a_request_sent_to_us_is_known_to_functai(written_by_us):
    """The same request id sent to functai is our turn: its recorded answer, nothing new."""
    theirs = echo.conversation("alex", store=fresh(written_by_us))

    assert theirs("one", request_id="r-1") == "ours one"
    assert len(theirs.all_turns()) == 7


def test_our_title_and_entries_are_entries_in_functai(written_by_us):
    """What we keep beside the turns is found by functai under the same plugin and kind."""
    own = ledger.open("alex", store=written_by_us)
    own.keep_entry("notes", "note", {"n": 1}, turn=own.turn(1))
    theirs = echo.conversation("alex", store=fresh(written_by_us))

    assert [e["data"] for e in theirs.entries("ledger", "title")] == ["A title"]
    assert [(e["data"], e["turn"]) for e in theirs.entries("notes", "note")] == [
        ({"n": 1}, own.turn(1).id)
    ]


# -- what functai wrote, read and continued by us


def test_we_read_what_functai_wrote(written_by_functai):
    """AI functions and modules, branches, its merge, failed and stopped turns are the same here."""
    said = agreed(
        echo.conversation("alex", store=fresh(written_by_functai)),
        ledger.open("alex", store=written_by_functai),
    )

    assert said["all"][1]["model"] == "fake-1"
    assert said["all"][1]["usage"].items() >= {"input_tokens": 6, "output_tokens": 2}.items()
    assert [turn["state"] for turn in said["all"]] == [
        *["done"] * 5,
        "failed",
        "stopped",
        "done",
        "failed",
        "done",
    ]
    assert [turn["inputs"]["message"] for turn in map(by_id(said), said["turns"])] == [
        "one",
        "two",
        "three",
        "four",
        "five",
    ]


def by_id(said):
    """Return a function that finds what was said of a turn."""
    return {turn["id"]: turn for turn in said["all"]}.__getitem__


def test_our_history_of_their_log_is_theirs(written_by_functai):
    """Folded from functai's own records, `History` has its branches, head, states and heads."""
    records = fresh(written_by_functai).read("alex")
    history = ledger.History.of(records)
    theirs = TheirLog()
    theirs.apply(records)

    assert history.order == theirs.order
    assert history.head == theirs.head
    for turn in theirs.order:
        assert history.branch(turn) == [state.id for state in theirs.branch(turn)]
        assert history.children(turn) == theirs.turns[turn].children
    merged = next(t for t in theirs.order if theirs.turns[t].record.get("reads"))
    answered = [t for t in theirs.order if theirs.turns[t].state() == "done"]
    assert history.reads(merged) == theirs.turns[merged].record["reads"]
    assert history.heads() == [answered[-1]]


def test_we_continue_what_functai_wrote(written_by_functai):
    """Our program is shown functai's turns and goes on from the head; then both say the same."""
    shown = []

    def program(message: str) -> str:
        shown.extend(ledger.current().earlier())
        return "from here"

    own = ledger.open("alex", program, store=written_by_functai)
    turn = own.send("six")

    assert [row["message"] for row in shown] == ["one", "two", "three", "four", "five"]
    assert turn.parent.inputs == {"message": "five"}
    own.continue_from(2).record("recorded", "r")
    own.merge([2, 3], merging.pick(own.turn(3)))
    own.head = turn
    said = agreed(echo.conversation("alex", store=fresh(written_by_functai)), own)
    assert len(said["all"]) == 13


def test_a_failed_or_stopped_turn_of_theirs_is_no_parent(written_by_functai):
    """Continuing from functai's failed or stopped turn goes on from the answered turn before it."""
    own = ledger.open("alex", ours, store=written_by_functai)
    failed, stopped = own.turn(6), own.turn(7)
    assert (failed.state, stopped.state) == ("failed", "stopped")

    for turn in (failed, stopped):
        assert own.continue_from(turn).send("go on").parent.inputs == {"message": "three"}


def test_a_request_sent_to_functai_is_known_here(written_by_functai):
    """The same request id sent here is functai's turn; with other inputs it is refused."""
    own = ledger.open("alex", ours, store=written_by_functai)

    assert own("one", request_id="r-1") == "reply 1"
    with pytest.raises(errors.RequestMismatch):
        own("another", request_id="r-1")
    assert len(own.all_turns()) == 10


def test_their_entries_are_entries_here(written_by_functai):
    """What functai's plugins keep is found here, by branch."""
    own = ledger.open("alex", store=written_by_functai)

    assert [e["data"]["n"] for e in own.entries("notes", "note")] == [1]
    assert [e["data"]["n"] for e in own.continue_from(2).entries("notes", "note")] == [1, 2]


def test_their_running_turn_is_waited_for(tmp_path, model):
    """A send here queues behind functai's running turn and continues from it."""
    model.go.clear()
    stream = tutor_of(model).conversation("alex", store=fresh(tmp_path)).stream("first")
    assert model.entered.wait(20)
    own = ledger.open("alex", ours, store=tmp_path)
    assert own.turn(1).state == "running"
    refusing = ledger.open("alex", ours, store=tmp_path, sends="refuse")
    with pytest.raises(errors.Busy):
        refusing("second")
    model.go.set()

    assert own.send("second").parent.result == "reply 1" == stream.result


def test_our_running_turn_is_running_in_functai(tmp_path):
    """While our program runs, functai sees its turn running, and refuses or goes beside it."""
    seen = []

    def program(message: str) -> str:
        theirs = echo.conversation("alex", store=fresh(tmp_path), sends="refuse")
        seen.append(theirs.all_turns()[0].state)
        with pytest.raises(ConversationError) as caught:
            theirs("second")
        seen.append(caught.value.code)
        return message

    ledger.open("alex", program, store=tmp_path)("first")

    assert seen == ["running", "conversation-busy"]


def test_their_turn_that_waits_for_a_person_waits_here_too(tmp_path, model):
    """A functai turn with an open question is `waiting`: a send is refused with that question, and
    goes on after functai answered it."""

    @tool(effects="changes")
    def write(text: str) -> str:
        """Write."""
        return f"written {text}"

    @ai(lm="fake", client=model, tools=[write])
    def writer(message: str) -> str:  # type: ignore[empty-body]
        """Answer."""

    model.script = ['```tool\n{"name": "write", "input": {"text": "x"}}\n```']
    theirs = writer.conversation("alex", store=fresh(tmp_path), approve="changes")
    with pytest.raises(Waiting):
        theirs("first")
    own = ledger.open("alex", ours, store=tmp_path)
    agreed(theirs, own)

    with pytest.raises(errors.BusyWaiting) as caught:
        own("second")
    assert [question["name"] for question in caught.value.questions] == ["write"]

    assert theirs.turns[0].approve(by="a person") == "reply 2"
    said = agreed(theirs, own)
    assert (said["all"][0]["state"], list(said["all"][0]["outputs"])) == (
        "done",
        ["result", "calls"],
    )


# -- programs


def plain(message: str) -> str:
    """Take text, give text."""
    return message


def answers_number(message: str) -> int:
    """Give a number."""
    return len(message)


def question(question: str) -> str:
    """Call the input otherwise."""
    return question


def toned(message: str, tone: str = "kind") -> str:
    """Take one more input."""
    return message + tone


def listed(message: list[str]) -> dict[str, int]:
    """Take and give containers."""
    return {m: len(m) for m in message}


def optional(message: str | None) -> str:
    """Take text or nothing."""
    return message or ""


PROGRAMS = [plain, answers_number, question, toned, listed, optional]
GIVEN = {
    "question": {"question": "hi"},
    "listed": {"message": ["a"]},
}


def given(program):
    """Return inputs that a program of the list takes."""
    return GIVEN.get(program.__name__, {"message": "hi"})


@pytest.mark.parametrize("after", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("before", PROGRAMS, ids=lambda p: p.__name__)
def test_a_program_continues_the_other_library_s_turns_if_it_has_their_fields(
    tmp_path, before, after
):
    """After turns of another program, both libraries accept the same programs, and refuse alike."""
    ledger.open("from-us", before, store=tmp_path)(**given(before))
    module(before).conversation("from-functai", store=fresh(tmp_path))(**given(before))

    verdicts = {}
    for name in ("from-us", "from-functai"):
        try:
            ledger.open(name, after, store=tmp_path)(**given(after))
            verdicts[name, "us"] = "accepted"
        except errors.SignatureChanged as error:
            verdicts[name, "us"] = error.code
        try:
            # On a copy of the first turn only: what we added above must not decide.
            chat = module(after).conversation(name, store=fresh(tmp_path))
            chat.continue_from(chat.all_turns()[0])(**given(after))
            verdicts[name, "functai"] = "accepted"
        except ConversationError as error:
            verdicts[name, "functai"] = error.code

    expected = "accepted" if before is after else "conversation-signature"
    assert set(verdicts.values()) == {expected}


def test_recorded_text_turns_continue_in_functai(tmp_path):
    """Turns recorded as text are message -> result of strings, which functai's programs continue."""
    ledger.open("alex", store=tmp_path).record("hi", "hello")

    assert echo.conversation("alex", store=fresh(tmp_path))("more") == "echo more"


def test_recorded_turns_with_other_fields_are_refused_by_functai(tmp_path):
    """Recorded turns with fields of their own have no declared shapes: functai refuses its typed
    programs after them, where ours go on."""
    ledger.open("alex", store=tmp_path).record({"question": "hi"}, {"result": "hello"})

    assert ledger.open("alex", question, store=tmp_path)("more") == "more"
    with pytest.raises(ConversationError) as caught:
        module(question).conversation("alex", store=fresh(tmp_path))
    assert caught.value.code == "conversation-signature"


def test_a_program_without_annotations_is_ours_alone(tmp_path):
    """functai keeps no conversation with a program without types; ours may continue typed turns."""

    def untyped(message):
        return "x"

    echo.conversation("alex", store=fresh(tmp_path))("hi")
    assert ledger.open("alex", untyped, store=tmp_path)("more") == "x"

    with pytest.raises(ConversationError) as caught:
        module(untyped).conversation("ben", store=fresh(tmp_path))
    assert caught.value.code == "conversation-opaque"


def test_a_folder_that_functai_made_with_an_open_umask_is_trusted(tmp_path):
    """A folder that functai made while the group may write is read and written; ours stays private."""
    before = os.umask(0o002)
    try:
        echo.conversation("alex", store=fresh(tmp_path / "chats"))("hi")
        ledger.open("ben", store=tmp_path / "chats").record("a", "b")
    finally:
        os.umask(before)

    assert len(ledger.open("alex", ours, store=tmp_path / "chats").turns) == 1
    assert (tmp_path / "chats" / "conversations" / "ben.jsonl").stat().st_mode & 0o777 == 0o600


# -- ids


@pytest.mark.parametrize("id", ["", "../x", "a b", "x" * 201, "-a", "é", ".a"])
def test_both_refuse_the_same_ids(tmp_path, id):
    """An id that is no safe file name is refused by both with the same code."""
    with pytest.raises(errors.ConversationIdInvalid) as caught:
        ledger.open(id, store=tmp_path)
    with pytest.raises(ConversationError) as theirs:
        echo.conversation(id, store=fresh(tmp_path))

    assert caught.value.code == theirs.value.code


def test_both_list_the_same_conversations(tmp_path):
    """Both libraries find each other's conversations in the folder."""
    ledger.open("ours", store=tmp_path).record("a", "b")
    echo.conversation("theirs", store=fresh(tmp_path))("hi")

    assert ledger.FolderStore(tmp_path).conversations() == fresh(tmp_path).conversations()


def test_saying_the_same_is_no_accident(written_by_us):
    """The comparison used in this module sees a difference where there is one."""
    own = ledger.open("alex", store=written_by_us)
    theirs = echo.conversation("alex", store=fresh(written_by_us))
    own.record("new", "n")

    assert theirs_says(theirs.continue_from(1)) != ours_says(own)


@ai(lm="fake")
def helper(message: str) -> str:  # type: ignore[empty-body]
    """Answer."""


@module
def helped(message: str) -> str:
    """Answer by a helper."""
    return helper(message)


def test_their_rated_turns_tell_what_helpers_were_shown(tmp_path, model):
    """A rated turn of functai's has its helper's calls here, each with the earlier ones that it was shown."""
    chat = helped.conversation(
        "a", store=tmp_path, remembers={helper: "conversation"}, client=model
    )
    chat("one")
    chat("two")
    ledger.open("a", store=tmp_path).turns[-1].rate(1)
    ((call,),) = [row["helpers"] for row in ledger.rated(tmp_path)]

    assert {"message": "two"} == call["inputs"]
    assert [{"message": "one", "result": "reply 1"}] == call["earlier"]
