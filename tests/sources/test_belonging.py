"""Tests of `ledger.sources.belonging`: what several people import into one store stays apart."""

import json
from pathlib import Path

import pytest

import ledger
from ledger import errors
from ledger.formats.base import Draft, Notes
from ledger.sources.belonging import conversation_id

EXPORT = Path(__file__).parents[2] / "docs" / "tutorial" / "chatgpt-export.json"
FRACTIONS = "6955bd00-aaaa-4bbb-8ccc-000000000001"


def chats(path, secret):
    """Write a chat that begins as everybody's does, and goes on with a secret."""
    said = [
        {"role": "system", "content": "You are Acme's assistant."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": secret},
        {"role": "assistant", "content": "Noted."},
    ]
    path.write_text(json.dumps({"messages": said}) + "\n")
    return path


@pytest.fixture
def ann(tmp_path):
    """What Ann said."""
    return chats(tmp_path / "ann.jsonl", "my salary is 1000")


@pytest.fixture
def bob(tmp_path):
    """What Bob said."""
    return chats(tmp_path / "bob.jsonl", "my doctor said X")


@pytest.fixture(params=["memory", "folder"])
def store(request, tmp_path):
    """A store of each kind."""
    kind = request.param
    return ledger.MemoryStore() if kind == "memory" else ledger.FolderStore(tmp_path / "store")


def test_chats_of_two_that_begin_alike_are_two_under_prefixes(store, ann, bob):
    """Neither conversation holds a word, or a turn, of the other; without prefixes they are one."""
    for prefix, path in (("ann.", ann), ("bob.", bob)):
        ledger.import_conversations(path, store=store, prefix=prefix)
    hers, his = (ledger.open(id, store=store) for id in sorted(store.conversations()))

    assert (hers.id[:4], his.id[:4]) == ("ann.", "bob.")
    assert [turn.inputs["message"] for turn in hers.turns] == ["Hi", "my salary is 1000"]
    assert [turn.inputs["message"] for turn in his.turns] == ["Hi", "my doctor said X"]
    assert not {turn.id for turn in hers.all_turns()} & {turn.id for turn in his.all_turns()}
    assert len(ledger.catalog.of(store).usage(by="conversation")) == 2


def test_importing_again_under_a_prefix_adds_nothing(store, tmp_path):
    """Ids follow from the prefix and the source; the head and the branches are those of the source."""
    ledger.import_conversations(EXPORT, store=store, prefix="ann.")
    before = store.raw(f"ann.{FRACTIONS}")

    report = ledger.import_conversations(EXPORT, store=store, prefix="ann.")

    assert store.raw(f"ann.{FRACTIONS}") == before
    assert (report.turns, report.turns_known) == (0, 6)
    plain = tmp_path / "plain"
    ledger.import_conversations(EXPORT, store=plain)
    one, other = ledger.open(f"ann.{FRACTIONS}", store=store), ledger.open(FRACTIONS, store=plain)
    assert len(one.heads()) == len(other.heads())
    assert one.head.inputs == other.head.inputs
    assert one.head.started == other.head.started
    assert one.head.source == other.head.source


def test_a_file_that_was_seen_is_read_under_another_prefix(tmp_path, ann):
    """What a folder remembers of files, it remembers by prefix."""
    store = ledger.FolderStore(tmp_path / "store")
    reports = [
        ledger.import_conversations(ann, store=store, prefix=prefix)
        for prefix in ("", "ann.", "bob.", "ann.")
    ]

    assert [report.turns for report in reports] == [2, 2, 2, 0]
    assert len(store.conversations()) == 3


@pytest.mark.parametrize(("mine", "anothers"), [("bob.jr.", "bob."), ("bob.", ""), ("bob.jr.", "")])
def test_an_id_that_says_anothers_prefix_adds_to_nobodys_chat(store, tmp_path, mine, anothers):
    """Who writes a file chooses the ids in it: one that goes on as another's prefix does lands in nobody's chats."""
    export = json.loads(EXPORT.read_text())[:1]
    for name, behind in (("mine", "chat"), ("other", f"{mine.removeprefix(anothers)}chat")):
        export[0] |= {"id": behind, "conversation_id": behind}
        (tmp_path / f"{name}.json").write_text(json.dumps(export))
    ledger.import_conversations(tmp_path / "mine.json", store=store, prefix=mine)
    before = store.raw(f"{mine}chat")

    with pytest.raises(errors.ImportInvalid, match="that of one imported under the prefix") as told:
        ledger.import_conversations(tmp_path / "other.json", store=store, prefix=anothers)

    assert f"{mine}chat" in str(told.value)
    assert store.raw(f"{mine}chat") == before
    assert store.conversations() == [f"{mine}chat"]
    assert ledger.import_conversations(tmp_path / "mine.json", store=store, prefix=mine).turns == 0


def test_ids_of_turns_under_a_prefix_never_change():
    """They are compared for ever: this one was written once."""
    store = ledger.MemoryStore()
    ledger.import_conversations(EXPORT, store=store, prefix="ann.")

    found = ledger.open(f"ann.{FRACTIONS}", store=store).turn(1).id

    assert found == "019b76da-a800-7e0f-9b3a-f570fb3927d8"


@pytest.mark.parametrize(
    ("source", "expected"), [("abc", "ann.abc"), ("a/b", "ann.f-"), ("a" * 198, "ann.f-")]
)
def test_a_conversation_is_named_behind_its_prefix(source, expected):
    """An id that cannot be one, or that the prefix makes too long, is known by its hash."""
    found = conversation_id(Draft("f", source, None, [], None, [], Notes()), "ann.")

    assert found.startswith(expected)
    assert len(found) <= 200


@pytest.mark.parametrize("prefix", ["a/b.", ".", "ann", "a" * 101])
def test_a_prefix_that_no_id_can_begin_with_is_refused(store, ann, prefix):
    """So is one that may begin the ids of somebody else."""
    with pytest.raises(errors.ConversationIdInvalid):
        ledger.import_conversations(ann, store=store, prefix=prefix)
    assert store.conversations() == []


def test_labels_are_put_on_what_gains_a_turn(store, ann):
    """And on nothing that was there whole: an import without news writes nothing."""
    ledger.import_conversations(ann, store=store)
    ledger.import_conversations(ann, store=store, labels=["user:ann"])
    ledger.import_conversations(EXPORT, store=store, labels=["user:ann", "school"])

    found = ledger.catalog.of(store).conversations(labels=["user:ann"])
    assert len(found) == 2
    assert {tuple(each.labels) for each in found} == {("user:ann", "school")}


def test_a_label_that_was_taken_off_stays_off(store, tmp_path):
    """A longer file that is imported with the same labels does not bring it back."""
    lines = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps({"messages": lines}))
    ledger.import_conversations(path, store=store, labels=["new", "mine"])
    (id,) = store.conversations()
    ledger.open(id, store=store).unlabel("new")
    path.write_text(json.dumps({"messages": lines + lines}))

    report = ledger.import_conversations(path, store=store, labels=["new", "mine"])

    assert report.turns == 1
    assert ledger.open(id, store=store).labels == ["mine"]


@pytest.mark.parametrize("labels", ["text", [""], [1]])
def test_what_is_no_label_is_refused_before_anything_is_read(store, ann, labels):
    """A text is no list of labels."""
    with pytest.raises((TypeError, ValueError)):
        ledger.import_conversations(ann, store=store, labels=labels)
    assert store.conversations() == []


def test_our_own_json_is_skipped_under_a_prefix_and_takes_labels(store, tmp_path):
    """It is the conversation itself: under another id it would be another log."""
    chat = ledger.open("mine", store=ledger.MemoryStore())
    chat.record("a", "b")
    path = tmp_path / "mine.json"
    ledger.export(chat, "json").write(path)

    with pytest.raises(errors.ImportInvalid, match="keeps its id"):
        ledger.import_conversations(path, store=store, prefix="ann.")
    assert store.conversations() == []
    ledger.import_conversations(path, store=store, labels=["kept"])
    assert ledger.open("mine", store=store).labels == ["kept"]
