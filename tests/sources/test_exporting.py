"""Exporting conversations of stores: one, several, all; in pieces; read back by importing."""

import json
import tracemalloc

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


def test_a_missing_attachment_is_told(tmp_path):
    """Bytes that are not in the store are left out, and counted."""
    store = ledger.FolderStore(tmp_path)
    chat = ledger.open("a", store=store)
    chat.record({"file": ledger.Attachment(b"x")}, "ok")
    store.blobs.remove([chat.attachments()[0].sha256])
    made = ledger.export(chat, "json")

    assert {} == json.loads(text(made))["attachments"]
    assert {"attachments left out, whose bytes are not in the store": 1} == dict(made.notes)


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
