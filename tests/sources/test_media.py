"""Files beside a ChatGPT export become attachments of the turns that point to them."""

import json
import zipfile

import pytest

import ledger
from ledger.sources.media import Media

CAT, TALK, NOTES = b"\x89PNG cat", b"RIFF talk", b"notes"
FILES = {
    "file-AbC12345-cat.png": CAT,
    "6955bd00/audio/file_0000000099-8d1f.wav": TALK,
    "file-Notes678-what I wrote.txt": NOTES,
    "file-AbC123456-other.png": b"another id that begins the same",
}


def message(id, role, parts, **metadata):
    """A message of an export."""
    content = {"content_type": "multimodal_text", "parts": parts}
    author = {"role": role}
    return {
        "id": id,
        "author": author,
        "content": content,
        "metadata": metadata,
        "recipient": "all",
    }


def conversation():
    """A conversation that points to a picture, a recording, an upload, and to a picture that is not there."""
    image = {
        "content_type": "image_asset_pointer",
        "asset_pointer": "file-service://file-AbC12345",
        "width": 3,
    }
    gone = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_0000000001"}
    audio = {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_0000000099"}
    upload = {"id": "file-Notes678", "name": "notes.txt", "mime_type": "text/plain"}
    asked = message("u", "user", ["look", image, gone], attachments=[upload])
    answered = message("a", "assistant", [audio, "a cat"])
    mapping = {
        "u": {"id": "u", "parent": None, "children": ["a"], "message": asked},
        "a": {"id": "a", "parent": "u", "children": [], "message": answered},
    }
    return {"conversation_id": "cats", "title": "Cats", "mapping": mapping, "current_node": "a"}


def export(tmp_path, kind, files=FILES):
    """An export as it is mailed, or unpacked."""
    entries = {"conversations.json": json.dumps([conversation()]).encode(), **files}
    if kind == "zip":
        path = tmp_path / "export.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in entries.items():
                archive.writestr(name, data)
        return path
    for name, data in entries.items():
        (tmp_path / "export" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "export" / name).write_bytes(data)
    return tmp_path / "export"


@pytest.mark.parametrize("kind", ["zip", "folder"])
@pytest.mark.parametrize("store", ["memory", "folder"])
def test_what_messages_point_to_is_kept(tmp_path, kind, store):
    """Pictures, recordings and uploads become blobs, in their places; what is not there stays a pointer."""
    store = ledger.MemoryStore() if store == "memory" else ledger.FolderStore(tmp_path / "store")
    report = ledger.import_conversations(export(tmp_path, kind), store=store)
    chat = ledger.open("cats", store=store)
    asked, answered = chat.head.messages

    told = [(part["type"], part.get("modality")) for part in asked["parts"]]
    assert told == [("text", None), ("blob", "image"), ("uri", "image"), ("blob", "document")]
    assert [part["type"] for part in answered["parts"]] == ["blob", "text"]
    image, notes = (chat.attachment(asked["parts"][n]["content"]) for n in (1, 3))
    talk = chat.attachment(answered["parts"][0]["content"])
    assert (image.read(), image.name, image.media_type) == (
        CAT,
        "file-AbC12345-cat.png",
        "image/png",
    )
    assert (notes.read(), notes.name, notes.media_type) == (NOTES, "notes.txt", "text/plain")
    assert (talk.read(), answered["parts"][0]["modality"]) == (TALK, "audio")
    only = asked["parts"][1]["only"]["chatgpt"]
    assert (only["pointer"], only["width"]) == ("file-service://file-AbC12345", 3)
    assert report.notes.counts["files of the export kept as attachments"] == 3


def test_importing_again_changes_nothing(tmp_path):
    """The same export twice gives the same log, byte for byte, and reads no file again."""
    store, path = ledger.FolderStore(tmp_path / "store"), export(tmp_path, "zip")
    ledger.import_conversations(path, store=store)
    before = store.raw("cats")
    report = ledger.import_conversations(path, store=store)

    assert store.raw("cats") == before
    assert (report.turns, report.notes.counts["files of the export kept as attachments"]) == (0, 0)


def test_a_file_that_cannot_be_read_stays_a_pointer(tmp_path):
    """A damaged entry of a zip costs that file only, and is counted."""
    path = export(tmp_path, "zip", {"file-AbC12345-cat.png": b"a" * 5000})
    data = bytearray(path.read_bytes())
    at = data.index(b"file-AbC12345-cat.png") + len("file-AbC12345-cat.png")
    data[at : at + 8] = b"\xff" * 8
    path.write_bytes(data)
    report = ledger.import_conversations(path, store=tmp_path / "store")

    (asked, _) = ledger.open("cats", store=tmp_path / "store").head.messages
    assert [part["type"] for part in asked["parts"]] == ["text", "uri", "uri", "file"]
    assert report.notes.counts["files of the export that cannot be read"] == 1


def test_a_file_alone_takes_nothing_from_its_folder(tmp_path):
    """Given only conversations.json, no other file is looked at."""
    ledger.import_conversations(
        export(tmp_path, "folder") / "conversations.json", store=tmp_path / "s"
    )
    chat = ledger.open("cats", store=tmp_path / "s")
    assert "blob" not in [
        part["type"] for message in chat.head.messages for part in message["parts"]
    ]


@pytest.mark.parametrize(
    ("pointer", "name"),
    [
        ("file-service://file-AbC12345", "file-AbC12345-cat.png"),
        ("file-AbC12345", "file-AbC12345-cat.png"),
        ("sediment://file_0000000099?shared=1", "6955bd00/audio/file_0000000099-8d1f.wav"),
        ("file-service://file-AbC1234", None),
        ("https://example.com/file-AbC12345", None),
        ("file:///etc/passwd", None),
        ("../file-AbC12345", None),
        ("file", None),
        ("", None),
    ],
)
def test_a_pointer_finds_the_file_of_its_id(pointer, name):
    """Its id begins the file's name, and ends there; nothing else is looked up, in the export or outside."""
    assert Media(FILES).find(pointer) == name
