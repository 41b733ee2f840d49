"""Attachments as values: made, named in records, given their place in typed values, compared."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import os
from typing import Any, TypedDict

import msgspec
import pytest

import ledger
from ledger import Attachment, errors
from ledger.records import messages, values
from ledger.stores.blobs import FolderBlobs, MemoryBlobs
from ledger.turns import attachments
from ledger.turns.types import Field, opaque

CAT = b"\x89PNG cat"
CAT_HASH = hashlib.sha256(CAT).hexdigest()


@pytest.fixture(params=["memory", "folder"])
def blobs(request, tmp_path):
    """An empty place for attachments of each kind."""
    return MemoryBlobs() if request.param == "memory" else FolderBlobs(str(tmp_path / "s"))


def written(annotation, value):
    """A value as a field of a type writes it, its attachments kept in memory. Returns: it, and where."""
    blobs, given = MemoryBlobs(), []
    plain = Field(annotation).write(value, "inputs.x", given)
    for each in given:
        each.keep(blobs)
    return plain, blobs


# -- made ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bytes", "bytearray", "memoryview", "path", "stream"])
def test_made_of_bytes_a_file_or_a_stream(kind, tmp_path, blobs):
    """However the bytes are given they are kept, and what is recorded names them."""
    (tmp_path / "cat.png").write_bytes(CAT)
    with (tmp_path / "cat.png").open("rb") as stream:
        made = {
            "bytes": lambda: Attachment(CAT, name="cat.png"),
            "bytearray": lambda: Attachment(bytearray(CAT), name="cat.png"),
            "memoryview": lambda: Attachment(memoryview(CAT), name="cat.png"),
            "path": lambda: Attachment(path=tmp_path / "cat.png"),
            "stream": lambda: Attachment(stream),
        }[kind]()
        made.keep(blobs)

    assert made.reference == {
        "$attachment": {
            "sha256": CAT_HASH,
            "media_type": "image/png",
            "size": len(CAT),
            "name": "cat.png",
        }
    }
    assert (made.sha256, made.size, made.name) == (CAT_HASH, len(CAT), "cat.png")
    assert made.read() == made.bytes == CAT
    with made.open() as opened:
        assert opened.read(2) + opened.read() == CAT


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("a.png", "image/png"),
        ("A.JPG", "image/jpeg"),
        ("a.pdf", "application/pdf"),
        ("a.mp3", "audio/mpeg"),
        ("a.tar.gz", "application/gzip"),
        ("a.svg.br", "application/octet-stream"),
        ("noext", "application/octet-stream"),
        (None, "application/octet-stream"),
    ],
)
def test_the_media_type_is_guessed_from_the_name(name, media_type):
    """A name tells the media type, the same on every machine; one that is said is taken as it is."""
    assert Attachment(b"", name=name).media_type == media_type
    assert Attachment(b"", name=name, media_type="x/y").media_type == "x/y"


@pytest.mark.parametrize(
    ("how", "error", "told"),
    [
        ({}, TypeError, "one of the two"),
        ({"data": b"", "path": "x"}, TypeError, "one of the two"),
        ({"data": "text"}, TypeError, "encoded first"),
        ({"data": 7}, TypeError, "not int"),
        ({"data": b"", "name": 7}, TypeError, "name"),
        ({"data": b"", "media_type": 7}, TypeError, "media_type"),
        ({"data": b"", "options": [1]}, TypeError, "by name"),
        ({"data": b"", "options": {"a": float("nan")}}, errors.RecordInvalid, "options.a"),
        ({"data": b"", "name": "\ud800"}, errors.RecordInvalid, "surrogate"),
    ],
)
def test_what_is_no_attachment_is_refused(how, error, told):
    """A wrong argument is refused where it is given, saying what is wrong."""
    with pytest.raises(error, match=told):
        Attachment(**how)


def test_a_file_or_stream_has_no_hash_before_it_is_kept(tmp_path):
    """What was not read yet does not pretend to be known; bytes are known at once."""
    for made in (Attachment(path=tmp_path / "x"), Attachment(io.BytesIO(CAT))):
        for name in ("sha256", "size"):
            with pytest.raises(ValueError, match="when it is kept"):
                getattr(made, name)
    assert (Attachment(CAT).sha256, Attachment(CAT).size) == (CAT_HASH, len(CAT))


def test_a_file_is_read_once(tmp_path, blobs):
    """What was read is the attachment: the file may change or vanish, and the bytes still fit the hash."""
    path = tmp_path / "notes.txt"
    path.write_bytes(b"before")
    made = Attachment(path=path)
    made.keep(blobs)
    path.write_bytes(b"after")
    made.keep(blobs)

    assert made.read() == b"before"
    path.unlink()
    other = MemoryBlobs()
    made.keep(other)
    assert other.get(made.sha256) == b"before"


def test_a_file_that_changes_while_it_is_read_is_consistent(tmp_path):
    """The hash is that of the bytes that are kept, whatever the file holds meanwhile."""
    path = tmp_path / "growing"
    path.write_bytes(b"a" * 3_000_000)

    class Growing(FolderBlobs):
        def put(self, content):
            first = content.read(1_000_000)
            path.write_bytes(b"b" * 2_000_000)
            return super().put(io.BytesIO(first + content.read()))

    blobs = Growing(str(tmp_path / "s"))
    made = Attachment(path=path)
    made.keep(blobs)

    data = blobs.get(made.sha256)
    assert hashlib.sha256(data).hexdigest() == made.sha256
    assert len(data) == made.size == 2_000_000


def test_a_path_is_that_of_where_it_was_given(tmp_path, monkeypatch):
    """A relative path means a file of the folder the process was in when the attachment was made."""
    (tmp_path / "a.txt").write_bytes(b"a")
    monkeypatch.chdir(tmp_path)
    made = Attachment(path="a.txt")
    monkeypatch.chdir("/")

    assert made.read() == b"a"


class Breaking(io.BytesIO):
    """A stream that breaks once, in its middle."""

    broken = False

    def read(self, size=-1):
        """Give some bytes, then fail, then go on."""
        if self.tell() and not self.broken:
            self.broken = True
            raise OSError("the disk was pulled out")
        return super().read(2)


def test_a_stream_that_breaks_is_the_callers_error(blobs):
    """It is no fault of the store, leaves nothing, and is read anew from where it stood."""
    made = Attachment(Breaking(CAT))
    with pytest.raises(OSError, match="pulled out"):
        made.keep(blobs)
    made.keep(blobs)

    assert blobs.get(CAT_HASH) == CAT


def test_a_stream_that_cannot_be_put_back_is_not_kept_in_part(blobs):
    """What was read of a stream that broke is gone: to keep it again is refused, not cut short."""

    class OneWay(Breaking):
        def seekable(self):
            return False

    made = Attachment(OneWay(CAT))
    with pytest.raises(OSError, match="pulled out"):
        made.keep(blobs)
    with pytest.raises(ValueError, match="read before"):
        made.keep(blobs)


def test_a_stream_of_text_is_refused(blobs):
    """A file that was not opened binary is refused when it is kept."""
    with pytest.raises(TypeError, match="open it binary"):
        Attachment(io.StringIO("text")).keep(blobs)


def test_bytes_that_went_from_the_store_are_put_again(tmp_path, blobs):
    """Bytes and unchanged files are put again; what cannot be had again is missing, and nothing else is put."""
    path = tmp_path / "a"
    path.write_bytes(b"a")
    given, filed, streamed = Attachment(CAT), Attachment(path=path), Attachment(io.BytesIO(b"s"))
    for each in (given, filed, streamed):
        each.keep(blobs)
    blobs.remove([given.sha256, filed.sha256, streamed.sha256])

    given.keep(blobs)
    filed.keep(blobs)
    with pytest.raises(errors.AttachmentMissing):
        streamed.keep(blobs)
    assert (blobs.get(given.sha256), blobs.get(filed.sha256)) == (CAT, b"a")

    blobs.remove([filed.sha256])
    path.write_bytes(b"other")
    with pytest.raises(errors.AttachmentMissing):
        filed.keep(blobs)


def test_equal_by_content_and_description():
    """Two are equal when bytes, media type, name and options are; a file that was not read is only itself."""
    assert Attachment(CAT, name="a.png") == Attachment(io.BytesIO(CAT).read(), name="a.png")
    assert Attachment(CAT, name="a.png") != Attachment(CAT, name="b.png")
    assert Attachment(CAT) != Attachment(CAT, options={"detail": "low"})
    assert Attachment(CAT) != CAT
    unread = Attachment(path="x")
    assert unread == unread
    assert unread != Attachment(path="x")


def test_shown_to_people():
    """Its representation has name, media type and size, and none of its bytes."""
    assert repr(Attachment(CAT, name="a.png")) == "<Attachment a.png (image/png, 8 bytes)>"
    assert repr(Attachment(path="/x/a.pdf")) == "<Attachment a.pdf (application/pdf)>"


# -- in values -------------------------------------------------------------------------------------


def test_order_is_kept_anywhere():
    """In lists and dicts, at any depth, each stands where it stood."""
    given: list[Attachment] = []
    value = ["a", Attachment(b"1"), {"k": [Attachment(b"2"), "b"]}, Attachment(b"1")]
    plain = attachments.lowered(value, "x", given)
    blobs = MemoryBlobs()
    for each in given:
        each.keep(blobs)
    back = attachments.raised(plain, blobs)

    values.check(plain)
    assert back == value
    assert back[2]["k"][0].read() == b"2"


@pytest.mark.parametrize(
    "value",
    [{"$attachment": "x"}, [{"$attachment": {"sha256": CAT_HASH}}], Attachment(CAT).reference],
)
@pytest.mark.parametrize("annotation", [None, Any, dict, list])
def test_a_callers_own_reference_is_refused(value, annotation):
    """Nobody can name bytes that they did not give."""
    if annotation is not None and annotation is not Any and not isinstance(value, annotation):
        return
    with pytest.raises(errors.RecordInvalid, match="reserved for stored attachments"):
        Field(annotation if annotation is not None else Any).write(value, "x", [])


def test_no_attachment_where_none_can_stand():
    """Settings and the like hold none, and say so."""
    with pytest.raises(errors.RecordInvalid, match="no attachment can stand here"):
        attachments.lowered({"a": Attachment(CAT)}, "settings", None)


def test_the_depth_counts_what_is_recorded():
    """A value that its references would make too deep is refused before anything is kept."""
    value: Any = Attachment(CAT)
    for _ in range(values.DEPTH_LIMIT - 1):
        value = [value]
    with pytest.raises(errors.RecordInvalid, match="nested more than"):
        attachments.lowered(value, "x", [])


def test_a_reference_of_another_form_is_left_as_it_is():
    """What another writer left under the key, and is no reference, reads as it is."""
    for value in (
        {"$attachment": 7},
        {"$attachment": {"sha256": "x"}},
        {"$attachment": {}, "a": 1},
    ):
        assert attachments.raised([value], MemoryBlobs()) == [value]


def test_one_without_a_place_is_missing():
    """A reference read where no bytes are kept is an attachment whose bytes are missing, and no more."""
    (found,) = attachments.raised([Attachment(CAT).reference], None)
    found_again = attachments.raised(written(Any, Attachment(CAT))[0], None)

    assert isinstance(found, Attachment)
    assert found_again.size == len(CAT)
    with pytest.raises(errors.AttachmentMissing):
        found_again.read()


# -- compared --------------------------------------------------------------------------------------


def test_the_same_bytes_are_the_same_request():
    """What a request is known by has an attachment's bytes and options, not its name or media type."""

    def known_by(**how):
        return values.identity(written(Any, ["look", Attachment(CAT, **how)])[0])

    assert known_by(name="a.png") == known_by(name="b.jpg", media_type="x/y")
    assert known_by() == ["look", {"$attachment": {"sha256": CAT_HASH}}]
    assert known_by() != known_by(options={"detail": "low"})
    assert values.identity({"a": [1]}) == {"a": [1]}


# -- typed -----------------------------------------------------------------------------------------


@dataclasses.dataclass
class Page:
    """A page of text and pictures."""

    title: str
    content: list[str | Attachment]
    cover: Attachment | None = None


class Scan(msgspec.Struct, rename="camel"):
    """A scan."""

    page_image: Attachment
    pages: int = 1


class Note(TypedDict):
    """A note."""

    text: str
    file: Attachment


ONE = Attachment(CAT, name="cat.png")
TYPED = [
    (Attachment, ONE),
    (Attachment | None, None),
    (Attachment | None, ONE),
    (str | Attachment, "text"),
    (int | str | Attachment, 7),
    (list[Attachment], [ONE, Attachment(b"2")]),
    (list[str | Attachment], ["a", ONE, "b"]),
    (tuple[str, Attachment], ("a", ONE)),
    (tuple[Attachment, ...], (ONE, ONE)),
    (dict[str, Attachment], {"a": ONE}),
    (Page, Page("t", ["a", ONE], None)),
    (Page, Page("t", [], ONE)),
    (list[Page], [Page("t", [ONE])]),
    (Scan, Scan(ONE, 2)),
    (Note, {"text": "a", "file": ONE}),
    (list, ["a", ONE]),
    (dict, {"a": ONE}),
    (list[Any], [ONE]),
    (Any, {"a": [ONE]}),
]


@pytest.mark.parametrize(("annotation", "value"), TYPED, ids=lambda x: str(x)[:40])
def test_typed_values_come_back_with_their_attachments(annotation, value):
    """Where a type says so, and in plain lists and dicts, an attachment comes back equal, to be read."""
    plain, blobs = written(annotation, value)
    back = Field(annotation).read(plain, lambda inner: attachments.raised(inner, blobs))

    values.check(plain)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Attachment, "text"),
        (Attachment, {"$attachment": "x"}),
        (list[Attachment], [ONE, "text"]),
        (str | Attachment, 7),
        (tuple[str, Attachment], ("a",)),
        (dict[str, Attachment], [ONE]),
        (Page, Page("t", [7])),  # type: ignore[list-item]
        (Note, {"text": "a"}),
        (str, ONE),
        (list[str], [ONE]),
    ],
    ids=str,
)
def test_what_is_not_of_the_type_is_refused(annotation, value):
    """A value of another type is refused by the name of its input."""
    with pytest.raises(TypeError, match=r"inputs\.x is not"):
        Field(annotation).write(value, "inputs.x", [])


def test_a_type_that_holds_attachments_has_a_form():
    """Such fields are not opaque, and their shape says what is recorded; sets of attachments are."""
    for annotation, _ in TYPED:
        assert opaque(annotation) is None
    assert opaque(set[Attachment]) is not None
    assert Field(Attachment).shape == {"type": "object", "required": ["$attachment"]}
    assert Field(Attachment).type_name == "Attachment"


# -- messages --------------------------------------------------------------------------------------


def test_messages_made_of_inputs_keep_the_order():
    """Text stays text, an attachment becomes a blob of its modality, a list is its parts in order."""
    image, sound, pdf = (Attachment(b"", name=n) for n in ("a.png", "a.wav", "a.pdf"))
    plain, _ = written(Any, ["see", image, "hear", sound, pdf, {"n": 1}])

    (message,) = messages.from_inputs({"message": plain})

    told = [part.get("modality") or part["content"] for part in message["parts"]]
    assert told == ["see", "image", "hear", "audio", "document", '{"n":1}']
    assert message["parts"][1]["content"] == image.reference
    messages.check([message])


def test_messages_of_several_inputs_name_them():
    """Each input stands under its name; attachments deeper inside come after the JSON that names them."""
    plain, _ = written(Any, {"question": "what?", "image": ONE, "form": {"scan": ONE}})

    (message,) = messages.from_inputs(plain)

    kinds = [part["type"] for part in message["parts"]]
    assert kinds == ["text", "text", "blob", "text", "blob"]
    assert message["parts"][1] == {"type": "text", "content": "image:"}
    assert message["parts"][3]["content"].startswith('form: {"scan":{"$attachment"')
    messages.check([message, *messages.from_result([ONE.reference, "there"])])


GIVEN: list[tuple[dict[str, Any], list[str]]] = [
    ({"message": "hi", "files": []}, ["hi"]),
    ({"message": "hi", "files": None, "more": {}, "note": ""}, ["hi"]),
    ({"files": [ONE, ONE], "message": "hi"}, ["image", "image", "hi"]),
    ({"message": ["see", ONE], "files": []}, ["see", "image"]),
    ({"message": "", "files": [ONE]}, ["image"]),
    ({"message": "", "files": []}, [""]),
    ({"message": None, "files": []}, ["null"]),
    (
        {"message": "which?", "old": ONE, "new": [ONE, ONE]},
        ["which?", "old:", "image", "new:", "image", "image"],
    ),
    ({"old": ONE, "new": ONE}, ["old:", "image", "new:", "image"]),
    (
        {"message": "hi", "files": [ONE], "verbose": False},
        ["message: hi", "files:", "image", "verbose: false"],
    ),
    ({"a": 0, "b": "x", "c": []}, ["a: 0", "b: x"]),
]


@pytest.mark.parametrize("inputs, told", GIVEN, ids=[str(i) for i in range(len(GIVEN))])
def test_a_text_alone_stands_without_its_name(inputs, told):
    """What is empty is not said, and names are said where there is something to tell apart."""
    plain, _ = written(Any, inputs)

    (message,) = messages.from_inputs(plain)

    assert [part.get("modality") or part["content"] for part in message["parts"]] == told
    messages.check([message])


def test_a_list_that_was_handed_out_is_known_again():
    """What is told of several inputs is read as that turn's when it comes back."""
    chat = ledger.open("c", store=ledger.MemoryStore())
    chat.record({"message": "hi", "files": [ONE]}, "there")
    chat.record({"message": "", "files": [ONE]}, "where?")
    for format in ("openai", "anthropic", None):
        listed = chat.messages(format)
        assert chat.sync(listed, format=format).turns == []


def test_putting_the_same_bytes_again_writes_nothing(tmp_path):
    """One place for attachments writes the same bytes once, and again when somebody touched the file."""
    blobs = FolderBlobs(str(tmp_path))
    blobs.put(CAT)
    path = tmp_path / "attachments" / CAT_HASH[:2] / CAT_HASH
    before = path.stat().st_ino
    blobs.put(CAT)
    assert path.stat().st_ino == before

    os.truncate(path, 3)
    blobs.put(CAT)
    assert path.read_bytes() == CAT


def test_it_is_a_public_name():
    """`ledger.Attachment` is it."""
    assert ledger.Attachment is Attachment is attachments.Attachment
