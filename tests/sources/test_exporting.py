"""Exporting conversations of stores: one, several, all; in pieces; read back by importing."""

import json
import tracemalloc
from typing import Any

import pytest

import ledger
from ledger import errors
from ledger.sources import exporting
from ledger.sources.importing import import_conversations

FORMATS = [name for name in exporting.FORMATS if name != "markdown"]


@pytest.fixture(params=["memory", "folder"])
def store(request, tmp_path):
    """A store of each kind."""
    kind = request.param
    return ledger.MemoryStore() if kind == "memory" else ledger.FolderStore(tmp_path / "store")


@pytest.fixture
def trip(store):
    """A conversation with two answers to its second question, rated; the head is the second."""
    chat = ledger.open("trip", store=store)
    first = chat.record("Where?", "Porto.", model="a")
    chat.record("How?", "By train.", model="a").rate(1)
    chat.continue_from(first).record("How?", "By plane.", model="b").rate(0)
    return ledger.open("trip", store=store)


def text(made):
    return b"".join(made).decode()


def lines(made):
    return [json.loads(line) for line in text(made).splitlines()]


def test_the_heads_branch_or_all(trip):
    """A line is a branch: the one that the view stands on, one through a turn, or each."""
    (head,) = lines(ledger.export(trip, "openai-chat"))
    (first,) = lines(ledger.export(trip.continue_from(2), "openai-chat"))
    (same,) = lines(ledger.export(trip, "openai-chat", turn=2))

    assert "By plane." == head["messages"][-1]["content"]
    assert "By train." == first["messages"][-1]["content"]
    assert first == same
    assert [first, head] == lines(ledger.export(trip, "openai-chat", branches="all"))


def ends(made):
    """What the rows end with."""
    return [row["messages"][-1]["content"] for row in lines(made)]


def test_rows_end_with_the_turns_that_are_chosen(store, trip):
    """By rating, by label of the turn or the conversation, by model; what is left out is counted."""
    trip.turn(2).label("good")
    trip.label("user:ann")
    other = ledger.open("other", store=store)
    other.record("Who?", "Me.", model="b")
    every: Any = {"branches": "all"}

    assert ["By train."] == ends(ledger.export(store, "openai-chat", min_rating=1, **every))
    assert ["By train."] == ends(ledger.export(store, "anthropic", labels=["good"], **every))
    assert ["By train.", "By plane."] == ends(
        ledger.export(store, "openai-chat", labels=["user:ann"], **every)
    )
    both = ["good", "user:ann"]
    assert ["By train."] == ends(ledger.export(store, "openai-chat", labels=both, **every))
    made = ledger.export(store, "openai-chat", models=["a"])
    assert ["Porto."] == ends(made)
    assert {"turns left out, which do not fit, nor does one behind them": 2} == made.notes
    (row,) = lines(ledger.export(trip, "sharegpt", models=["a"], turn=2))
    assert "By train." == row["conversations"][-1]["value"]


def test_of_preferences_the_chosen_answer_is_chosen(trip):
    """A pair whose chosen answer does not fit is left out, and counted."""
    (row,) = lines(ledger.export(trip, "preferences", min_rating=1, models=["a"]))
    made = ledger.export(trip, "preferences", models=["b"])

    assert "By train." == row["chosen"][0]["content"]
    assert [] == lines(made)
    assert {"pairs left out, whose chosen answer does not fit": 1} == made.notes


_ROLES = ("system", "user", "assistant")


def test_instructions_stand_in_rows_that_have_none_of_their_own(store, trip):
    """They are not recorded when a program gives them to its model; those that are recorded stay."""
    told = [{"role": r, "parts": [{"type": "text", "content": r}]} for r in _ROLES]
    own = ledger.open("own", store=store)
    own.record("user", "assistant", messages=told)
    given: Any = {"instructions": "Rhyme."}

    first, second = lines(ledger.export(store, "openai-chat", **given))
    assert [{"role": "system", "content": "system"}] == first["messages"][:1]
    assert [{"role": "system", "content": "Rhyme."}] == second["messages"][:1]
    (row,) = lines(ledger.export(trip, "anthropic", **given))
    assert "Rhyme." in str(row["system"])
    assert ["system", "Rhyme."] == [
        r["system"] for r in lines(ledger.export(store, "sharegpt", **given))
    ]
    (row,) = lines(ledger.export(trip, "preferences", **given))
    assert {"role": "system", "content": "Rhyme."} == row["prompt"][0]
    chats = json.loads(text(ledger.export(store, "open-webui", **given)))
    assert [{"system": "system"}, {"system": "Rhyme."}] == [one["chat"]["params"] for one in chats]


def test_what_an_import_preferred_is_a_preference(trip, tmp_path):
    """Pairs that were exported for OpenAI and imported are pairs again, unless somebody rates them here."""
    path, back = tmp_path / "pairs.jsonl", ledger.MemoryStore()
    ledger.export(trip, "preferences-openai").write(path)
    ledger.import_conversations(path, store=back)

    assert lines(ledger.export(back, "preferences-openai")) == lines(
        ledger.export(trip, "preferences-openai")
    )
    (id,) = back.conversations()
    chat = ledger.open(id, store=back)
    for turn in chat.all_turns():
        turn.rate(turn.result == "By plane.")
    (row,) = lines(ledger.export(back, "preferences"))
    assert "By plane." == row["chosen"][0]["content"]


def test_a_row_that_no_user_begins_is_told(store):
    """A greeting that nobody asked for is a row, and the notes say so."""
    chat = ledger.open("greeting", store=store)
    greeting = {"role": "assistant", "parts": [{"type": "text", "content": "Welcome!"}]}
    chat.record("", "Welcome!", messages=[greeting])
    made = ledger.export(chat, "openai-chat")

    assert ["Welcome!"] == ends(made)
    assert {"rows in which no user says anything": 1} == made.notes


def test_a_speakers_name_is_spelled_as_openai_takes_it(store):
    """Letters, digits, `_` and `-`; a name of none of these is left out; each change is counted."""
    chat = ledger.open("names", store=store)
    for name in ("ann", "Dr. Wh\u00f6", "\u674e"):
        said = [
            {"role": role, "parts": [{"type": "text", "content": role}]}
            for role in ("user", "assistant")
        ]
        chat.record("user", "assistant", messages=[{**said[0], "name": name}, said[1]])
    made = ledger.export(chat, "openai-chat")
    (row,) = lines(made)

    assert ["ann", "Dr_Who", None] == [one.get("name") for one in row["messages"][::2]]
    assert 2 == sum(made.notes.values())
    with pytest.raises(ledger.errors.MessagesLossy, match="name"):
        chat.messages("openai", strict=True)


def test_all_of_a_store_in_one_file(store, trip, tmp_path):
    """A store, or several conversations, is one file; it is written whole, and made anew each time."""
    other = ledger.open("other", store=store)
    other.record("Hi", "Hello")
    made = ledger.export(store, "sharegpt")
    made.write(tmp_path / "out.jsonl")

    assert ["other", "trip"] == [row["id"] for row in lines(made)]
    assert text(made) == (tmp_path / "out.jsonl").read_text()
    assert (2, 2) == (made.conversations, made.rows)
    assert ["trip", "other"] == [
        row["id"] for row in lines(ledger.export([trip, other], "sharegpt"))
    ]
    with pytest.raises(FileExistsError):
        made.write(tmp_path / "out.jsonl")


@pytest.mark.parametrize("format", ["json", "open-webui", "sharegpt", "openai-chat"])
def test_it_is_imported_again(store, trip, tmp_path, format):
    """What has an importer comes back: every branch, and of json and Open WebUI the title and the head."""
    trip.title = "Trip"
    ledger.open("other", store=store).record("Hi", "Hello")
    ledger.export(store, format, branches="all").write(tmp_path / "out.json")
    there = ledger.MemoryStore()
    report = import_conversations(tmp_path / "out.json", store=there)
    chats = [ledger.open(name, store=there) for name in there.conversations()]
    (back,) = [chat for chat in chats if len(chat.all_turns()) > 1]

    assert (2, 4) == (report.conversations, report.turns)
    assert {"By train.", "By plane."} == {turn.result for turn in back.heads()}
    if format in ("json", "open-webui"):
        assert ("Trip", "By plane.") == (back.title, back.head.result)


def test_one_conversation_as_json_is_what_it_was(trip):
    """In pieces or at once, one conversation is the one document that `export_json` gives."""
    assert text(ledger.export(trip, "json")).encode() == ledger.export_json(trip)


def test_attachments_are_read_piece_by_piece(tmp_path):
    """Memory holds a piece of an attachment, not all of them, nor one."""
    chat = ledger.open("big", store=tmp_path / "store")
    for n in range(3):
        chat.record({"file": ledger.Attachment(bytes([n]) * 3_000_000)}, "ok")
    tracemalloc.start()
    try:
        ledger.export(chat, "json").write(tmp_path / "out.json")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 5_000_000
    report = import_conversations(tmp_path / "out.json", store=tmp_path / "other")
    there = ledger.open("big", store=tmp_path / "other")
    assert 3 == report.turns
    assert [turn.inputs["file"].bytes for turn in there.turns] == [
        bytes([n]) * 3_000_000 for n in range(3)
    ]


def test_images_go_along_as_data(tmp_path):
    """The bytes of an image stand in the line; one at an address is named by it."""
    chat = ledger.open("a", store=tmp_path)
    asked = ledger.Attachment(b"pixels", media_type="image/png")
    chat.record({"message": ["Look", asked]}, "A cat.")
    (row,) = lines(ledger.export(chat, "openai-chat"))
    (theirs,) = lines(ledger.export(chat, "anthropic"))

    assert {"url": "data:image/png;base64,cGl4ZWxz"} == row["messages"][0]["content"][1][
        "image_url"
    ]
    assert "cGl4ZWxz" == theirs["messages"][0]["content"][1]["source"]["data"]


def test_markdown_has_every_branch_once(store, trip):
    """Each turn is written once; a further branch says from where it goes on."""
    trip.continue_from(None).record("Else?", "No.")
    ledger.open("other", store=store).record("Hi", "Hello")
    told = text(ledger.export(ledger.open("trip", store=store), "markdown", branches="all"))
    both = text(ledger.export(store, "markdown", branches="all"))

    assert [1] * 4 == [told.count(f"## {n} · User") for n in (1, 2, 3, 4)]
    assert "# Another branch, after turn 1" in told
    assert "# Another branch, from the beginning" in told
    assert both.count("# other\n") == both.count("\n# trip\n") == 1
    assert ledger.export_markdown(trip) == text(ledger.export(trip, "markdown"))


def test_turns_that_failed_are_told(trip):
    """How many turns have no answer is in the notes, anew at each reading."""

    def fails(message: str) -> str:
        raise RuntimeError(message)

    with pytest.raises(RuntimeError):
        ledger.open("trip", fails, store=trip.store)("What?")
    made = ledger.export(trip, "openai-chat", branches="all")

    assert 2 == len(lines(made)) == len(lines(made))
    assert {"turns left out, without an answer (failed)": 1} == dict(made.notes)


@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_store_is_an_empty_file(format):
    """Nothing to export is an empty list, or no line."""
    made = ledger.export(ledger.MemoryStore(), format)

    assert text(made) in ("", "[\n]\n")


@pytest.mark.parametrize(
    ("format", "choice", "raises"),
    [
        ("odd", {}, ValueError),
        ("sharegpt", {"branches": "some"}, ValueError),
        ("preferences", {"pairs": "some"}, ValueError),
        ("open-webui", {"turn": 1}, ValueError),
        ("sharegpt", {"turn": 1, "branches": "all"}, ValueError),
        ("open-webui", {"min_rating": 1}, ValueError),
        ("json", {"labels": ["x"]}, ValueError),
        ("markdown", {"instructions": "x"}, ValueError),
        ("sharegpt", {"labels": "x"}, TypeError),
        ("sharegpt", {"models": "x"}, TypeError),
        ("sharegpt", {"min_rating": "1"}, TypeError),
        ("sharegpt", {"instructions": ["x"]}, TypeError),
    ],
)
def test_choices_that_are_none_are_refused(trip, format, choice, raises):
    """A format or choice that is not known, or does not go together, is refused before anything is read."""
    with pytest.raises(raises):
        ledger.export(trip, format, **choice)


def test_what_is_no_conversation_is_refused(trip):
    """Only conversations and stores are exported; a store has to list what it has."""
    with pytest.raises(TypeError):
        ledger.export(7, "json")
    with pytest.raises(TypeError):
        ledger.export([trip], "sharegpt", turn=1)
    for wrong in ("trip", None, ledger.aio.open("trip")):
        for whole in (ledger.export_json, ledger.export_markdown):
            with pytest.raises(TypeError, match=f"a conversation.*not {type(wrong).__name__}; "):
                whole(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"a conversation.*not str"):
        b"".join(ledger.export([trip, "trip"], "markdown"))

    class Silent:
        """A store that lists nothing."""

        def append(self, conversation, records, *, expect=None):
            raise AssertionError

        def read(self, conversation, after=0):
            return []

    with pytest.raises(errors.StoreUnsupported):
        text(ledger.export(Silent(), "sharegpt"))
