"""The public verbs, blocking, on memory and folder stores."""

import threading

import pytest

import ledger
from ledger import errors, merging
from ledger.conversation import Conversation
from ledger.turns.log import Log
from ledger.turns.programs import Program
from ledger.turns.view import View
from tests.worlds import START, FakeWorld


def echo(message: str) -> str:
    """Answer with what was asked."""
    return f"echo {message}"


def memory(message: str) -> str:
    """Answer with what was said before."""
    return " / ".join(row["message"] for row in ledger.current().earlier()) or "nothing"


@pytest.fixture(params=["memory", "folder"])
def store(request, tmp_path):
    """A store of each kind."""
    return ledger.MemoryStore() if request.param == "memory" else ledger.FolderStore(tmp_path)


@pytest.fixture
def chat(store):
    """A conversation of three turns: 1, then 2 and 3 beside each other."""
    chat = ledger.open("alex", store=store)
    first = chat.record("one", "1")
    chat.record("two", "2", model="a")
    chat.continue_from(first).record("two again", "2b", model="b")
    return chat


# -- opening


def test_the_same_line_opens_it_again(store):
    """Opened by id in another object, the conversation has the turns that were made."""
    ledger.open("alex", echo, store=store)("hi")

    assert [t.result for t in ledger.open("alex", store=store).turns] == ["echo hi"]


def test_opening_writes_nothing(store):
    """Opening, reading and asking for a head of a new conversation leaves the store empty."""
    chat = ledger.open("new", echo, store=store)

    assert (chat.turns, chat.head, chat.heads(), chat.title) == ([], None, [], None)
    assert store.conversations() == []


def test_without_an_id_it_is_a_new_conversation(store):
    """Each open without an id is another conversation."""
    assert ledger.open(store=store).id != ledger.open(store=store).id


def test_without_a_store_it_is_this_process_memory():
    """Two opens of one id without a store are one conversation, as long as the process lives."""
    ledger.open("in-memory-of-this-test").record("a", "b")

    assert len(ledger.open("in-memory-of-this-test").turns) == 1


@pytest.mark.parametrize("id", ["", "../x", "a b", "x" * 201, "-a", "é", 7])
def test_an_unsafe_id_is_refused(store, id):
    """An id that is not a safe file name is refused before the store is touched."""
    with pytest.raises(errors.ConversationIdInvalid):
        ledger.open(id, store=store)


def test_an_empty_path_is_no_store():
    """An empty path does not mean the present folder by accident."""
    with pytest.raises(ValueError, match="empty path"):
        ledger.open("alex", store="")


def test_a_file_is_no_store(tmp_path):
    """A file in the folder's place is named for what it is."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(errors.StoreIO, match="it is a file, not a folder"):
        ledger.open("alex", store=tmp_path / "file").record("a", "b")


def test_a_folder_is_a_store(tmp_path):
    """A path opens the folder store there."""
    ledger.open("alex", store=tmp_path / "chats").record("a", "b")

    assert len(ledger.open("alex", store=str(tmp_path / "chats")).turns) == 1


# -- making turns


def test_calling_gives_the_answer_and_sending_the_turn(store):
    """`chat(...)` returns the answer, `chat.send(...)` the turn that has it."""
    chat = ledger.open("alex", echo, store=store)

    assert chat("hi") == "echo hi"
    turn = chat.send(message="again")
    assert (turn.result, turn.inputs, turn.outputs) == (
        "echo again",
        {"message": "again"},
        {"result": "echo again"},
    )
    assert turn.state == "done"
    assert turn.result == turn.outputs["result"]


def test_a_program_sees_the_turns_before_it(store):
    """`current().earlier()` gives the branch's earlier turns, inputs and outputs by name."""
    chat = ledger.open("alex", memory, store=store)

    assert [chat("a"), chat("b"), chat("c")] == ["nothing", "a", "a / b"]
    assert [t.inputs["message"] for t in chat.turns[-1].saw] == ["a", "b"]


def test_the_context_rule_decides_what_is_shown(store):
    """`last_turns(1)` shows only the last turn; fields named in `without` are left out."""
    chat = ledger.open("alex", memory, store=store, context=ledger.last_turns(1))
    assert [chat("a"), chat("b"), chat("c")] == ["nothing", "a", "b"]
    assert [t.inputs["message"] for t in chat.turns[-1].saw] == ["b"]

    def names(message):
        return [sorted(row) for row in ledger.current().earlier()]

    other = ledger.open("ben", names, store=store, context=ledger.all_turns(without=["result"]))
    other("a")
    assert other("b") == [["message"]]


def test_a_failing_program_leaves_a_failed_turn_and_its_exception(store):
    """The exception reaches the caller, the turn is `failed`, and the next turn passes it over."""

    def picky(message):
        if message == "bad":
            raise ValueError("no")
        return memory(message)

    chat = ledger.open("alex", picky, store=store)
    chat("a")

    with pytest.raises(ValueError, match="no"):
        chat("bad")

    failed = chat.turns[-1]
    assert (failed.state, failed.result, failed.outputs) == ("failed", None, {})
    assert failed.error == {"type": "ValueError", "message": "no"}
    assert chat("b") == "a"
    assert chat.turns[-1].parent == chat.turn(1)
    assert [t.ordinal for t in chat.all_turns()] == [1, 2, 3]


def test_an_answer_that_cannot_be_kept_fails_the_turn(store):
    """An answer with no exact JSON form is refused with its path, and the turn is `failed`."""
    chat = ledger.open("alex", lambda message: {"price": float("nan")}, store=store)

    with pytest.raises(errors.RecordInvalid) as caught:
        chat("hi")

    assert caught.value.path == "outputs.result.price"
    assert chat.turn(1).state == "failed"
    assert "record-invalid" in str(chat.turn(1).error)


def test_an_input_that_cannot_be_kept_is_refused_before_anything(store):
    """An input with no exact JSON form is refused with its path; nothing is recorded or run."""
    calls = []
    chat = ledger.open("alex", lambda message: calls.append(message), store=store)

    with pytest.raises(errors.RecordInvalid) as caught:
        chat({"items": [{"price": {1, 2}}]})

    assert caught.value.path == "inputs.message.items[0].price"
    assert (calls, chat.all_turns()) == ([], [])


def test_inputs_that_do_not_fit_record_nothing(store):
    """A TypeError names the input, and no turn begins."""
    chat = ledger.open("alex", echo, store=store)

    with pytest.raises(TypeError, match="mesage"):
        chat(mesage="hi")
    with pytest.raises(TypeError, match="opened without a program"):
        ledger.open("alex", store=store)("hi")

    assert chat.all_turns() == []


def test_a_turn_notes_who_answered(store):
    """`current().note` sets the model and sums the usage into the turn."""

    def program(message):
        ledger.current().note(model="m-1", usage={"input_tokens": 3})
        ledger.current().note(usage={"input_tokens": 4, "output_tokens": 1})
        return message

    turn = ledger.open("alex", program, store=store).send("hi")

    assert turn.model == "m-1"
    assert turn.usage == {"input_tokens": 7, "output_tokens": 1}
    assert turn.seconds is not None
    assert turn.seconds >= 0


def test_a_turn_says_what_was_recorded_of_its_settings(store):
    """`turn.settings` is what the record has: `lm` and what the program declares; nothing: an empty dict."""

    @ledger.program(settings=["temperature"])
    def program(message: str) -> str:
        return message

    chat = ledger.open("alex", program, store=store, lm="a", temperature=0.5, api_key="secret")

    assert chat.send("x").settings == {"lm": "a", "temperature": 0.5}
    assert chat.record("y", "z").settings == {}


def test_an_unknown_attribute_of_a_turn_is_named(store):
    """Who asks a turn for what it does not have is told so, and which outputs there are."""
    turn = ledger.open("alex", store=store).record("y", {"a": 1, "b": 2})

    with pytest.raises(AttributeError, match="no attribute 'c', and this one no such output: a, b"):
        turn.c  # noqa: B018


def test_a_setting_that_nobody_named_is_refused_with_the_way(store):
    """What is neither input nor setting is refused, naming both, and where a setting is named."""
    chat = ledger.open("alex", lambda message: message, store=store, lm="a", voice="low")
    with pytest.raises(
        TypeError, match=r"no input 'temperature'.*takes message.*knows lm, voice.*`open`"
    ):
        chat("x", temperature=0.1)
    assert chat.all_turns() == []


def test_settings_reach_the_program_and_only_lm_is_recorded(store):
    """Settings of the conversation and of the turn are found in `current()`; `lm` is recorded."""
    seen = []

    def program(message):
        seen.append(ledger.current().settings)
        return message

    chat = ledger.open("alex", program, store=store, lm="a", api_key="s3cr3t-canary")
    chat("x")
    turn = chat.send("y", lm="b")

    assert seen == [
        {"lm": "a", "api_key": "s3cr3t-canary"},
        {"lm": "b", "api_key": "s3cr3t-canary"},
    ]
    assert turn.model == "b"
    assert "s3cr3t-canary" not in str(store.read("alex"))


def test_renamed_fields_continue_an_imported_conversation(store):
    """`rename` maps a parameter to the field the earlier turns have."""
    ledger.open("alex", store=store).record("hi", "hello")

    chat = ledger.open(
        "alex", lambda question: memory(question), store=store, rename={"question": "message"}
    )

    assert chat("what?") == "hi"
    assert chat.turns[-1].inputs == {"message": "what?"}


def test_a_program_with_other_fields_is_refused(store):
    """A program whose fields differ from those of the turns it would be shown does not start."""
    ledger.open("alex", echo, store=store)("hi")

    def other(question: str) -> str:
        return question

    with pytest.raises(errors.SignatureChanged, match=r"lack question; message is no longer"):
        ledger.open("alex", other, store=store)("hi")


def test_a_field_of_any_shape_fits_every_shape(store):
    """Adding or dropping an annotation does not stop a conversation; changing one does."""
    ledger.open("alex", echo, store=store)("hi")

    assert ledger.open("alex", lambda message: message, store=store)("a") == "a"

    def changed(message: int) -> str:
        return str(message)

    with pytest.raises(errors.SignatureChanged, match="message has another shape"):
        ledger.open("alex", changed, store=store)(3)


def test_current_outside_of_a_turn_is_an_error():
    """Outside of a program there is no running turn."""
    with pytest.raises(LookupError):
        ledger.current()


@pytest.mark.parametrize("verb", ["send", "record", "merge"])
def test_making_a_turn_inside_a_turn_is_refused(store, verb):
    """A turn made from inside a turn is refused at once, instead of waiting for itself."""
    other = ledger.open("ben", store=store)
    first = other.record("a", "b")

    def program(message):
        if verb == "send":
            return chat(message)
        if verb == "record":
            return other.record("c", "d").id
        return other.merge([first], lambda answers: "x").id

    chat = ledger.open("alex", program, store=store)

    with pytest.raises(errors.Nested):
        chat("hi")
    assert len(other.all_turns()) == 1


# -- the same request again


def test_a_repeated_request_is_one_turn(store):
    """The same request id gives the recorded turn and result, and runs nothing."""
    calls = []

    def program(message):
        calls.append(message)
        return len(calls)

    chat = ledger.open("alex", program, store=store)
    first = chat.send("hi", request_id="r")

    assert chat.send("hi", request_id="r") == first
    assert ledger.open("alex", program, store=store)("hi", request_id="r") == 1
    assert calls == ["hi"]


def test_a_turn_is_found_by_its_request_id(store):
    """Who knows only the name of a request finds its turn, from anywhere; one name or the other is given."""
    first = ledger.open("alex", lambda message: message, store=store).send("hi", request_id="r")
    chat = ledger.open("alex", store=store)

    assert chat.turn(request_id="r") == first
    with pytest.raises(errors.TurnUnknown, match="'s' was sent under no turn"):
        chat.turn(request_id="s")
    with pytest.raises(TypeError, match="request_id"):
        chat.turn()
    with pytest.raises(TypeError, match="request_id"):
        chat.turn(1, request_id="r")


def test_equal_sends_without_a_request_id_are_turns_of_their_own(store):
    """Nothing is ever taken for a repetition by its content."""
    chat = ledger.open("alex", echo, store=store)
    for _ in range(3):
        chat("hi")
    assert len(chat.turns) == 3


def test_a_request_with_other_inputs_is_refused(store):
    """Other inputs under a request id are an error, and name the turn that has it."""
    chat = ledger.open("alex", echo, store=store)
    first = chat.send("hi", request_id="r")

    with pytest.raises(errors.RequestMismatch) as caught:
        chat("bye", request_id="r")

    assert caught.value.turn == first.id


def test_a_repeated_request_that_failed_says_how(store):
    """The repetition of a failed request raises turn-state with the recorded error."""

    def program(message):
        raise ValueError("no")

    chat = ledger.open("alex", program, store=store)
    with pytest.raises(ValueError, match="no"):
        chat("hi", request_id="r")

    with pytest.raises(errors.TurnState, match="ValueError: no"):
        chat("hi", request_id="r")


# -- two sends at once


def _slow(entered, go):
    def program(message):
        entered.set()
        assert go.wait(20)
        return message

    return program


@pytest.fixture
def busy(store):
    """A conversation whose only turn is running in another thread until `go` is set."""
    entered, go = threading.Event(), threading.Event()
    runner = ledger.open("alex", _slow(entered, go), store=store)
    thread = threading.Thread(target=runner, args=("first",))
    thread.start()
    assert entered.wait(20)
    yield go
    go.set()
    thread.join()


def test_queue_waits_and_continues_from_the_first(store, busy):
    """The second send waits; then its parent is the first."""
    chat = ledger.open("alex", lambda message: message, store=store)
    second = []
    thread = threading.Thread(target=lambda: second.append(chat.send("second")))
    thread.start()
    busy.set()
    thread.join(20)

    assert second[0].parent.inputs == {"message": "first"}


def test_refuse_raises_and_records_nothing(store, busy):
    """`sends="refuse"` raises conversation-busy with the turn and its state."""
    chat = ledger.open("alex", lambda message: message, store=store, sends="refuse")

    with pytest.raises(errors.Busy) as caught:
        chat("second")

    assert (caught.value.state, caught.value.conversation) == ("running", "alex")
    assert len(chat.all_turns()) == 1


def test_branch_goes_beside_the_running_turn(store, busy):
    """`sends="branch"` makes a second root beside the running first turn."""
    chat = ledger.open("alex", lambda message: message, store=store, sends="branch")

    assert chat.send("second").parent is None


def test_many_threads_send_to_one_conversation(store):
    """8 threads send 5 turns each: one line of 40 turns, every input once."""
    chat = ledger.open("alex", echo, store=store)
    threads = [
        threading.Thread(target=lambda n=n: [chat(f"{n}-{i}") for i in range(5)]) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    turns = ledger.open("alex", store=store).turns
    assert sorted(t.inputs["message"] for t in turns) == sorted(
        f"{n}-{i}" for n in range(8) for i in range(5)
    )
    assert [t.ordinal for t in turns] == list(range(1, 41))


def test_threads_that_share_a_view_make_one_line(store):
    """Sends through one `continue_from` view stand behind each other, not side by side."""
    ledger.open("alex", store=store).record("first", "f")
    view = ledger.open("alex", echo, store=store).continue_from(1)
    threads = [threading.Thread(target=view.send, args=(str(i),)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(view.turns) == 9


def test_a_turn_whose_lease_was_taken_over_records_nothing_more(store):
    """When another holder claimed the turn, its first process ends with lease-lost."""
    world = FakeWorld()

    def program(message):
        store.append("alex", [{**lease, "holder": "there:2:x", "attempt": 2}])
        return message

    chat = Conversation(Log(store, "alex"), View("alex", Program(program), world=world))
    lease = {
        "functai_conversation": 1,
        "kind": "lease",
        "at": "2026-01-01T00:00:00.000000Z",
        "turn": "00000000-0000-7000-8000-000000000000",
        "until": "2099-01-01T00:00:00.000000Z",
    }
    lease["turn"] = FakeWorld().turn_id()

    with pytest.raises(errors.LeaseLost):
        chat("hi")

    assert [r["kind"] for r in store.read("alex")] == ["program", "turn", "lease", "lease"]


def test_an_expired_lease_that_nobody_claimed_is_renewed_with_the_end(store):
    """A program slower than its lease still ends its turn: a renewal and the end in one append."""
    world = FakeWorld()

    def program(message):
        world.pass_time(3600)
        return message

    chat = Conversation(Log(store, "alex"), View("alex", Program(program), world=world))

    assert chat.send("hi").state == "done"
    kinds = [r["kind"] for r in store.read("alex")]
    assert kinds == ["program", "turn", "lease", "lease", "ended"]


def test_a_turn_whose_process_died_is_interrupted(store):
    """A turn with no end and a lease that ran out is `interrupted`, and passed over."""
    world = FakeWorld()

    class Died(BaseException):
        pass

    log = Log(store, "alex")
    chat = Conversation(log, View(log.conversation, Program(echo), world=world))
    store.append("alex", _running_turn(world))
    assert chat.turn(1).state == "running"

    world.pass_time(31)

    assert chat.turn(1).state == "interrupted"
    assert chat.send("next").parent is None


def _running_turn(world):
    from ledger.turns import commands

    history = ledger.History()
    sent = commands.Sent(turn=world.turn_id(), parent=None, inputs={"message": "x"})
    program = Program(echo).description
    return commands.start(
        history,
        sent,
        program=program,
        shown=history.shown(None, ledger.all_turns()),
        claim=commands.Claim("gone:1:x"),
        now=world.now(),
    )


# -- recording


def test_a_recorded_turn_is_done_with_all_it_was_given(store):
    """`record` keeps inputs, outputs, model and usage; text stands for message and result."""
    chat = ledger.open("alex", store=store)
    turn = chat.record("hi", "hello", model="m", usage={"input_tokens": 1})

    assert (turn.inputs, turn.outputs) == ({"message": "hi"}, {"result": "hello"})
    assert (turn.model, turn.usage, turn.state) == ("m", {"input_tokens": 1}, "done")
    assert turn.messages == [
        {"role": "user", "parts": [{"type": "text", "content": "hi"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "hello"}]},
    ]


def test_a_recorded_turn_keeps_its_messages(store):
    """Messages given are kept: the user side in the turn, all that came after in its end."""
    exchange = [
        {"role": "user", "parts": [{"type": "text", "content": "hi"}]},
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "1", "name": "f", "arguments": {}}],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": 3}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "3"}]},
    ]
    turn = ledger.open("alex", store=store).record("hi", "3", messages=exchange)

    assert turn.messages == exchange
    kinds = {r["kind"]: r for r in store.read("alex")}
    assert (len(kinds["turn"]["messages"]), len(kinds["ended"]["messages"])) == (1, 3)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"usage": {"tokens": -1}}, "usage.tokens"),
        ({"usage": {"tokens": 1.5}}, "usage.tokens"),
        ({"messages": [{"role": "robot", "parts": []}]}, "messages[0]"),
        ({"messages": [{"role": "user", "parts": ["hi"]}]}, "messages[0].parts[0]"),
        ({"messages": "hi"}, "messages"),
    ],
)
def test_what_cannot_be_recorded_is_refused_whole(store, given, path):
    """A wrong count or message is refused with its place, and nothing is stored."""
    chat = ledger.open("alex", store=store)

    with pytest.raises(errors.RecordInvalid) as caught:
        chat.record("a", "b", **given)

    assert caught.value.path == path
    assert store.read("alex") == []


def test_a_recorded_turn_may_have_no_output(store):
    """A turn recorded with nothing in or out is done, and has no result."""
    turn = ledger.open("alex", store=store).record({}, {})

    assert (turn.state, turn.inputs, turn.outputs, turn.result) == ("done", {}, {}, None)


def test_a_field_that_cannot_be_named_is_refused_whole(store):
    """A name that is no field's is refused with its place, and nothing is stored."""
    chat = ledger.open("alex", store=store)

    with pytest.raises(errors.RecordInvalid, match=r"inputs\['two words'\]"):
        chat.record({"two words": 1}, "b")
    assert store.read("alex") == []


def test_a_model_is_named_by_text(store):
    """A model of another type is refused, when recorded and when noted; readers would lose it."""

    def notes_a_number(message):
        ledger.current().note(model=5)  # type: ignore[arg-type]

    chat = ledger.open("alex", store=store)
    with pytest.raises(TypeError, match="not int"):
        chat.record("a", "b", model=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not int"):
        ledger.open("ben", notes_a_number, store=store)("hi")

    assert chat.all_turns() == []


def test_recorded_turns_say_what_they_saw(chat):
    """By default a recorded turn saw what the context shows; `saw` says otherwise."""
    third = chat.record("three", "3")
    assert [t.ordinal for t in third.saw] == [1, 2]

    other = chat.record("four", "4", saw=[1, third])
    assert [t.ordinal for t in other.saw] == [1, 4]


def test_a_parent_must_be_done(store):
    """A turn that has no answer cannot be continued by name."""
    chat = ledger.open("alex", lambda message: 1 / 0, store=store)
    with pytest.raises(ZeroDivisionError):
        chat("x")

    with pytest.raises(errors.TurnState, match="only a turn that is done"):
        chat.record("a", "b", parent=1)


def test_a_parent_of_none_begins_another_line(chat):
    """`parent=None` makes a second root."""
    assert chat.record("elsewhere", "e", parent=None).parent is None


# -- branches, heads, names


def test_continuing_from_a_turn_includes_it_and_keeps_both_paths(chat, store):
    """The branch goes through the chosen turn; nothing is copied or lost."""
    view = chat.continue_from(1)

    assert [t.ordinal for t in view.turns] == [1]
    assert [t.ordinal for t in chat.turns] == [1, 2]
    assert [t.ordinal for t in chat.all_turns()] == [1, 2, 3]
    assert len([r for r in store.read("alex") if r["kind"] == "turn"]) == 3


def test_continuing_from_the_newest_turn_works(chat):
    """The newest turn can be continued from exactly, whatever is added elsewhere meanwhile."""
    view = chat.continue_from(3)
    chat.record("elsewhere", "e")

    assert view.record("after 3", "x").parent.ordinal == 3


def test_a_view_follows_its_own_branch(chat, store):
    """After its turn, a view goes on with its branch, also when another process extends it."""
    view = chat.continue_from(1)
    mine = view.record("mine", "m")
    ledger.open("alex", store=store).continue_from(mine).record("longer", "l")
    chat.record("elsewhere", "e")

    assert [t.inputs["message"] for t in view.turns] == ["one", "mine", "longer"]


def test_a_fresh_view_follows_the_head(chat, store):
    """Opened by id, a view stands at the latest turn, or where a head record says."""
    fresh = ledger.open("alex", store=store)
    assert fresh.head.ordinal == 3

    chat.head = 2

    assert ledger.open("alex", store=store).head.ordinal == 2
    assert chat.record("next", "n").parent.ordinal == 2


def test_setting_the_head_to_the_head_writes_nothing(chat, store):
    """Moving the head to where it is appends no record."""
    before = len(store.read("alex"))
    chat.head = 3
    assert len(store.read("alex")) == before


def test_a_conversation_begun_anew(chat, store):
    """With the head before the first turn, everyone's next turn starts a line; the old ones stay."""
    chat.head = None
    chat.head = None
    fresh = ledger.open("alex", store=store)
    assert (fresh.head, fresh.turns, len(fresh.all_turns())) == (None, [], 3)

    assert fresh.record("anew", "a").parent is None
    assert [t.ordinal for t in fresh.heads()] == [4, 3, 2]
    assert len(fresh.entries("ledger", "cleared")) == 1


def test_heads_are_the_leaves_newest_first(chat):
    """Every branch's end is a head."""
    assert [t.ordinal for t in chat.heads()] == [3, 2]


def test_turns_are_found_by_ordinal_id_and_part(chat):
    """A turn is named by its number, its id, or a part of it that only it has."""
    second = chat.turn(2)

    assert chat.turn(second.id) == chat.turn(second.id[-10:]) == chat.turn(second) == second


@pytest.mark.parametrize("name", [0, 4, -1, "nope", "-7", ""])
def test_what_names_no_turn_is_unknown(chat, name):
    """A number or text that names no turn, or several, is refused."""
    with pytest.raises(errors.TurnUnknown):
        chat.turn(name)


@pytest.mark.parametrize("name", [True, None, 1.0])
def test_what_cannot_name_a_turn_is_a_type_error(chat, name):
    """Only a Turn, an id or an ordinal names a turn."""
    with pytest.raises(TypeError):
        chat.turn(name)


def test_a_turn_of_another_conversation_is_unknown(chat, store):
    """A Turn of one conversation does not name a turn of another."""
    other = ledger.open("ben", store=store).record("a", "b")

    with pytest.raises(errors.TurnUnknown):
        chat.continue_from(other)


# -- merging


def test_a_merge_makes_one_turn_of_several(chat):
    """The merged turn lands on the shared parent, names what it read and who made it."""
    merged = chat.merge([2, 3], lambda answers: " + ".join(a["result"] for a in answers))

    assert merged.result == "2 + 2b"
    assert merged.parent.ordinal == 1
    assert [t.ordinal for t in merged.reads] == [2, 3]
    assert merged.made_by["name"] == "<lambda>"
    assert merged.inputs == {"message": "two"}
    assert chat.head == merged
    assert [t.ordinal for t in chat.heads()] == [4]


def test_the_merging_program_is_given_whole_answers(chat):
    """Each answer comes with its turn, model, inputs, outputs and result."""
    given = []
    chat.merge([2, 3], lambda answers: given.append(answers))

    assert given[0][1] == {
        "turn": chat.turn(3).id,
        "model": "b",
        "inputs": {"message": "two again"},
        "outputs": {"result": "2b"},
        "result": "2b",
    }


def test_other_inputs_of_the_merging_program_go_by_name(chat):
    """Its one free parameter takes the answers, the others are given by name."""
    merged = chat.merge([2, 3], lambda style, found: f"{style}: {len(found)}", style="short")
    assert merged.result == "short: 2"
    with pytest.raises(TypeError, match="no parameter 'nope'"):
        chat.merge([2, 3], lambda found: "x", nope=1)
    with pytest.raises(TypeError, match="one parameter left"):
        chat.merge([2, 3], lambda: "x")


def test_pick_keeps_one_answer(chat):
    """`merging.pick(turn)` takes that turn's outputs as they are."""
    assert chat.merge([2, 3], merging.pick(chat.turn(3))).result == "2b"
    with pytest.raises(ValueError, match="not among"):
        chat.merge([2, 3], merging.pick(chat.turn(1)))


def test_the_next_turn_sees_the_merge_as_an_ordinary_turn(chat, store):
    """After a merge the conversation goes on from it."""
    merged = chat.merge([2, 3], merging.pick(chat.turn(3)))
    view = ledger.open("alex", memory, store=store)

    assert view("and?") == "one / two"
    assert view.turns[-1].parent == merged


def test_a_merge_does_not_make_records_grow(store):
    """The turn after a merge names the merge and links to the line before it, however long that is."""
    chat = ledger.open("alex", store=store)
    for i in range(20):
        chat.record(str(i), "x")
    tries = [chat.continue_from(20).record("try", str(i)) for i in range(2)]
    chat.merge(tries, merging.pick(tries[0]))
    after = chat.record("after", "y")

    sizes = [len(r["saw"]) for r in store.read("alex") if r["kind"] == "turn"]
    assert max(sizes) <= 3
    assert [t.ordinal for t in after.saw] == [*range(1, 21), 23]


def test_turns_of_different_depth_meet_at_their_common_ancestor(chat):
    """Turns without a shared parent land on the nearest common ancestor that is none of them."""
    deep = chat.continue_from(3).record("deeper", "d")
    assert chat.merge([2, deep], merging.pick(deep)).parent.ordinal == 1
    assert chat.merge([1, deep], merging.pick(deep)).parent is None


def test_onto_says_where_a_merge_lands(chat):
    """`onto` overrides the landing place; it must be done."""
    assert chat.merge([2, 3], merging.pick(chat.turn(2)), onto=3).parent.ordinal == 3
    assert chat.merge([2, 3], merging.pick(chat.turn(2)), onto=None).parent is None


@pytest.mark.parametrize("turns", [[], [2, 2]])
def test_a_merge_of_nothing_or_of_one_turn_twice_is_refused(chat, turns):
    """There must be turns, each once."""
    with pytest.raises(ValueError, match="merge"):
        chat.merge(turns, lambda answers: "x")


def test_a_merging_program_that_does_not_return_is_refused(chat):
    """A merging program that says its answer in pieces is refused before it is called, and what cannot be called."""

    def combine(answers):
        yield "x"

    with pytest.raises(TypeError, match="combine is a generator"):
        chat.merge([2, 3], combine)
    with pytest.raises(TypeError, match="callable"):
        chat.merge([2, 3], "not a program")
    with pytest.raises(TypeError, match="max does not say what it takes"):
        chat.merge([2, 3], max)


def test_a_merge_that_fails_records_nothing(chat, store):
    """What the merging program raises reaches the caller; the log is as it was."""
    before = store.read("alex")
    with pytest.raises(ZeroDivisionError):
        chat.merge([2, 3], lambda answers: 1 / 0)
    with pytest.raises(errors.RecordInvalid):
        chat.merge([2, 3], lambda answers: {1})
    assert store.read("alex") == before


def test_a_failed_turn_cannot_be_merged(store):
    """Only turns that are done have answers."""
    chat = ledger.open("alex", lambda message: 1 / 0, store=store)
    with pytest.raises(ZeroDivisionError):
        chat("x")
    with pytest.raises(errors.TurnState):
        chat.merge([1], lambda answers: "x")


# -- inspecting


def test_lineage_follows_what_was_seen_and_read(chat):
    """A merge rests on the turns it read, and through them on what those saw."""
    merged = chat.merge([2, 3], merging.pick(chat.turn(2)))
    found = chat.lineage(merged)

    assert set(found.read) == {chat.turn(2).id, chat.turn(3).id}
    assert {r.turn for r in found.rests_on} == {chat.turn(n).id for n in (1, 2, 3)}
    assert "1" in found.explain()


def test_the_tree_shows_every_turn_once(chat):
    """Every turn stands in the drawing: branches, models, merges, title, head."""
    chat.title = "Counting"
    chat.merge([2, 3], merging.pick(chat.turn(3)))

    assert str(chat.tree()).splitlines() == [
        "alex · Counting · 4 turns, 1 head",
        "1  one → 1",
        "├─ 2  two → 2  (a)",
        "├─ 3  two again → 2b  (b)",
        "4  two → 2b  (b) merges 2, 3 ◂ head",
    ]


def test_lines_that_begin_apart_are_drawn_apart(store):
    """Several first turns are several drawings; inputs after the first have their names."""
    chat = ledger.open("alex", store=store)
    chat.record({"message": "one", "tone": "dry"}, "1")
    chat.record({"message": "else", "tone": "kind"}, "2", parent=None)
    chat.record("three", "3")

    assert str(chat.tree()).splitlines() == [
        "alex · 3 turns, 2 heads",
        "1  one · tone: dry → 1",
        "",
        "2  else · tone: kind → 2",
        "3  three → 3  ◂ head",
    ]


def test_a_long_title_leaves_room_for_the_counts(chat):
    """The first line of a tree keeps the id and the counts; the title takes what is left."""
    chat.title = "A very long title " * 5
    assert str(chat.tree(width=50)).splitlines()[0].endswith(" · 3 turns, 2 heads")
    assert len(str(chat.tree(width=50)).splitlines()[0]) <= 50


def test_render_shows_what_the_next_turn_would_see(chat, store):
    """The rows and entries of the next turn, with nothing recorded."""
    before = store.read("alex")
    view = ledger.open("alex", echo, store=store, context=ledger.last_turns(1))
    rendered = view.render("next")

    assert rendered.inputs == {"message": "next"}
    assert rendered.rows == [{"message": "two again", "result": "2b"}]
    assert rendered.saw == [{"call": chat.turn(3).id}]
    assert store.read("alex") == before


def test_the_title_is_the_last_one_set(chat, store):
    """A title is kept beside the turns; the last one counts."""
    assert chat.title is None
    chat.title = "a"
    chat.title = "b"
    assert ledger.open("alex", store=store).title == "b"


@pytest.mark.parametrize("wrong", ["two\nlines", "one\n", "\n", "a\rb", "a\u2028b"])
def test_a_title_is_one_line(chat, wrong):
    """As a label: it stands in lists and at the head of a tree."""
    with pytest.raises(ValueError, match="a title is one line"):
        chat.title = wrong
    assert chat.title is None


def test_entries_belong_to_a_branch_or_to_all(chat):
    """An entry at a turn is found on branches through it; one without a turn everywhere."""
    chat.keep_entry("notes", "note", {"n": 1})
    chat.keep_entry("notes", "note", {"n": 2}, turn=2)

    assert [e["data"]["n"] for e in chat.continue_from(2).entries("notes", "note")] == [1, 2]
    assert [e["data"]["n"] for e in chat.continue_from(3).entries("notes", "note")] == [1]


def test_a_turn_says_when_and_shows_itself(store):
    """Times are aware datetimes; the repr names the turn, what was asked and answered."""
    chat = Conversation(Log(store, "alex"), View("alex", Program(echo), world=FakeWorld()))
    turn = chat.send("hi")

    assert turn.started == turn.ended == START
    assert repr(turn).startswith("<Turn 1 ")
    assert "hi -> echo hi" in repr(turn)
    assert repr(chat) == "<Conversation alex with echo: 1 turn>"


def test_outputs_are_attributes_too(store):
    """`turn.outputs["x"]` is `turn.x`; what is no output is an AttributeError naming them."""
    turn = ledger.open("alex", store=store).record({"q": 1}, {"answer": 2, "why": "because"})

    assert (turn.answer, turn.why) == (2, "because")
    with pytest.raises(AttributeError, match="answer, why"):
        turn.nope  # noqa: B018


def test_values_handed_out_are_copies(chat):
    """Changing what a turn handed out changes nothing."""
    turn = chat.turn(1)
    turn.inputs["message"] = "changed"
    assert turn.inputs == {"message": "one"}


def test_children_and_parents_are_turns(chat):
    """Structure is walked with turns."""
    assert [t.ordinal for t in chat.turn(1).children] == [2, 3]
    assert chat.turn(3).parent == chat.turn(1)


# -- other people's stores


class TwoMethods:
    """The least that is a store: plain dicts in a list, an error class of its own."""

    class Conflict(Exception):
        code = "store-conflict"

    def __init__(self):
        self.logs = {}
        self.conflicts = 0

    def append(self, conversation, records, *, expect=None):
        log = self.logs.setdefault(conversation, [])
        if self.conflicts:
            self.conflicts -= 1
            raise self.Conflict
        if expect is not None and expect != len(log):
            raise self.Conflict
        for record in records:
            log.append({**record, "seq": len(log) + 1})
        return len(log)

    def read(self, conversation, after=0):
        return self.logs.get(conversation, [])[after:]


def test_two_methods_make_a_store():
    """An object with append and read is a store; its conflicts are known by their code."""
    store = TwoMethods()
    store.conflicts = 2
    chat = ledger.open("alex", memory, store=store)

    assert [chat("a"), chat("b")] == ["nothing", "a"]
    assert chat.continue_from(1).send("c").parent.ordinal == 1


def test_what_is_no_store_is_refused():
    """Anything else is a TypeError, at once."""
    with pytest.raises(TypeError, match="store"):
        ledger.open("alex", store=object())


def test_a_conversation_that_was_made_anew_is_read_anew(store):
    """After delete and re-create, an open view sees the new conversation, not a mixture."""
    chat = ledger.open("alex", store=store)
    chat.record("old", "o")
    chat.record("old 2", "o")
    store.delete("alex")
    ledger.open("alex", store=store).record("new", "n")

    assert [t.inputs["message"] for t in chat.all_turns()] == ["new"]


# -- damage


def test_opening_a_damaged_conversation_warns_once_and_goes_on(tmp_path):
    """Damage is told once, with the places; the rest is readable and writable."""
    chat = ledger.open("alex", store=tmp_path)
    for text in ("one", "two", "three"):
        chat.record(text, text)
    log = tmp_path / "conversations" / "alex.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"message":"two"', b'"message":"tWo"'))
    chat = ledger.open("alex", store=ledger.FolderStore(tmp_path))

    with pytest.warns(errors.DamageWarning, match="left out: record 4;"):
        found = chat.all_turns()

    assert [t.inputs["message"] for t in found] == ["one", "three"]
    assert chat.record("four", "4").state == "done"
    assert [f.seq for f in chat.store.damage("alex")] == [4]


def test_lineage_says_that_what_came_before_cannot_be_read(tmp_path):
    """A turn whose parent is damaged is not called a first turn."""
    chat = ledger.open("alex", store=tmp_path)
    chat.record("one", "1")
    last = chat.record("two", "2")
    log = tmp_path / "conversations" / "alex.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"one"', b'"0ne"'))

    with pytest.warns(UserWarning, match="damaged"):
        told = ledger.open("alex", store=ledger.FolderStore(tmp_path)).lineage(last.id).explain()

    assert "continues a turn that cannot be read here" in told
    assert "names 1 turn that cannot be read here" in told
