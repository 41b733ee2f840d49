"""Handing over a whole list of messages: what is new is recorded, and nothing else happens."""

import asyncio
import copy
import inspect
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ledger
from ledger import aio, errors
from ledger.formats import dialects

FORMATS = [None, *dialects.DIALECTS]


def user(text):
    return {"role": "user", "content": text}


def bot(text):
    return {"role": "assistant", "content": text}


def system(text):
    return {"role": "system", "content": text}


def rounds(id, *texts):
    """A tool round as OpenAI has it."""
    function = {"name": "look", "arguments": '{"for":"x"}'}
    calls = [
        {"id": f"{id}-{i}", "type": "function", "function": function} for i in range(len(texts))
    ]
    results = [
        {"role": "tool", "tool_call_id": f"{id}-{i}", "content": text}
        for i, text in enumerate(texts)
    ]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


@pytest.fixture
def store():
    return ledger.MemoryStore()


@pytest.fixture
def chat(store):
    return ledger.open("c", store=store)


def said(turns):
    """What turns say, as text: what was asked and what was answered."""
    return [(turn.inputs["message"], turn.result) for turn in turns]


HELLO = [user("Hi"), bot("Hello")]


# -- what is recorded ----------------------------------------------------------------------------


def test_a_list_that_grows(chat):
    """Each new exchange is one new turn behind the one before."""
    first = chat.sync(HELLO, format="openai")
    second = chat.sync([*HELLO, user("Bye"), bot("See you")], format="openai")

    assert said(first.turns) == [("Hi", "Hello")]
    assert said(second.turns) == [("Bye", "See you")]
    assert second.head == second.turns[0]
    assert second.head.parent == first.head
    assert not second.branched
    assert second.left == []
    assert chat.turns == [first.head, second.head]


def test_the_whole_exchange_is_kept(chat):
    """A turn has its tool rounds, and says what the last reply said."""
    turn = chat.sync([user("Look"), *rounds("c", "a", "b"), bot("Done")], format="openai").head

    assert [m["role"] for m in turn.messages] == ["user", "assistant", "tool", "tool", "assistant"]
    assert (turn.inputs, turn.outputs) == ({"message": "Look"}, {"result": "Done"})


def test_what_a_turn_was_shown(chat):
    """A turn of a list saw all those before it, and its record does not grow with them."""
    turns = chat.sync(
        [*HELLO, user("2"), bot("two"), user("3"), bot("three")], format="openai"
    ).turns

    assert [len(turn.saw) for turn in turns] == [0, 1, 2]
    assert [len(r["saw"]) for r in chat.store.read("c") if r["kind"] == "turn"] == [0, 1, 2]
    turns += chat.sync(
        [*HELLO, user("2"), bot("two"), user("3"), bot("three"), user("4"), bot("four")],
        format="openai",
    ).turns
    assert turns[3].saw == turns[:3]
    assert [len(r["saw"]) for r in chat.store.read("c") if r["kind"] == "turn"] == [0, 1, 2, 2]


def test_one_append_for_all(chat):
    """However many turns are new, they are one append: all of them or none, and one program."""
    seen = []
    append = chat.store.append

    class Counting:
        read = staticmethod(chat.store.read)

        def append(self, conversation, records, *, expect=None):
            seen.append([record["kind"] for record in records])
            return append(conversation, records, expect=expect)

    ledger.open("c", store=Counting()).sync([*HELLO, user("2"), bot("two")], format="openai")

    assert seen == [["program", "turn", "ended", "turn", "ended"]]


def test_nothing_new_is_nothing(chat):
    """The same list again, from the same view or a new one, is no record and no turn."""
    chat.sync(HELLO, format="openai")
    before = chat.store.read("c")

    for view in (chat, ledger.open("c", store=chat.store)):
        again = view.sync(copy.deepcopy(HELLO), format="openai")
        assert (again.turns, again.head.ordinal, again.branched) == ([], 1, False)
    assert chat.store.read("c") == before


def test_what_is_left_over(chat):
    """A question without an answer, and a call without a result, are given back and not recorded."""
    open_question = chat.sync([*HELLO, user("And?")], format="openai")
    assert [m["role"] for m in open_question.left] == ["user"]
    assert len(chat.turns) == 1

    half = chat.sync([*HELLO, user("And?"), *rounds("c", "found")], format="openai")
    assert [m["role"] for m in half.left] == ["user", "assistant", "tool"]
    assert half.turns == []
    assert half.head.ordinal == 1

    whole = chat.sync([*HELLO, user("And?"), *rounds("c", "found"), bot("That")], format="openai")
    assert (said(whole.turns), whole.left) == ([("And?", "That")], [])


def test_model_and_usage_are_the_newest_turns(chat):
    """They are said of the newest turn; what is not new stays as it is."""
    chat.sync([*HELLO, user("2"), bot("two")], format="openai", model="m", usage={"tokens": 3})
    chat.sync([*HELLO, user("2"), bot("two")], format="openai", model="other")

    assert [(t.model, t.usage) for t in chat.turns] == [(None, {}), ("m", {"tokens": 3})]


def test_objects_of_a_vendors_package(chat):
    """A reply may stand in the list as the vendor's package gives it."""
    from openai.types.chat import ChatCompletionMessage

    reply = ChatCompletionMessage.model_validate(bot("Hello"))
    listed = [user("Hi"), reply]
    chat.sync(listed, format="openai")

    assert chat.sync(listed, format="openai").turns == []
    assert chat.sync([user("Hi"), bot("Hello")], format="openai").turns == []
    assert said(chat.turns) == [("Hi", "Hello")]


# -- branches --------------------------------------------------------------------------------------


def test_an_edit_is_a_branch(chat):
    """A question asked otherwise departs: its turn stands beside the old one, which stays."""
    old = chat.sync([*HELLO, user("2"), bot("two"), user("3"), bot("three")], format="openai")
    new = chat.sync([*HELLO, user("zwei"), bot("two")], format="openai")

    assert new.branched

    assert new.head.parent.ordinal == 1
    assert said(chat.turns) == [("Hi", "Hello"), ("zwei", "two")]
    assert {turn.id for turn in chat.heads()} == {old.head.id, new.head.id}


def test_an_answer_made_anew_is_a_branch(chat):
    """The same question with another answer stands beside the first; in place, too."""
    listed = [*HELLO, user("2"), bot("two")]
    chat.sync(listed, format="openai")
    listed[-1]["content"] = "zwei"

    assert chat.sync(listed, format="openai").branched
    assert said(chat.turns)[-1] == ("2", "zwei")
    assert len(chat.all_turns()) == 3


@pytest.mark.parametrize("one, other", [(1, True), (0, False), (True, 1)])
def test_an_edit_that_python_calls_equal(chat, one, other):
    """An argument that was 1 and is true is an edit."""
    call = {"type": "tool_call", "id": "c", "name": "f", "arguments": {"x": one}}
    result = {"type": "tool_call_response", "id": "c", "response": "r"}
    listed = [
        ledger_text("user", "go"),
        {"role": "assistant", "parts": [call]},
        {"role": "tool", "parts": [result]},
        ledger_text("assistant", "gone"),
    ]
    chat.sync(listed)
    call["arguments"]["x"] = other

    assert chat.sync(listed).branched


def ledger_text(role, text):
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def test_a_shorter_list_is_gone_back_to(chat):
    """A list without its last exchange records nothing; the view stands before it, and goes on there."""
    chat.sync([*HELLO, user("2"), bot("two")], format="openai")
    before = len(chat.store.read("c"))

    shorter = chat.sync(HELLO, format="openai")

    assert (shorter.turns, shorter.head.ordinal) == ([], 1)
    assert said(chat.turns) == [("Hi", "Hello")]
    assert len(chat.store.read("c")) == before
    assert chat.sync([*HELLO, user("3"), bot("three")], format="openai").head.parent.ordinal == 1


def test_cut_behind_a_turn_that_was_closed(chat):
    """A turn without an answer, closed by the next question, is known also at the end of a list."""
    closed = [*HELLO, user("Look"), *rounds("c", "found")]
    chat.sync([*closed, user("Never mind"), bot("Fine")], format="openai")

    for view in (chat, ledger.open("c", store=chat.store)):
        shorter = view.sync(closed, format="openai")
        assert (shorter.turns, shorter.head.ordinal, shorter.left) == ([], 2, [])


def test_a_list_that_comes_back_is_found(chat):
    """A branch that is handed over again is known, whichever was the last."""
    one = [*HELLO, user("2"), bot("one")]
    two = [*HELLO, user("2"), bot("two")]
    first, second = (chat.sync(listed, format="openai").head for listed in (one, two))

    assert chat.sync(one, format="openai").head == first
    assert chat.sync(two, format="openai").head == second
    assert len(chat.all_turns()) == 3


def test_of_equal_turns_the_way_that_leads_furthest(chat):
    """Two turns say the same; the list goes on under one of them, and is followed there."""
    chat.sync([*HELLO, user("2"), bot("two")], format="openai")
    chat.record("Hi", "Hello", parent=None)

    known = ledger.open("c", store=chat.store).sync(
        [*HELLO, user("2"), bot("two")], format="openai"
    )

    assert (known.turns, known.head.ordinal) == ([], 2)


# -- instructions --------------------------------------------------------------------------------


def test_changed_instructions_are_no_edit(chat):
    """Other instructions at the beginning are no branch; the next new turn keeps them."""
    chat.sync([system("Be kind."), *HELLO], format="openai")
    before = len(chat.store.read("c"))
    assert chat.sync([system("Be brief."), *HELLO], format="openai").turns == []
    assert len(chat.store.read("c")) == before

    new = chat.sync([system("Be brief."), *HELLO, user("2"), bot("two")], format="openai")
    chat.sync([*HELLO, user("2"), bot("two"), user("3"), bot("three")], format="openai")

    assert len(chat.all_turns()) == 3

    assert not new.branched
    assert chat.turn(1).messages[0] == ledger_text("system", "Be kind.")
    kept = chat.entries("ledger", "instructions")
    assert [(e["turn"], e["data"]) for e in kept] == [
        (new.head.id, [ledger_text("system", "Be brief.")])
    ]


def test_instructions_within_are_said(chat):
    """A developer's message between turns is a part of its turn, and is compared."""
    note = {"role": "developer", "content": "It rains."}
    chat.sync([*HELLO, note, user("2"), bot("two")], format="openai")

    assert [m["role"] for m in chat.turns[1].messages] == ["developer", "user", "assistant"]
    assert chat.sync([*HELLO, user("2"), bot("two")], format="openai").branched


# -- others ---------------------------------------------------------------------------------------


@pytest.fixture
def raced(chat):
    """A view that handed over a list, behind which somebody else then added a turn."""
    chat.sync(HELLO, format="openai")
    ledger.open("c", store=chat.store).record("Me too", "Hi you")
    return chat


MORE = [*HELLO, user("2"), bot("two")]


def test_a_moved_head_is_refused(raced):
    """New turns are not put beside what others added without a word; nothing is recorded."""
    before = raced.store.read("c")

    with pytest.raises(errors.HeadMoved) as caught:
        raced.sync(MORE, format="openai")

    assert caught.value.expected == raced.turn(1).id
    assert caught.value.found == raced.turn(2).id
    assert raced.store.read("c") == before
    assert raced.sync(HELLO, format="openai").turns == []
    with pytest.raises(errors.HeadMoved):
        raced.sync(MORE, format="openai")


def test_a_moved_head_by_a_branch(raced):
    """As wished, both are kept: the list is a branch beside what others added."""
    synced = raced.sync(MORE, format="openai", moved="branch")

    assert synced.branched

    assert synced.head.parent.ordinal == 1
    assert len(raced.heads()) == 2
    assert said(raced.turns) == [("Hi", "Hello"), ("2", "two")]


def test_who_reads_again_may_go_on(raced):
    """A list that has what others added goes on behind it."""
    both = [*HELLO, user("Me too"), bot("Hi you"), user("2"), bot("two")]

    assert not raced.sync(both, format="openai").branched
    assert len(raced.turns) == 3


def test_a_new_view_is_told_what_to_expect(raced):
    """A view that knows nothing takes the list as an edit, unless it is told where the list went on from."""
    fresh = ledger.open("c", store=raced.store)
    with pytest.raises(errors.HeadMoved):
        fresh.sync(MORE, format="openai", expect=raced.turn(1))
    with pytest.raises(errors.HeadMoved):
        ledger.open("c", store=raced.store).sync(
            [user("x"), bot("y")], format="openai", expect=None
        )

    assert fresh.sync(MORE, format="openai").branched


def test_where_a_turn_runs(store):
    """Behind a turn that runs nothing is put without a word: conversation-busy, or a branch as wished."""
    chat = ledger.open("c", store=store)
    chat.sync(HELLO, format="openai")
    begun, go_on = threading.Event(), threading.Event()

    def slow(message: str) -> str:
        begun.set()
        go_on.wait(30)
        return "late"

    thread = threading.Thread(target=lambda: ledger.open("c", slow, store=store)("now"))
    thread.start()
    try:
        assert begun.wait(30)
        with pytest.raises(errors.Busy):
            chat.sync(MORE, format="openai")
        assert chat.sync(MORE, format="openai", moved="branch").head.parent.ordinal == 1
    finally:
        go_on.set()
        thread.join()


def test_turns_that_came_another_way(chat):
    """A recorded exchange is known in a list, whatever recorded it."""
    chat.record("Hi", "Hello")

    assert chat.sync(HELLO, format="openai").turns == []
    assert not chat.sync(MORE, format="openai").branched


def test_a_failed_turn_is_no_part_of_it(store):
    """Behind a turn that failed the list goes on from the one before; that is no branch of what was said."""

    def fails(message: str) -> str:
        raise ValueError("no")

    chat = ledger.open("c", fails, store=store)
    plain = ledger.open("c", store=store)
    plain.sync(HELLO, format="openai")
    with pytest.raises(ValueError, match="no"):
        chat("x")

    synced = plain.sync(MORE, format="openai")

    assert synced.head.parent.ordinal == 1

    assert not synced.branched


def test_a_forgotten_turn_is_seen_through(chat):
    """A list without what was forgotten is known; one that still has it says it again, as a branch."""
    listed = [*HELLO, user("secret"), bot("hush"), user("3"), bot("three")]
    chat.sync(listed, format="openai")
    chat.forget(chat.turn(2))

    without = [*HELLO, user("3"), bot("three")]
    assert chat.sync(without, format="openai").turns == []
    assert len(chat.sync(listed, format="openai").turns) == 2


def test_what_is_handed_over_while_it_is_deleted_is_refused(chat):
    """A list whose conversation is deleted while it is appended makes it not anew; handed over again, it does."""
    chat.sync([*HELLO, user("2"), bot("two")], format="openai")
    store, append = chat.store, chat.store.append

    def replaced(conversation, records, *, expect=None):
        store.append = append
        store.delete("c")
        return append(conversation, records, expect=expect)

    store.append = replaced
    listed = [*HELLO, user("2"), bot("two"), user("3"), bot("three")]
    with pytest.raises(errors.StoreGone):
        chat.sync(listed, format="openai")
    assert store.read("c") == []

    synced = chat.sync(listed, format="openai")

    assert said(synced.turns) == said(chat.turns)
    assert said(chat.turns) == [("Hi", "Hello"), ("2", "two"), ("3", "three")]


def test_a_deleted_log_is_begun_anew(tmp_path):
    """A list that is handed over again after the conversation was deleted is recorded again."""
    store = ledger.FolderStore(tmp_path)
    chat = ledger.open("c", store=store)
    chat.sync(HELLO, format="openai")
    store.delete("c")

    assert len(chat.sync(MORE, format="openai").turns) == 2


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content, code, where",
    [
        ([*HELLO, {"role": "nobody"}], "import-invalid", "messages[2]"),
        ([*HELLO, user("\ud800")], "record-invalid", "messages[2]"),
        ([system("x"), *HELLO, 7], "import-invalid", "messages[3]"),
    ],
)
def test_a_bad_message_is_named(chat, content, code, where):
    """The error names the place in the list as it was handed over, and nothing is recorded."""
    chat.sync(HELLO, format="openai")
    before = chat.store.read("c")
    with pytest.raises(errors.LedgerError) as caught:
        chat.sync(content, format="openai")

    assert caught.value.code == code
    assert where in str(caught.value)
    assert chat.store.read("c") == before


@pytest.mark.parametrize("deep", [201, 5_000, None], ids=["too deep", "far too deep", "in itself"])
def test_what_is_nested_too_deep_is_named(chat, deep):
    """However deep it is, and if it holds itself, the message is refused that holds it."""
    outer: dict[str, object] = {}
    inner = outer
    for _ in range(deep or 1):
        inner["a"] = below = dict[str, object]()
        inner = below
    inner["a"] = outer if deep is None else 1
    with pytest.raises(
        errors.RecordInvalid, match=r"messages\[1\]: it is nested more than 200 deep"
    ):
        chat.sync([user("Hi"), bot("Hello") | {"extra": outer}], format="openai")

    assert chat.turns == []


def test_one_list_in_two_forms(chat):
    """The same items mean something else in another form: they are read anew."""
    results = {"type": "tool_result", "tool_use_id": "t", "content": "found"}
    use = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    listed = [user("Look"), {"role": "assistant", "content": [use]}]
    listed += [{"role": "user", "content": [results]}, bot("There")]
    assert len(chat.sync(listed, format="anthropic").turns) == 1

    assert len(chat.sync(listed, format="openai").turns) == 2
    assert chat.sync(listed, format="anthropic").turns == []


def test_words_that_are_not_known(chat):
    """A list that is none, a form and a wish that nobody knows."""
    with pytest.raises(TypeError, match="a list"):
        chat.sync("Hi", format="openai")
    with pytest.raises(ValueError, match="openai"):
        chat.sync(HELLO, format="opena")
    with pytest.raises(ValueError, match="branch"):
        chat.sync(HELLO, format="openai", moved="queue")


def test_inside_a_turn_it_is_refused(store):
    """A list is not handed over inside a turn, as no turn is made there."""

    def answer(message: str) -> str:
        ledger.open("c", store=store).sync(HELLO, format="openai")
        return "never"

    with pytest.raises(errors.Nested):
        ledger.open("d", answer, store=store)("x")


# -- any sequence of lists -----------------------------------------------------------------------

TEXTS = st.sampled_from(["a", "b", "c"])
EXCHANGE = st.builds(
    lambda asked, used, told: [user(asked), *used, bot(told)],
    TEXTS,
    st.sampled_from([[], rounds("c", "x"), rounds("c", "x", "y")]),
    TEXTS,
)
CHANGE = st.one_of(
    st.tuples(st.just("more"), EXCHANGE),
    st.tuples(st.just("open"), st.sampled_from([[user("?")], [user("?"), *rounds("o", "z")]])),
    st.tuples(st.just("cut"), st.integers(0, 12)),
    st.tuples(st.just("edit"), st.integers(0, 12)),
    st.tuples(st.just("lead"), TEXTS),
    st.tuples(st.just("reopen"), st.none()),
)


def changed(listed, change, given):
    """The list after one change; the oracle of what a framework does."""
    if change == "more":
        return [*listed, *given]
    if change == "open":
        return [*listed, *given]
    if change == "cut":
        return listed[:given]
    if change == "edit" and listed:
        at = given % len(listed)
        if isinstance(listed[at]["content"], str):
            other = {**listed[at], "content": listed[at]["content"] + "!"}
            return [*listed[:at], other, *listed[at + 1 :]]
    if change == "lead":
        rest = listed[1:] if listed and listed[0]["role"] == "system" else listed
        return [system("lead " + given), *rest]
    return listed


def words(messages):
    """What is said in a list of OpenAI messages, one entry for each text, call and result."""
    out = []
    for m in messages:
        if m["role"] == "system":
            continue
        if m["role"] == "tool":
            out.append(("result", m["content"]))
        else:
            out += [(m["role"], m["content"])] if m["content"] is not None else []
            out += [("call", c["function"]["name"]) for c in m.get("tool_calls", [])]
    return out


def neutral_words(messages):
    """The same of neutral messages."""
    out = []
    for m in messages:
        for p in m["parts"] if m["role"] != "system" else []:
            if p["type"] == "text":
                out.append((m["role"], p["content"]))
            else:
                is_call = p["type"] == "tool_call"
                out.append(("call", p["name"]) if is_call else ("result", p["response"]))
    return out


def whole_turns(messages, known):
    """The turns of a list without late results: the last one if it has its answer, or is known."""
    said = [m for m in messages if m["role"] != "system"]
    turns, current = [], []
    for m in said:
        if m["role"] == "user" and current and current[-1]["role"] != "user":
            turns.append(current)
            current = []
        current.append(m)
    answered = current and current[-1]["role"] == "assistant" and "tool_calls" not in current[-1]
    if answered or tuple(str(words(t)) for t in [*turns, current]) in known:
        turns += [current] if current else []
    return turns


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=30, deadline=None)
@given(changes=st.lists(CHANGE, max_size=9))
def test_any_sequence_of_lists(format, changes):
    """After each list the view's turns say what its whole turns say; twice is once; nothing is lost.

    The log grows by two records for each new turn, one program, and one entry for each change of the
    instructions that came with a new turn.
    """
    store = ledger.MemoryStore()
    chat = ledger.open("c", store=store)
    listed: list = []
    records: list = []
    tree: set[tuple[str, ...]] = {()}
    for change, how in changes:
        if change == "reopen":
            chat = ledger.open("c", store=store)
        listed = changed(listed, change, how)
        handed = as_format(listed, format)

        synced = chat.sync(handed, format=format, moved="branch")

        turns = whole_turns(listed, tree)
        flat = [word for turn in turns for word in words(turn)]
        assert neutral_words([m for t in chat.turns for m in t.messages]) == flat
        paths = {tuple(str(words(t)) for t in turns[: n + 1]) for n in range(len(turns))}
        assert len(synced.turns) == len(paths - tree)
        tree |= paths
        assert neutral_words(synced.left) == words(listed)[len(flat) :]
        grown = store.read("c")
        assert grown[: len(records)] == records
        news = [r["kind"] for r in grown[len(records) :]]
        assert news.count("turn") == news.count("ended") == len(synced.turns)
        assert set(news) <= {"program", "turn", "ended", "entry"}
        assert news.count("program") <= 1
        assert news.count("entry") <= (1 if synced.turns else 0)
        records = grown

        again = chat.sync(copy.deepcopy(handed), format=format)
        assert (again.turns, again.head, again.left) == ([], synced.head, synced.left)
        assert store.read("c") == records


def as_format(listed, format):
    """A list of OpenAI messages in another form, as a framework has it."""
    if format == "openai":
        return listed
    neutral = dialects.named("openai").from_provider(listed)
    if format is None:
        return neutral
    out = []
    lead = sum(1 for m in neutral[:1] if m["role"] == "system")
    made = dialects.named(format).to_provider(neutral[:lead]).content
    begin = made if isinstance(made, dict) else {"messages": made}
    for message in neutral[lead:]:
        made = single(message, format)
        if format == "anthropic" and message["role"] == "tool" and results(out):
            out[-1]["content"] += made[0]["content"]
        else:
            out += made
    out = [*begin.get("messages", []), *out]
    return {**begin, "messages": out} if "system" in begin else out


def single(message, format):
    """One message in a form, not paired: a call stands without its result."""
    dialect = dialects.named(format)
    if message["role"] == "tool":
        id = message["parts"][0]["id"]
        part = {"type": "tool_call", "id": id, "name": "look", "arguments": {"for": "x"}}
        made = dialect.to_provider([{"role": "assistant", "parts": [part]}, message]).content
        made = made["messages"] if isinstance(made, dict) else made
        return made[1:]
    calls = [p for p in message["parts"] if p["type"] == "tool_call"]
    made = dialect.to_provider([message]).content
    made = made["messages"] if isinstance(made, dict) else made
    return made[: len(made) - paired_results(made, calls, format)]


def paired_results(made, calls, format):
    """How many items a dialect put in for calls that have no result here."""
    if not calls:
        return 0
    return len(calls) if format == "openai-responses" else 1


def results(out):
    """Whether a list ends with a message of results."""
    content = out[-1]["content"] if out else None
    return isinstance(content, list) and content[0].get("type") == "tool_result"


def test_an_item_that_says_several_messages(chat):
    """A list whose last item says more messages than it has items is no beginning of every other list."""

    def reply(text):
        return {"kind": "response", "parts": [{"part_kind": "text", "content": text}]}

    def prompts(*texts):
        parts = [{"part_kind": "user-prompt", "content": text} for text in texts]
        return {"kind": "request", "parts": parts}

    chat.sync([reply("Welcome"), prompts("a", "b", "c")], format="pydantic-ai")

    other = chat.sync([reply("Go away"), prompts("d")], format="pydantic-ai")

    assert [turn.result for turn in other.turns] == ["Go away"]
    assert chat.sync([], format="pydantic-ai").head is None


# -- both faces, and what it costs -------------------------------------------------------------


def test_both_faces_hand_over_alike(store):
    """Blocking and awaitable: the same turns, the same refusal."""

    async def scenario(open, name):
        async def got(value):
            return await value if inspect.isawaitable(value) else value

        chat = open(name, store=store)
        first = await got(chat.sync(HELLO, format="openai", model="m"))
        second = await got(chat.sync([*MORE, user("?")], format="openai"))
        branch = await got(chat.sync([*HELLO, user("2"), bot("zwei")], format="openai"))
        await got(open(name, store=store).record("x", "y"))
        with pytest.raises(errors.HeadMoved):
            await got(chat.sync([*HELLO, user("2"), bot("zwei"), *HELLO], format="openai"))
        turns = await got(chat.turns)
        return [
            [t.ordinal for s in (first, second, branch) for t in s.turns],
            [s.branched for s in (first, second, branch)],
            second.left,
            [t.result for t in turns],
            type(first.head),
        ]

    blocking = asyncio.run(scenario(ledger.open, "a"))
    awaited = asyncio.run(scenario(aio.open, "b"))

    assert blocking[:-1] == awaited[:-1]
    assert (blocking[-1], awaited[-1]) == (ledger.Turn, aio.Turn)


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_known_is_not_read_again(format, store, monkeypatch):
    """Of a long list that goes on, only what is new is read into turns, and only that asks the log."""
    chat = ledger.open("c", store=store)
    listed = [m for i in range(50) for m in (user(f"q{i}"), bot(f"a{i}"))]
    chat.sync(as_format(listed, format), format=format)
    seen, reads = [], []
    dialect = dialects.named(format or "openai")
    convert, scan = dialect.from_provider, chat._log._scan

    def converting(content):
        seen.append(len(content))
        return convert(content)

    def scanning(*where):
        found = scan(*where)
        reads.append(len(found))
        return found

    monkeypatch.setattr(dialect, "from_provider", converting)
    monkeypatch.setattr(chat._log, "_scan", scanning)

    listed += [user("new"), bot("answer")]
    handed = as_format(listed, format)
    seen.clear()
    synced = chat.sync(handed, format=format)

    assert len(synced.turns) == 1
    assert sum(seen) <= 4
    assert sum(reads) <= 2
