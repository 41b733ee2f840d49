"""Attachments: bytes as values. In a record a reference to them stands, in a store the bytes, once.

A caller gives `Attachment` objects anywhere in its values. `lowered` puts each one's reference in its
place, so that everything else sees JSON alone; `keep` has a store keep the bytes, durably, and fills the
reference in, which a record may only name after that. `raised` is the way back: what is read of a log has
`Attachment` objects that read the store. Nothing here reads a file before it is kept or asked for its bytes.
"""

from __future__ import annotations

import functools
import hashlib
import io
import mimetypes
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, Protocol

from ledger.bells import OwnLock
from ledger.errors import AttachmentMissing
from ledger.records import messages, values
from ledger.records.values import REFERENCE
from ledger.views.text import attachment_text

UNKNOWN_TYPE = "application/octet-stream"
"""The media type of bytes of which nobody says what they are."""


class Blobs(Protocol):
    """Where a store keeps the bytes of attachments (`ledger.stores.blobs`)."""

    def put(self, content: bytes | BinaryIO) -> tuple[str, int]:
        """Keep bytes, durably. Returns: their SHA-256 and their size."""
        ...

    def open(self, sha256: str) -> BinaryIO:
        """Return the bytes as a stream. Raises: attachment-missing, store-corrupt."""
        ...

    def has(self, sha256: str) -> bool:
        """Say whether there are bytes under this name."""
        ...


class Readable(Protocol):
    """An open binary stream. One that can be put back (`seekable`) can be read again should reading fail."""

    def read(self, size: int = ..., /) -> Any:
        """Return at most that many bytes; none at the end."""
        ...


class Attachment(values.Attached):
    """Bytes of any kind as a value: an image, a PDF, a recording. Kept once in a store, by their content.

        chat.send("What is on it?", ledger.Attachment(path="photo.png"))

    May stand anywhere in inputs, outputs, what tools take and give, replies, messages and entries. A file
    or stream is read once, when it is first kept, before anything is recorded that names it; what was
    read is the attachment from then on, whatever becomes of the file. One that was kept, or read of a
    turn, reads the store. Two are equal when their bytes, media type, name and options are.

    Args: data: the bytes, or an open binary stream, which is read from where it stands to its end and not
    closed. path: a file. media_type: left out, guessed from the name, else `application/octet-stream`.
    name: left out, that of the file. options: what a provider is told of it, as JSON has it, such as
    `{"detail": "high"}`.
    Raises: TypeError: not one of data and path, or of another type. record-invalid: a name or an option
    that cannot be kept exactly.
    Not promised: that the bytes are of the media type.
    """

    def __init__(
        self,
        data: bytes | bytearray | memoryview | Readable | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        media_type: str | None = None,
        name: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if (data is None) == (path is None):
            raise TypeError("an attachment is made of data or of a path: give one of the two")
        self._data: bytes | None = None
        self._stream: Readable | None = None
        self._path = None if path is None else os.path.abspath(os.fspath(path))
        if isinstance(data, bytes | bytearray | memoryview):
            self._data = bytes(data)
        elif data is not None:
            self._stream = _binary(data)
        name = name if name is not None else _file_name(self._path, self._stream)
        self._name_it(media_type, name, options)
        self._begin()

    def _name_it(
        self, media_type: str | None, name: str | None, options: Mapping[str, Any] | None
    ) -> None:
        for what, text in (("media_type", media_type), ("name", name)):
            if text is not None and not isinstance(text, str):
                raise TypeError(f"the {what} of an attachment is text, not {type(text).__name__}")
            values.check(text, what)
        if options is not None and not isinstance(options, Mapping):
            raise TypeError(f"options are given by name, not as {type(options).__name__}")
        media_type = media_type if media_type is not None else media_type_of(name)
        said = dict(options or {})
        values.check(said, "options", references=False)
        # What it is named by until its bytes are known is no hash of anything.
        self.token = secrets.token_hex(32)
        self._named: dict[str, Any] = {"sha256": self.token, "media_type": media_type, "size": 0}
        self._named |= {"name": name} if name is not None else {}
        self._named |= {"options": said} if said else {}

    def _begin(self) -> None:
        self._reference: dict[str, Any] = {REFERENCE: self._named}
        self._blobs: Blobs | None = None
        self._own = OwnLock()

    @classmethod
    def _kept(cls, reference: dict[str, Any], blobs: Blobs | None) -> Attachment:
        """Return the attachment that a record names."""
        self = cls.__new__(cls)
        self._data, self._stream, self._path = None, None, None
        self.token, self._named = secrets.token_hex(32), dict(reference[REFERENCE])
        self._begin()
        self._blobs = blobs
        return self

    # -- what it is

    @property
    def media_type(self) -> str:
        """What the bytes are said to be: `image/png`."""
        return str(self._named["media_type"])

    @property
    def name(self) -> str | None:
        """The file's name, without folders; None: it has none."""
        name = self._named.get("name")
        return None if name is None else str(name)

    @property
    def options(self) -> dict[str, Any]:
        """What a provider is told of it."""
        return dict(self._named.get("options", {}))

    @property
    def sha256(self) -> str:
        """The SHA-256 of the bytes, 64 hex digits. Raises: ValueError: a file or stream not kept yet."""
        self._find_out()
        return str(self._named["sha256"])

    @property
    def size(self) -> int:
        """How many bytes there are. Raises: ValueError: a file or stream that is not kept yet."""
        self._find_out()
        return int(self._named["size"])

    @property
    def reference(self) -> dict[str, Any]:
        """What stands in a record in its place: `{"$attachment": {...}}`. Raises: ValueError: as `sha256`."""
        self._find_out()
        return {REFERENCE: {**self._named}}

    @property
    def _known(self) -> bool:
        return bool(self._named["sha256"] != self.token)

    def _find_out(self) -> None:
        if self._known:
            return
        if self._data is None:
            what = self._path or "a stream"
            raise ValueError(f"{what} is read when it is kept: its hash and size are known then")
        sha256 = hashlib.sha256(self._data).hexdigest()
        self._named.update(sha256=sha256, size=len(self._data))

    # -- its bytes

    def read(self) -> bytes:
        """Return the bytes. Raises: as `open`; store-corrupt: they are other bytes now."""
        with self.open() as stream:
            return stream.read()

    @property
    def bytes(self) -> bytes:
        """The bytes, read anew each time. Raises: as `read`."""
        return self.read()

    def open(self) -> BinaryIO:
        """Return the bytes as a stream, to be read once from the start to the end, and closed.

        Reading it to the end raises store-corrupt when they are other bytes now; then what was read is
        not to be used.
        Raises: attachment-missing: they are not in the store any more. ValueError: a stream that is not
        kept yet. OSError: a file that is not kept yet, and cannot be opened.
        """
        if self._data is not None:
            return io.BytesIO(self._data)
        if self._blobs is not None:
            return self._blobs.open(self.sha256)
        if self._path is not None:
            return open(self._path, "rb")
        if self._known:
            raise AttachmentMissing(sha256=self.sha256)
        raise ValueError("a stream is read when it is kept; before that it is yours to read")

    # -- as Python sees it

    def part(self) -> dict[str, Any]:
        """Return it as a part of a message: a `blob`. (In `record(messages=...)` it may stand for one.)"""
        return {**messages.blob(self._reference), "content": self}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Attachment):
            return NotImplemented
        for each in (self, other):
            if each._data is not None:
                each._find_out()
        return self._named == other._named

    __hash__ = None  # type: ignore[assignment]  # Its hash would change when its bytes are known.

    def __deepcopy__(self, memo: object) -> Attachment:
        return self

    def __repr__(self) -> str:
        return f"<Attachment {attachment_text(self._reference) if self._known else self._told()}>"

    def _told(self) -> str:
        size = {"size": len(self._data)} if self._data is not None else {}
        return attachment_text(
            {REFERENCE: {"media_type": self.media_type, "name": self.name, **size}}
        )

    # -- kept

    def keep(self, blobs: Blobs) -> None:
        """Have a store keep the bytes, durably, unless it was seen to. The reference then names them.

        Raises: attachment-missing: the store lost them, and they cannot be had again. OSError: the file
        or stream cannot be read. Store errors. ValueError: its stream was read before, and not to its end.
        """
        with self._own.lock:
            if self._blobs is blobs and blobs.has(self.sha256):
                return
            with self._source(blobs) as source:
                sha256, size = blobs.put(source)
            if self._known and sha256 != self.sha256:
                raise AttachmentMissing(sha256=self.sha256)  # The file holds something else by now.
            self._named.update(sha256=sha256, size=size)
            self._blobs = blobs

    @contextmanager
    def _source(self, blobs: Blobs) -> Iterator[Any]:
        """Have the bytes, to be read once. What is wrong with a file or stream of the caller's is its own."""
        if self._data is not None:
            yield self._data
        elif self._blobs is not None and self._blobs is not blobs:
            with self._blobs.open(self.sha256) as stream:
                yield stream
        elif self._path is not None:
            with open(self._path, "rb") as file, _reading(_Given(file)) as given:
                yield given
        elif self._stream is not None:
            with self._spending(self._stream) as spent, _reading(_Given(spent)) as given:
                yield given
        elif self._known:
            raise AttachmentMissing(sha256=self.sha256)
        else:
            raise ValueError("the stream of this attachment was read before, and not to its end")

    @contextmanager
    def _spending(self, stream: Any) -> Iterator[Readable]:
        """Have a stream read once; again, should that fail, only if it can be put back to where it stood."""
        seekable = getattr(stream, "seekable", None)
        start = stream.tell() if callable(seekable) and seekable() else None
        self._stream = None
        try:
            yield stream
        except BaseException:
            if start is not None:
                with suppress(OSError, ValueError):
                    stream.seek(start)
                    self._stream = stream
            raise


class _SourceFailed(Exception):
    """A caller's file or stream cannot be read: no fault of the store that reads it."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error)
        self.error = error


class _Given:
    """A caller's stream as a store reads it."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        try:
            chunk = self._stream.read(size)
        except OSError as error:
            raise _SourceFailed(error) from error
        if not isinstance(chunk, bytes):
            kind = type(chunk).__name__
            raise TypeError(f"the stream of an attachment gives bytes, not {kind}: open it binary")
        return chunk


@contextmanager
def _reading(given: _Given) -> Iterator[_Given]:
    try:
        yield given
    except _SourceFailed as failed:
        raise failed.error from None


def _binary(data: Any) -> Readable:
    if callable(getattr(data, "read", None)):
        stream: Readable = data
        return stream
    hint = ": a file is given as path=, text is encoded first" if isinstance(data, str) else ""
    raise TypeError(f"data is bytes or a binary stream, not {type(data).__name__}{hint}")


def _file_name(path: str | None, stream: Any) -> str | None:
    named = path if path is not None else getattr(stream, "name", None)
    return os.path.basename(named) or None if isinstance(named, str) else None


@functools.lru_cache(maxsize=1024)
def media_type_of(name: str | None) -> str:
    """Return the media type that a file's name tells, the same on every machine."""
    known = mimetypes.MimeTypes()  # Python's own table: not what this machine has in files.
    found, encoding = known.guess_type(name or "", strict=False)
    if encoding is not None:
        return "application/gzip" if encoding == "gzip" else UNKNOWN_TYPE
    return found or UNKNOWN_TYPE


# -- in values -------------------------------------------------------------------------------------


def lowered(
    value: Any, path: str, given: list[Attachment] | None, *, references: bool = False
) -> Any:
    """Return a caller's value as it is recorded: each attachment in it as its reference.

    The references are filled in when the attachments are kept, which is to be done before the value is
    hashed or recorded.
    Args: path: what the value is called in messages. given: takes the attachments; None: none may stand
    in it. references: whether it may have references already.
    Raises: record-invalid, record-too-large: it cannot be kept exactly.
    """
    found: list[Attachment] | None = None if given is None else []
    values.check(value, path, references=references, attached=found)
    if not found or given is None:
        return value
    given += found
    told = plain(value)
    values.check(told, path)  # A reference is deeper than what it stands for.
    return told


def plain(value: Any) -> Any:
    """Return a value with the reference of each attachment in it, as JSON has it."""
    if isinstance(value, Attachment):
        return value._reference
    if type(value) is dict:
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if type(value) is list else value


def reading(given: Iterable[Attachment]) -> Callable[[str], bytes | None]:
    """Return what gives the bytes of attachments that no store keeps, by what their references name them."""

    def read(sha256: str) -> bytes | None:
        found = (each for each in given if sha256 in (each.token, each._named["sha256"]))
        return next((each.read() for each in found), None)

    return read


def raised(value: Any, blobs: Blobs | None, given: Iterable[Attachment] = ()) -> Any:
    """Return a recorded value with an `Attachment` for each reference in it, read from a store.

    Args: blobs: where the store keeps the bytes; None: nowhere. given: attachments of the caller's whose
    references stand in the value as well.
    """
    own = {id(each._named): each for each in given}

    def of(reference: dict[str, Any]) -> Attachment:
        return own.get(id(reference[REFERENCE])) or Attachment._kept(reference, blobs)

    return values.replaced(value, of)
