"""Tests of `ledger.sources.files`: what people have, opened; all conversations are synthetic."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest

import ledger
from ledger import FolderStore
from ledger.errors import ImportInvalid
from ledger.formats import chatgpt, export_json
from ledger.formats.base import Draft, Exported, Skipped
from ledger.sources import opened, zips
from ledger.sources.files import find


def talk(id: str = "talk") -> dict[str, Any]:
    def node(id: str, parent: str | None, role: str) -> dict[str, Any]:
        content = {"content_type": "text", "parts": [f"words of {id}"]}
        return {"parent": parent, "message": {"author": {"role": role}, "content": content}}

    mapping = {"u": node("u", None, "user"), "a": node("a", "u", "assistant")}
    return {"title": f"Talk {id}", "conversation_id": id, "mapping": mapping}


def found(path: Path | str) -> list[str]:
    """Return the conversation ids found at a path, in order; `!` and a reason for what is not."""
    out = []
    for source in find(path):
        for item in source.items:
            if isinstance(item, Draft):
                out.append(item.source_id)
            elif isinstance(item, Exported):
                out.append(item.conversation)
            else:
                out.append(f"!{item.reason}")
    return out


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return path


def zipped(path: Path, entries: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in entries.items():
            archive.writestr(name, value if isinstance(value, bytes) else json.dumps(value))
    return path


@pytest.mark.parametrize(
    "value",
    [
        [talk("1"), talk("2")],
        {"conversations": [talk("1"), talk("2")]},
        b"\xef\xbb\xbf" + json.dumps([talk("1"), talk("2")], indent=1).encode(),
        json.dumps([talk("1"), talk("2")], indent=1).replace("\n", "\r\n").encode(),
    ],
)
@pytest.mark.parametrize("name", ["conversations.json", "whatever.txt"])
def test_a_file_is_known_by_its_content(tmp_path, value, name):
    """A list, a wrapper, a byte order mark, CRLF, any name: the conversations are found."""
    assert ["1", "2"] == found(write(tmp_path / name, value))


def test_a_single_conversation_is_found(tmp_path):
    """A file that is one conversation, as browser extensions save it, is found."""
    assert ["1"] == found(write(tmp_path / "talk.json", talk("1")))


def test_raw_is_a_piece_of_the_file(tmp_path):
    """A conversation's raw record is a piece of the file, byte for byte."""
    path = write(tmp_path / "c.json", json.dumps([talk("1"), talk("2")], indent=3).encode())

    drafts = [item for source in find(path) for item in source.items]

    assert all(isinstance(draft, Draft) and draft.raw[0] in path.read_bytes() for draft in drafts)


def test_shards_come_in_order(tmp_path):
    """Shards are read by number; their index and the media beside them are not looked at."""
    for number in (10, 2, 1):
        write(tmp_path / f"conversations-{number}.json", [talk(str(number))])
    write(tmp_path / "conversations.json.index", {"shards": 3})
    write(tmp_path / "user.json", {"id": "user"})
    write(tmp_path / "chat.html", b"<html>")

    assert ["1", "2", "10"] == found(tmp_path)


def test_a_zip_is_read_in_place(tmp_path):
    """A zip as it was mailed gives its conversations and leaves nothing beside it."""
    path = zipped(
        tmp_path / "export.zip",
        {
            "deep/conversations-001.json": [talk("2")],
            "deep/conversations-000.json": [talk("1")],
            "deep/user.json": {},
            "__MACOSX/deep/._conversations-000.json": b"\0\5\26\7",
            "deep/file-1.png": b"\x89PNG",
        },
    )

    assert ["1", "2"] == found(path)
    assert [path] == list(tmp_path.iterdir())


def test_sources_may_be_read_late_and_in_any_order(tmp_path):
    """What a source holds is read when asked for, also after the search has ended."""
    path = zipped(tmp_path / "e.zip", {f"conversations-{i}.json": [talk(str(i))] for i in "123"})

    sources = list(find(path))

    ids = [item.source_id for source in reversed(sources) for item in source.items]
    assert ["3", "2", "1"] == ids


def test_a_folder_is_searched_to_any_depth(tmp_path):
    """Every file that may hold conversations is looked at; beside known names, only those."""
    write(tmp_path / "a" / "b" / "mine.json", talk("1"))
    zipped(tmp_path / "a" / "mailed.zip", {"conversations.json": [talk("2")]})
    assert {"1", "2"} == set(found(tmp_path))

    write(tmp_path / "c" / "conversations.json", [talk("3")])
    write(tmp_path / "c" / "shared" / "other.json", [talk("4")])
    assert {"1", "2", "3"} == set(found(tmp_path))


def test_our_own_documents_are_found_among_others(tmp_path):
    """A document of our own is found by looking, whole, with its attachments."""
    data = b"".join(export_json.dump("mine", b"{}\n", {}))
    write(tmp_path / "a.json", data)
    write(tmp_path / "b.json", talk("1"))

    formats = {source.format for source in find(tmp_path)}

    assert {chatgpt, export_json} == formats
    assert ["mine", "1"] == found(tmp_path)


# -- what is bad costs itself ----------------------------------------------------------------------


def test_a_bad_conversation_costs_itself_alone(tmp_path):
    """A corrupt first entry, one without a mapping and a broken one are skipped with reasons."""
    text = (
        json.dumps([{"title": "Gone"}, talk("1")])[:-1] + ", {bad}, " + json.dumps(talk("2")) + "]"
    )

    corrupt, first, bad, second = found(write(tmp_path / "conversations.json", text.encode()))

    assert ("1", "2") == (first, second)
    assert "mapping" in corrupt
    assert f"begins at byte {text.index('{bad}')}" in bad


def test_a_cut_file_gives_what_is_whole(tmp_path):
    """A file that was cut off gives its whole conversations and says where it ends."""
    data = json.dumps([talk("1"), talk("2")]).encode()[:-20]

    first, cut = found(write(tmp_path / "conversations.json", data))

    assert "1" == first
    assert f"(at byte {len(data)})" in cut


def test_a_bad_shard_beside_good_ones_is_told(tmp_path):
    """A shard that holds nothing known is no silent loss: it is a source that was skipped."""
    write(tmp_path / "conversations-0.json", [talk("1")])
    write(tmp_path / "conversations-1.json", b"<html>")
    write(tmp_path / "conversations-2.json", [])

    sources = list(find(tmp_path))

    assert [chatgpt, None, None] == [source.format for source in sources]
    assert ["1", "!there is no JSON list or object, at byte 0", "!an empty list"] == found(tmp_path)


def test_skipped_names_the_file(tmp_path):
    """What was skipped is told with its file and its place in it."""
    path = write(tmp_path / "c.json", [talk("1"), {"title": "Gone"}])

    skipped = [item for source in find(path) for item in source.items if isinstance(item, Skipped)]

    assert [f"{path}: conversation 2 'Gone'"] == [one.what for one in skipped]


@pytest.mark.parametrize("value", [b"", b"hello", [], {}, [1], b"[{]", {"conversations": []}])
def test_nothing_known_is_an_error_with_the_next_step(tmp_path, value):
    """A file without any conversation is refused; the reason names it and says what to give."""
    path = write(tmp_path / "notes.json", value)

    with pytest.raises(ImportInvalid, match=r"conversations\.json") as caught:
        found(path)

    assert f"looked at {path}" in caught.value.reason


def test_broken_json_names_the_byte(tmp_path):
    """A file that is not well formed is refused with the byte it breaks at."""
    with pytest.raises(ImportInvalid, match="at byte 8"):
        found(write(tmp_path / "c.json", b'[{"a": 1]'))


def test_an_empty_folder_and_a_missing_path_are_errors(tmp_path):
    """Nothing there, or nothing to look at, is refused."""
    with pytest.raises(ImportInvalid, match="no file that may hold"):
        found(tmp_path)
    with pytest.raises(ImportInvalid, match="there is no such file"):
        found(tmp_path / "nowhere")


# -- what is ours already --------------------------------------------------------------------------


@pytest.fixture
def chats(tmp_path):
    """A store with one conversation, whose messages are those of a provider, and what else one holds."""
    store = FolderStore(tmp_path / "home" / "chats")
    said = [
        {"role": role, "parts": [{"type": "text", "content": text}]}
        for role, text in (("user", "q"), ("assistant", "a"))
    ]
    ledger.open("alex", store=store).record("q", "a", messages=said)
    ledger.import_conversations(write(tmp_path / "talk.json", [talk()]), store=store)
    write(tmp_path / "home" / "chats" / "imports.json", {})
    return tmp_path / "home" / "chats"


@pytest.mark.parametrize(
    "inner", [".", "conversations", "attachments", "imports.json", "*/alex.jsonl"]
)
def test_a_store_is_no_source(chats, inner):
    """A store, its folders and its files are refused by what they are, with the next step."""
    [named] = chats.glob(inner) if "*" in inner else [chats / inner]

    with pytest.raises(ImportInvalid, match=r"is a store of turn-ledger.*copy.*export"):
        found(named)


def test_a_store_in_a_database_is_no_source(tmp_path):
    """It is refused as what it is, too."""
    ledger.open("alex", store=f"sqlite:///{tmp_path}/chats.db").record("q", "a")

    with pytest.raises(ImportInvalid, match=r"is a store of turn-ledger.*copy.*export") as caught:
        found(tmp_path / "chats.db")
    assert "conversations.json" not in caught.value.reason


def test_a_log_taken_out_of_a_store_is_no_source(chats, tmp_path):
    """A log that lies elsewhere, under any name, is known by its lines, a damaged one first too."""
    log = (chats / "conversations" / "alex.jsonl").read_bytes()
    for data in (log, b'{"functai_conv\n' + log):
        with pytest.raises(ImportInvalid, match=r"is a log of turn-ledger.*copy.*export"):
            found(write(tmp_path / "taken.json", data))
    with pytest.raises(ImportInvalid, match="is a log of turn-ledger"):
        found(zipped(tmp_path / "store.zip", {"chats/conversations/alex.jsonl": log}))


def test_a_store_below_a_folder_is_left_out_and_told(chats):
    """What lies beside it, in its folder too, is imported; the store and a log elsewhere are named."""
    write(chats.parent / "one.json", [talk("1")])
    write(chats / "two.json", [talk("2")])
    write(chats.parent / "b.jsonl", (chats / "conversations" / "alex.jsonl").read_bytes())

    told = found(chats.parent)

    assert sorted(told[:2]) == ["1", "2"]
    assert [one.split(" of turn-ledger")[0] for one in told[2:]] == [
        "!this is a store",
        "!this is a log",
    ]


def test_folders_that_are_named_as_a_store_s_may_be_anyone_s(tmp_path):
    """A folder of conversations with one of attachments beside it is a source when no log of ours is in it."""
    write(tmp_path / "conversations" / "c.json", [talk("1")])
    write(tmp_path / "attachments" / "c.json", [talk("2")])

    assert sorted(found(tmp_path)) == ["1", "2"]


def test_a_file_without_rights_costs_itself_alone(tmp_path, monkeypatch):
    """A file the system refuses is told, and the next one is read."""
    write(tmp_path / "conversations-1.json", [talk("1")])
    refused = write(tmp_path / "conversations-0.json", [talk("0")])
    opener = Path.open

    def guarded(path: Path, *args: Any, **keys: Any) -> Any:
        if path == refused:
            raise PermissionError(13, "Permission denied")
        return opener(path, *args, **keys)

    monkeypatch.setattr(Path, "open", guarded)

    assert ["1", "!Permission denied"] == found(tmp_path)


def test_a_pipe_is_not_opened(tmp_path):
    """A named pipe would wait for ever; it is refused, or passed over in a folder."""
    os.mkfifo(tmp_path / "conversations.json")
    with pytest.raises(ImportInvalid, match="neither a file nor a folder"):
        found(tmp_path / "conversations.json")
    with pytest.raises(ImportInvalid):
        found(tmp_path)


# -- zips that are no one's friend -----------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["/etc/conversations.json", "../conversations.json", "a/../../x", "C:\\x", "a\\..\\b"]
)
def test_a_zip_that_leads_outside_is_refused(tmp_path, name):
    """Absolute paths and `..` anywhere in a zip refuse all of it."""
    path = zipped(tmp_path / "e.zip", {"conversations.json": [talk("1")], name: b"x"})

    with pytest.raises(ImportInvalid, match="the zip is refused"):
        found(path)


def test_a_zip_with_a_link_is_refused(tmp_path):
    """A link in a zip refuses all of it."""
    path = zipped(tmp_path / "e.zip", {"conversations.json": [talk("1")]})
    with zipfile.ZipFile(path, "a") as archive:
        info = zipfile.ZipInfo("link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")

    with pytest.raises(ImportInvalid, match="'link' is a link"):
        found(path)


def test_an_encrypted_zip_is_refused_with_the_next_step(tmp_path):
    """An encrypted zip says so, and what to do."""
    path = zipped(tmp_path / "e.zip", {"conversations.json": [talk("1")]})
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)

    with pytest.raises(ImportInvalid, match="encrypted; unpack it"):
        found(path)


def test_a_bomb_is_refused(tmp_path, monkeypatch):
    """A file that would unpack to far more than it is, beyond a free size, is not unpacked."""
    path = zipped(tmp_path / "e.zip", {"conversations.json": b" " * 300_000})
    monkeypatch.setattr(zips, "RATIO_FREE_BYTES", 100_000)

    with pytest.raises(ImportInvalid, match="would unpack from"):
        found(path)


def test_a_damaged_zip_ends_as_a_broken_file(tmp_path, monkeypatch):
    """A zip whose data does not check gives what was read before, and is told; no traceback."""
    monkeypatch.setattr(opened, "FIRST_BYTES", 64)
    monkeypatch.setattr(opened, "PIECE_BYTES", 64)
    many = [{**talk(str(i)), "padding": "x" * 20_000} for i in range(3)]
    with zipfile.ZipFile(tmp_path / "e.zip", "w") as archive:
        archive.writestr("conversations.json", json.dumps(many))
    data = bytearray((tmp_path / "e.zip").read_bytes())
    place = data.rindex(b"words of")
    data[place] ^= 1
    (tmp_path / "e.zip").write_bytes(data)

    *read, bad = found(tmp_path / "e.zip")

    assert ["0", "1"] == read[:2]
    assert "cannot be read on: Bad CRC-32" in bad
    with pytest.raises(ImportInvalid, match="zip"):
        found(write(tmp_path / "half.zip", bytes(data[:200])))
