"""Importing into stores: once, whole, with the head where a person expects it."""

import copy
import json
import pickle
from pathlib import Path

import pytest

import ledger
from ledger import errors, merging
from ledger.records import kinds
from ledger.sources import drafts

EXPORT = Path(__file__).parents[2] / "docs" / "tutorial" / "chatgpt-export.json"
FRACTIONS = "6955bd00-aaaa-4bbb-8ccc-000000000001"


@pytest.fixture(params=["memory", "folder"])
def store(request, tmp_path):
    """A store of each kind."""
    kind = request.param
    return ledger.MemoryStore() if kind == "memory" else ledger.FolderStore(tmp_path / "store")


@pytest.fixture
def export():
    """The example export, decoded: two conversations."""
    return json.loads(EXPORT.read_text(encoding="utf-8"))


def write(tmp_path, value, name="conversations.json"):
    """Write an export to a file."""
    path = tmp_path / name
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def add(conversation, parent, role, id, text, time, **metadata):
    """Add a message below another one, as a later export would have it."""
    mapping = conversation["mapping"]
    mapping[parent]["children"].append(id)
    message = copy.deepcopy(mapping["a1-ask"]["message"])
    message |= {"id": id, "create_time": time, "metadata": metadata}
    message["author"]["role"] = role
    message["content"]["parts"] = [text]
    mapping[id] = {"id": id, "parent": parent, "children": [], "message": message}


def test_every_branch_comes_in_with_its_models_and_head(store):
    """Turns, branches, models, title and the current turn are those of the source."""
    report = ledger.import_conversations(EXPORT, store=store)
    chat = ledger.open(FRACTIONS, store=store)

    assert (report.conversations, report.turns) == (2, 6)
    assert chat.title == "Fractions with Alex"
    assert [t.model for t in chat.turns] == ["gpt-5", "gpt-5", "gpt-5"]
    assert chat.head.inputs == {"message": "What is 1/3 + 1/4?"}
    assert len(chat.heads()) == 3
    assert [t.inputs["message"] for t in chat.head.saw] == [
        "Hi, I'm Alex. Can you help me with fractions?",
        "Why is 1/3 bigger than 1/4?",
    ]
    assert chat.head.source["conversation"] == FRACTIONS
    assert chat.head.started.isoformat() == "2026-01-01T00:02:00+00:00"


def test_importing_again_changes_nothing(store):
    """The second import finds every turn: no byte is added, and the report says so."""
    ledger.import_conversations(EXPORT, store=store)
    before = store.raw(FRACTIONS)

    report = ledger.import_conversations(EXPORT, store=store)

    assert store.raw(FRACTIONS) == before
    assert (report.conversations, report.turns) == (0, 0)
    assert (report.conversations_known, report.turns_known) == (2, 6)


def test_a_longer_export_only_adds(store, export, tmp_path):
    """New turns are added, the ids and ordinals of the old ones stay, the head follows the source."""
    ledger.import_conversations(EXPORT, store=store)
    before = [t.id for t in ledger.open(FRACTIONS, store=store).all_turns()]
    add(export[0], "d2-answer", "user", "e1-ask", "Thanks!", 1767225800.0)
    add(export[0], "e1-ask", "assistant", "e2-answer", "Welcome.", 1767225801.0)
    export[0]["current_node"] = "e2-answer"

    report = ledger.import_conversations(write(tmp_path, export), store=store)

    chat = ledger.open(FRACTIONS, store=store)
    assert report.turns == 1
    assert [t.id for t in chat.all_turns()][:5] == before
    assert chat.head.result == "Welcome."
    assert chat.head.parent.inputs == {"message": "What is 1/3 + 1/4?"}


def test_a_head_that_somebody_moved_stays(store, export, tmp_path):
    """When the head is not where the last import left it, new turns do not move it."""
    ledger.import_conversations(EXPORT, store=store)
    ledger.open(FRACTIONS, store=store).head = 1
    add(export[0], "d2-answer", "user", "e1-ask", "Thanks!", 1767225800.0)
    add(export[0], "e1-ask", "assistant", "e2-answer", "Welcome.", 1767225801.0)
    export[0]["current_node"] = "e2-answer"
    longer = write(tmp_path, export)

    ledger.import_conversations(longer, store=store)

    assert ledger.open(FRACTIONS, store=store).head.ordinal == 1
    before = store.raw(FRACTIONS)
    ledger.import_conversations(longer, store=store)
    assert store.raw(FRACTIONS) == before


def test_a_conversation_that_went_on_here_keeps_its_head(store, export, tmp_path):
    """After a turn of our own, an import adds beside it and the head stays on it."""
    ledger.import_conversations(EXPORT, store=store)
    mine = ledger.open(FRACTIONS, store=store).record("mine", "m")
    add(export[0], "d2-answer", "user", "e1-ask", "Thanks!", 1767225800.0)
    add(export[0], "e1-ask", "assistant", "e2-answer", "Welcome.", 1767225801.0)

    ledger.import_conversations(write(tmp_path, export), store=store)

    chat = ledger.open(FRACTIONS, store=store)
    assert chat.head == mine
    assert len(chat.all_turns()) == 7


def rename(export, tmp_path, title):
    """Return the export with the first conversation renamed."""
    export[0]["title"] = title
    return write(tmp_path, export)


def test_a_title_that_was_changed_in_the_source_is_taken_over(store, export, tmp_path):
    """With no new turn, the title follows the source, once, and the report says so."""
    ledger.import_conversations(EXPORT, store=store)
    renamed = rename(export, tmp_path, "Renamed")

    report = ledger.import_conversations(renamed, store=store)

    chat = ledger.open(FRACTIONS, store=store)
    assert chat.title == "Renamed"
    assert (report.turns, report.notes.counts[drafts.RETITLED]) == (0, 1)
    before = store.raw(FRACTIONS)
    again = ledger.import_conversations(renamed, store=store)
    assert (store.raw(FRACTIONS), again.notes.counts) == (before, {})


def test_a_title_that_comes_later_is_taken(store, export, tmp_path):
    """A conversation that had none at first gets its title; one that has lost it keeps it."""
    ledger.import_conversations(rename(export, tmp_path, None), store=store)
    ledger.import_conversations(rename(export, tmp_path, "Late"), store=store)
    ledger.import_conversations(rename(export, tmp_path, None), store=store)
    add(export[0], "d2-answer", "user", "e1-ask", "Thanks!", 1767225800.0)
    ledger.import_conversations(rename(export, tmp_path, None), store=store)
    ledger.import_conversations(rename(export, tmp_path, "Later"), store=store)

    chat = ledger.open(FRACTIONS, store=store)
    titles = [entry["data"] for entry in chat.entries("ledger", "title")]
    assert titles == ["Late", "Later"]


def test_a_title_that_somebody_set_stays(store, export, tmp_path):
    """When the title is not what the last import left, the source's does not replace it, new turns or not."""
    ledger.import_conversations(EXPORT, store=store)
    chat = ledger.open(FRACTIONS, store=store)
    chat.title = "Mine"
    before = store.raw(FRACTIONS)

    ledger.import_conversations(rename(export, tmp_path, "Renamed"), store=store)

    assert store.raw(FRACTIONS) == before
    add(export[0], "d2-answer", "user", "e1-ask", "Thanks!", 1767225800.0)
    ledger.import_conversations(rename(export, tmp_path, "Renamed again"), store=store)
    assert chat.title == "Mine"


def test_an_older_export_does_not_bring_its_title_back(store, export, tmp_path):
    """Two exports imported in turn, for ever, change nothing; with new turns an old title is new again."""
    ledger.import_conversations(EXPORT, store=store)
    ledger.import_conversations(rename(export, tmp_path, "Renamed"), store=store)
    before = store.raw(FRACTIONS)

    ledger.import_conversations(EXPORT, store=store)
    assert store.raw(FRACTIONS) == before
    add(export[0], "d2-answer", "user", "e1-ask", "Thanks!", 1767225800.0)
    ledger.import_conversations(rename(export, tmp_path, "Fractions with Alex"), store=store)

    assert ledger.open(FRACTIONS, store=store).title == "Fractions with Alex"


def test_a_current_turn_that_moved_in_the_source_moves_the_head(store, export, tmp_path):
    """With no new turn, a head record follows the source's current turn."""
    ledger.import_conversations(EXPORT, store=store)
    export[0]["current_node"] = "c2-answer"

    report = ledger.import_conversations(write(tmp_path, export), store=store)

    assert report.turns == 0
    head = ledger.open(FRACTIONS, store=store).head
    assert head.inputs == {"message": "What is a fraction at all?"}


def test_an_unanswered_turn_is_abandoned_and_its_answer_another_turn(store, export, tmp_path):
    """A prompt without an answer ends abandoned; answered in a later export, it is a new turn."""
    add(export[0], "d2-answer", "user", "e1-ask", "And 1/5?", 1767225800.0)
    ledger.import_conversations(write(tmp_path, export), store=store)
    chat = ledger.open(FRACTIONS, store=store)
    unanswered = next(t for t in chat.all_turns() if t.inputs["message"] == "And 1/5?")
    assert unanswered.state == "abandoned"

    add(export[0], "e1-ask", "assistant", "e2-answer", "Also smaller.", 1767225801.0)
    ledger.import_conversations(write(tmp_path, export), store=store)

    both = [t for t in chat.all_turns() if t.inputs["message"] == "And 1/5?"]
    assert [t.state for t in both] == ["abandoned", "done"]
    assert both[0] == unanswered


def test_the_source_is_kept_byte_for_byte(store, tmp_path):
    """The conversation's own bytes in the export are an attachment of the import's entry."""
    ledger.import_conversations(EXPORT, store=store)
    chat = ledger.open(FRACTIONS, store=store)
    entry = chat.entries("ledger", "import")[-1]["data"]

    raw = entry["raw"].read()

    assert raw in EXPORT.read_bytes()
    assert json.loads(raw)["conversation_id"] == FRACTIONS


def test_an_imported_conversation_goes_on_here(store):
    """A program continues it, with renamed fields, branches and merges."""
    ledger.import_conversations(EXPORT, store=store)

    def answer(question: str) -> str:
        return str(len(ledger.current().earlier()))

    chat = ledger.open(FRACTIONS, answer, store=store, rename={"question": "message"})
    assert chat("more?") == "3"
    tries = [chat.continue_from(1).send("again?") for _ in range(2)]
    assert chat.merge(tries, merging.pick(tries[1])).parent.ordinal == 1


def test_two_files_and_a_folder_at_once(store, export, tmp_path):
    """Several paths are imported in one report."""
    folder = tmp_path / "many"
    folder.mkdir()
    write(folder, export[:1], "conversations-000.json")
    write(folder, export[1:], "conversations-001.json")
    single = write(tmp_path, {**export[1], "id": "x1", "conversation_id": "x1"}, "one.json")

    report = ledger.import_conversations([folder, single], store=store)

    assert report.conversations == 3


def test_one_bad_conversation_costs_the_others_nothing(store, export, tmp_path):
    """What cannot be read is named in the report; the rest is imported."""
    broken = {"title": "Broken", "id": "b", "mapping": None}
    report = ledger.import_conversations(write(tmp_path, [broken, 7, *export]), store=store)

    assert report.conversations == 2
    assert len(report.notes.skipped) == 2
    assert "Broken" in str(report)


@pytest.mark.parametrize("value", [[], {}, [{"title": "no mapping"}], "text", [1, 2]])
def test_importing_nothing_is_an_error(store, tmp_path, value):
    """A file without a conversation is refused with what was looked at."""
    path = write(tmp_path, value)
    with pytest.raises(errors.ImportInvalid, match=r"conversations\.json"):
        ledger.import_conversations(path, store=store)


def test_a_path_that_is_not_there_is_an_error(store, tmp_path):
    """A missing file is refused by name, and the first thing said is that it is not there."""
    path = tmp_path / "nowhere.json"
    with pytest.raises(errors.ImportInvalid) as caught:
        ledger.import_conversations(path, store=store)

    assert str(caught.value) == f"{path}: there is no such file or folder"
    with pytest.raises(errors.ImportInvalid, match="there is no such file"):
        ledger.import_conversations(EXPORT / "below-a-file", store=store)


def test_a_source_id_that_is_no_safe_name_gets_one(store, export, tmp_path):
    """Any text may be the source's id; the conversation's is made of it, always the same."""
    export[1] |= {"id": "../../é", "conversation_id": "../../é"}
    ledger.import_conversations(write(tmp_path, export[1:]), store=store)
    first = store.conversations()
    ledger.import_conversations(write(tmp_path, export[1:]), store=store)

    assert store.conversations() == first
    assert first[0].startswith("chatgpt-")


def test_progress_is_told_after_each_conversation(store):
    """The callback gets each conversation's id and the report so far."""
    told = []
    ledger.import_conversations(
        EXPORT, store=store, progress=lambda name, report: told.append((name, report.turns))
    )
    assert [turns for _, turns in told] == [5, 6]


# -- our own JSON


def test_an_export_into_an_empty_store_gives_the_identical_log(store, tmp_path):
    """Exported and imported elsewhere, the log is the same bytes and verifies; so are attachments."""
    ledger.import_conversations(EXPORT, store=store)
    chat = ledger.open(FRACTIONS, store=store)
    chat.merge([4, 5], merging.pick(chat.turn(4)))
    path = tmp_path / "out.json"
    path.write_bytes(ledger.export_json(chat))
    other = ledger.FolderStore(tmp_path / "other")

    report = ledger.import_conversations(path, store=other)

    assert (report.conversations, report.turns) == (1, 6)
    assert other.raw(FRACTIONS) == store.raw(FRACTIONS)
    assert not other.verify(FRACTIONS).damaged
    entry = ledger.open(FRACTIONS, store=other).entries("ledger", "import")[0]["data"]
    assert other.blobs.has(entry["raw"].sha256)


def test_an_export_into_a_store_that_has_it_adds_what_is_missing(store, tmp_path):
    """Both copies went on; importing one into the other keeps both branches and the head here."""
    chat = ledger.open("alex", store=store)
    chat.record("one", "1")
    path = tmp_path / "out.json"
    path.write_bytes(ledger.export_json(chat))
    other = ledger.FolderStore(tmp_path / "other")
    ledger.import_conversations(path, store=other)
    there = ledger.open("alex", store=other)
    there.record("there", "t", model="b")
    here = chat.record("here", "h")
    path.write_bytes(ledger.export_json(there))

    report = ledger.import_conversations(path, store=store)

    assert report.turns == 1
    assert sorted(t.inputs["message"] for t in chat.turn(1).children) == ["here", "there"]
    assert ledger.open("alex", store=store).head == here
    assert len({t.id for t in chat.all_turns()}) == 3
    before = store.raw("alex")
    ledger.import_conversations(path, store=store)
    assert store.raw("alex") == before


def test_a_turn_with_other_content_is_refused(store, tmp_path):
    """The same turn id with another answer is refused, and nothing is added."""
    chat = ledger.open("alex", store=store)
    chat.record("one", "1")
    document = ledger.export_json(chat)
    store.delete("alex")
    altered = [
        {**record, "outputs": {"result": "2"}, "value": "2"}
        if record["kind"] == "ended"
        else record
        for record in _records(document)
    ]
    store.append("alex", altered)
    before = store.raw("alex")
    path = tmp_path / "out.json"
    path.write_bytes(document)

    with pytest.raises(errors.ImportInvalid, match="ended otherwise"):
        ledger.import_conversations(path, store=store)

    assert store.raw("alex") == before


def _records(document):
    store = ledger.MemoryStore()
    value = json.loads(document)
    store.adopt("alex", "".join(line + "\n" for line in value["log"]).encode())
    return store.read("alex")


def test_an_export_with_records_of_a_newer_format(store, tmp_path):
    """Where nothing of it is, it is taken over as it is; else what it has more is refused, and nothing is added."""
    chat = ledger.open("alex", store=store)
    chat.record("one", "1")
    data = store.raw("alex") + later("entry", 3)
    there = ledger.MemoryStore()
    there.adopt("alex", data)
    path = tmp_path / "out.json"
    path.write_bytes(ledger.export_json(ledger.open("alex", store=there)))
    empty, before = ledger.MemoryStore(), store.raw("alex")

    report = ledger.import_conversations(path, store=empty, labels=["kept"])
    with pytest.raises(errors.StoreVersion, match="export of conversation alex"):
        ledger.import_conversations(path, store=store)

    assert empty.raw("alex") == data
    assert report.notes.counts["conversations of a newer format, which take no labels"] == 1
    assert store.raw("alex") == before
    chat.record("two", "2")


def later(kind, seq):
    """Return a line of format 2."""
    record = {
        "functai_conversation": 2,
        "kind": kind,
        "at": "2026-01-01T00:00:00.000000Z",
        "seq": seq,
    }
    return json.dumps(record).encode() + b"\n"


def test_an_export_into_an_older_copy_brings_its_head(store, tmp_path):
    """Where the export only goes on from what is here, it is taken over as it is, head included."""
    chat = ledger.open("alex", store=store)
    chat.record("one", "1")
    path = tmp_path / "out.json"
    path.write_bytes(ledger.export_json(chat))
    other = ledger.FolderStore(tmp_path / "other")
    ledger.import_conversations(path, store=other)
    chat.record("two", "2")
    third = chat.continue_from(1).record("three", "3")
    chat.head = 2
    path.write_bytes(ledger.export_json(chat))

    ledger.import_conversations(path, store=other)

    copy = ledger.open("alex", store=other)
    assert copy.head.ordinal == 2
    assert [t.id for t in copy.all_turns()][2] == third.id


def test_an_export_brings_back_what_damage_took(tmp_path):
    """A damaged end comes back from an export of before, and the report says that records came."""
    store = ledger.FolderStore(tmp_path / "store")
    chat = ledger.open("alex", store=store)
    chat.record("one", "the answer")
    path = tmp_path / "out.json"
    path.write_bytes(ledger.export_json(chat))
    log = tmp_path / "store" / "conversations" / "alex.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"value":"the answer"', b'"value":"the answeR"'))
    store = ledger.FolderStore(tmp_path / "store")

    with pytest.warns(errors.DamageWarning):
        report = ledger.import_conversations(path, store=store)

    assert "records added to turns of alex that were here: 1" in str(report)
    with pytest.warns(errors.DamageWarning):
        assert ledger.open("alex", store=store).turns[0].result == "the answer"


def test_damage_in_an_export_is_told(tmp_path):
    """An altered line of an export is counted in the report, and handed out by nobody."""
    store = ledger.MemoryStore()
    chat = ledger.open("alex", store=store)
    chat.record("one", "the answer")
    path = tmp_path / "out.json"
    path.write_bytes(ledger.export_json(chat).replace(b"the answer", b"an another", 1))

    report = ledger.import_conversations(path, store=ledger.MemoryStore())

    assert "records of alex that cannot be read in the export: 1" in str(report)


def test_bad_paths_among_good_ones_cost_nothing_and_are_an_error(store, tmp_path):
    """All that can be imported is, before and after bad paths; the error names each, and has the report."""
    missing, other = tmp_path / "nowhere.json", write(tmp_path, {"what": "else"}, "other.json")
    long = tmp_path / ("n" * 300)  # No name that a file could have: the system does not even look.
    skipped = write(
        tmp_path, [{"title": "B", "mapping": {"x": {"id": "x", "message": None}}}], "skipped.json"
    )

    with pytest.raises(errors.ImportInvalid) as caught:
        ledger.import_conversations([missing, long, EXPORT, other, skipped], store=store)

    assert len(store.conversations()) == 2
    error = pickle.loads(pickle.dumps(caught.value))
    assert error.source == f"{missing}, {long}, {other}, {skipped}"
    for line in (f"{missing}: there is no such file or folder", f"{other}: nothing", "'B': it has"):
        assert line in error.message()
    assert error.report.conversations == 2
    assert "nowhere.json" in str(error.report)


def test_no_path_is_an_error(store):
    """Who names no path is told to."""
    with pytest.raises(errors.ImportInvalid, match="no path: name a file"):
        ledger.import_conversations([], store=store)


def test_a_damaged_log_is_exported_as_it_is(tmp_path):
    """Damage, foreign lines and torn pieces come out byte for byte."""
    store = ledger.FolderStore(tmp_path / "store")
    chat = ledger.open("alex", store=store)
    chat.record("one", "1")
    log = tmp_path / "store" / "conversations" / "alex.jsonl"
    log.write_bytes(log.read_bytes() + b"\xff\xfe\x00garbage\n[]\n{}\n")
    path = tmp_path / "out.json"
    path.write_bytes(ledger.export_json(chat))
    other = ledger.MemoryStore()
    ledger.import_conversations(path, store=other)

    assert other.raw("alex") == log.read_bytes()


def test_every_imported_record_is_of_a_known_kind(store):
    """What an import writes are programs, turns, ends, a head and entries; nothing unreadable."""
    ledger.import_conversations(EXPORT, store=store)
    found = {type(record) for record in store.scan(FRACTIONS)}
    assert found <= {kinds.Program, kinds.Turn, kinds.Ended, kinds.Head, kinds.Entry}


def test_an_import_that_is_interrupted_is_finished_by_the_next(store, export, tmp_path):
    """What was begun is there whole when the interrupt arrives; importing again adds the rest, once."""
    talks = [export[0] | {"conversation_id": f"talk-{number}"} for number in range(9)]
    path = write(tmp_path, talks)
    seen = []

    def interrupt(name, report):
        seen.append(name)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ledger.import_conversations(path, store=store, progress=interrupt)

    begun = set(store.conversations())
    whole = len(ledger.open("talk-0", store=store).all_turns())
    assert seen == ["talk-0", "talk-1", "talk-2"]
    assert {*seen} <= begun
    assert {len(ledger.open(name, store=store).all_turns()) for name in begun} == {whole}

    report = ledger.import_conversations(path, store=store)

    assert (report.conversations, report.conversations_known) == (9 - len(begun), len(begun))
    assert {
        len(ledger.open(talk["conversation_id"], store=store).all_turns()) for talk in talks
    } == {whole}


@pytest.mark.parametrize("paths", [None, 5, b"conversations.json", [EXPORT, 5], [b"x"]])
def test_what_is_no_path_is_refused_before_anything_is_imported(store, paths):
    """The error names the argument, what it takes and what it was given."""
    with pytest.raises(TypeError, match=r"paths takes the path of a file.*; not (None|5|b')"):
        ledger.import_conversations(paths, store=store)
    assert store.conversations() == []


def test_several_paths_may_come_from_anywhere(store, tmp_path):
    """Any iterable of paths will do; an empty path names nothing."""
    assert ledger.import_conversations((path for path in [EXPORT]), store=store).turns == 6
    with pytest.raises(errors.ImportInvalid, match="no such file"):
        ledger.import_conversations("", store=store)
