"""What a turn was shown is told as it was: by the turn, its lineage, a comparison; and can be asked again."""

import asyncio
import inspect
import json

import pytest

import ledger
from ledger import aio


def recall(message: str) -> str:
    """Answer with all that is shown."""
    return json.dumps(ledger.current().earlier())


def look(message: str) -> str:
    """Call a tool before the answer."""
    ledger.current().tool("look", {"at": message}, lambda: "found", effects="reads")
    return message


def asked(context=None, program=recall, **keys):
    """A conversation of two turns, in a store of its own, and a view with a context."""
    store = ledger.MemoryStore()
    chat = ledger.open("a", program, store=store)
    chat("one")
    chat("two")
    return chat, ledger.open("a", recall, store=store, context=context, **keys)


def summarize(earlier, rows):
    """A summary for tests."""
    return f"{earlier}{len(rows)}"


CONTEXTS = [
    None,
    ledger.last_turns(1),
    ledger.all_turns(without=["result"]),
    ledger.pipeline(ledger.last_turns(1), ledger.all_turns(without=["message", "result"])),
    ledger.all_turns(steps=False),
    ledger.compacted(summarize, keep_last=1, every=1),
    lambda turns: [turns[0].leaving_out("message"), turns[1]],
]


@pytest.mark.parametrize("program", [recall, look])
@pytest.mark.parametrize("context", CONTEXTS)
def test_shown_is_what_the_program_found(context, program):
    """Whatever the context: the rows of `shown` are those that the program was given."""
    _, view = asked(context, program)
    turn = view.send("three")
    assert turn.shown == json.loads(turn.result)


@pytest.mark.parametrize("program", [recall, look])
@pytest.mark.parametrize("context", CONTEXTS)
def test_an_answer_is_asked_again_as_it_was(context, program):
    """With `as_shown` a send shows just the same once more, and records the same."""
    chat, view = asked(context, program)
    turn = view.send("three")
    view("four")
    again = chat.regenerate(turn, context=turn.as_shown)
    assert again.parent == turn.parent
    assert (again.shown, again.without) == (turn.shown, turn.without)
    assert (again.saw, again.saw_summary) == (turn.saw, turn.saw_summary)


def test_it_is_not_asked_again_with_less():
    """Where a branch lacks what the turn was shown, or it was forgotten, nothing is recorded."""
    chat, view = asked()
    turn = view.send("three")
    with pytest.raises(ValueError, match="not on this branch, or was taken out"):
        chat.continue_from(1).send("three", context=turn.as_shown)
    chat.forget(1)
    with pytest.raises(ValueError, match="not on this branch, or was taken out"):
        chat.continue_from(2).send("three", context=turn.as_shown)
    assert len(chat.all_turns()) == 3


def test_what_was_left_out_is_told():
    """By the turn, its lineage, and a comparison, in data and in words."""
    chat, view = asked(ledger.all_turns(without=["message", "result"]))
    one, two = chat.turns
    whole, bare = chat.send("three"), view.continue_from(2).send("three")
    lacking = {turn.id: ["message", "result"] for turn in (one, two)}
    assert (whole.without, bare.without) == ({}, lacking)
    assert chat.lineage(bare).to_dict()["without"] == lacking
    assert "saw turns 1 to 2 without message, result" in str(chat.lineage(bare))
    assert "without" not in str(chat.lineage(whole))
    found = chat.diff(whole, bare)
    assert (found.saw.without_a, found.saw.without_b) == ({}, lacking)
    assert "turn 3 saw turns 1 to 2\n  turn 4 saw turns 1 to 2 without message, result" in str(
        found
    )
    assert found.to_dict()["saw"]["without_b"] == lacking


def test_tool_calls_left_out_are_told():
    """A turn that called tools and was shown without them was not shown whole."""
    chat, view = asked(ledger.all_turns(steps=False), look)
    bare = view.send("three")
    assert list(bare.without.values()) == [["steps"]] * 2
    assert "saw turns 1 to 2 without steps" in str(chat.lineage(bare))


def test_attachments_are_shown_as_elsewhere():
    """They can be read, also where the turn was read by another object."""
    chat = ledger.open("a", lambda message: "seen", store=ledger.MemoryStore())
    chat(ledger.Attachment(b"picture"))
    chat("and now?")
    shown = ledger.open("a", store=chat.store).turn(2).shown
    assert shown[0]["message"].read() == b"picture"


def test_a_turn_as_data():
    """`to_dict` is JSON on both faces; with what grows with the conversation where that is asked for."""
    _, view = asked(ledger.all_turns(without=["result"]))
    turn = view.send("three", lm="m")
    turn.rate(1)
    told = json.loads(json.dumps(turn.to_dict(saw=True)))
    assert (told["parent"], told["saw"]) == (turn.parent.id, [seen.id for seen in turn.saw])
    assert (told["model"], told["result"], told["ratings"][0]["value"]) == ("m", turn.result, 1)
    assert told["without"] == turn.without
    assert told.keys() - turn.to_dict().keys() == {"saw", "without"}
    assert aio.Turn(view._log, view._view, turn.id).to_dict() == turn.to_dict()


# -- before it is sent -----------------------------------------------------------------------------


async def got(value):
    """What a verb gives, awaited where it has to be."""
    return await value if inspect.isawaitable(value) else value


def send(message: list[str | ledger.Attachment], tone: str = "dry") -> str:
    """Answer with what would be sent to a model."""
    return json.dumps(ledger.current().messages("openai", instructions="Be kind."))


@pytest.mark.parametrize("face", [ledger, aio], ids=["blocking", "aio"])
def test_render_gives_the_messages_that_would_be_sent(face, tmp_path):
    """The very list that the program then makes, with attachments that no store has; nothing is recorded."""
    (tmp_path / "b.png").write_bytes(b"more")

    async def sent(message: list[str | ledger.Attachment], tone: str = "dry") -> str:
        told = await ledger.current().messages("openai", instructions="Be kind.")
        return json.dumps(told)

    async def scenario():
        store = ledger.FolderStore(tmp_path / "store")
        chat = face.open("a", send if face is ledger else sent, store=store)
        await got(chat(["one", ledger.Attachment(b"first", name="a.png")]))
        before = store.read("a")
        asked = ["two", ledger.Attachment(b"new", name="a.png")]
        asked.append(ledger.Attachment(path=tmp_path / "b.png"))
        for context in (None, ledger.last_turns(0)):
            rendered = await got(chat.render(asked, context=context))
            listed = await got(rendered.messages("openai", instructions="Be kind."))
            again = await got((await got(chat.render(asked, context=context))).messages("openai"))
            assert again == listed[1:]
            assert store.read("a") == before
            view = await got(chat.continue_from(1))
            assert json.loads(await got(view(asked, context=context))) == listed
            before = store.read("a")

    asyncio.run(scenario())


def test_rendered_messages_have_the_messages_given():
    """`messages=` is the user side of them, as of the send; without arguments there is none."""
    chat, _ = asked()
    said = [{"role": "user", "parts": [{"type": "text", "content": "look"}]}]
    assert chat.render("x", messages=said).messages()[-1:] == said
    assert chat.render().messages() == chat.messages()


def test_what_is_to_be_summarized_is_rendered_itself():
    """Nothing is left out of the messages for a summary that is not made."""
    _, view = asked(ledger.compacted(summarize, keep_last=1, every=1))
    rendered = view.render("three")
    assert len(rendered.to_summarize) == 1
    assert [m["parts"][0]["content"] for m in rendered.messages() if m["role"] == "user"] == [
        "one",
        "two",
        "three",
    ]


# -- for one turn ----------------------------------------------------------------------------------


@pytest.mark.parametrize("face", [ledger, aio], ids=["blocking", "aio"])
def test_a_context_for_one_turn(face):
    """It is that turn's only, by every verb that makes one; None is the conversation's own."""

    async def scenario():
        chat = face.open("a", recall, store=ledger.MemoryStore(), context=ledger.last_turns(1))
        for word in "abc":
            await got(chat(word))
        counts = [len(json.loads(await got(chat("d", context=ledger.all_turns()))))]
        stream = chat.stream("e", context=lambda turns: turns[:2])
        counts.append(len(json.loads(await got((await got(stream)).result))))
        tries = await got(chat.tries("f", settings=[{}, {}], context=ledger.last_turns(3)))
        counts += [len(turn.shown) for turn in tries]
        counts.append(len((await got(chat.send("g", context=None))).shown))
        counts.append(len((await got(chat.send("h"))).shown))
        return counts

    assert asyncio.run(scenario()) == [3, 2, 3, 3, 1, 1]


def test_an_input_named_context_stays_an_input():
    """A program's own parameters come first."""

    def answer(message: str, context: str, approve: bool) -> str:
        return f"{message} {context} {approve}"

    chat = ledger.open("a", answer, store=ledger.MemoryStore())
    assert chat("x", context="y", approve=True) == "x y True"


def test_what_is_no_context_is_refused():
    """As by `open`; nothing is recorded."""
    chat = ledger.open("a", recall, store=ledger.MemoryStore())
    with pytest.raises(TypeError, match="context is a rule"):
        chat("x", context=5)
    assert chat.turns == []
