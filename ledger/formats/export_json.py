"""Our own JSON: one conversation complete, its log byte for byte and what its attachments name.

    {"turn_ledger_export": 1,
     "conversation": "<id>",
     "log": [<line>, ...],          each line without its line feed
     "unended": <line>,             what stands after the last line feed, if anything does
     "attachments": {"<sha256>": "<base64>", ...}}

A line is a string, or `{"base64": ...}` when its bytes are not UTF-8. Lines are kept, not records:
seals, void batches, damage and the lines of other writers come back as they were.

Pure. `dump` and `load` are each other's inverse; `merge_json.missing` says what a store that has
the conversation lacks. An unknown key is skipped; a document of a later version is refused.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ledger.errors import ConversationIdInvalid, ImportInvalid
from ledger.formats.base import Broken, Exported, File, Skipped, alone
from ledger.records import ids

name = "turn-ledger"
home = None
together = alone
VERSION = 1
_MARK = "turn_ledger_export"


def looks_like(sample: object) -> bool:
    """Say whether a decoded value is one of our documents, of this version or a later one."""
    return isinstance(sample, dict) and _MARK in sample


def begins(data: bytes) -> bool:
    """Say whether bytes begin as `dump` begins them; a log never does."""
    return data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b'{"%b"' % _MARK.encode())


def drafts(files: Sequence[File]) -> Iterator[Exported | Skipped]:
    """Read each document; one that does not read is skipped, and the next one is read."""
    for file in files:
        for number, element in enumerate(file.elements(), 1):
            what = f"{file.name}: export {number}"
            if isinstance(element, Broken):
                yield Skipped(what, f"{element.reason} (at byte {element.at})")
                continue
            try:
                yield load(element.raw, source=what)
            except ImportInvalid as error:
                yield Skipped(error.source, error.reason)


def dump(
    conversation: str, raw_log: bytes, blobs: Iterable[tuple[str, Iterable[bytes]]]
) -> Iterator[bytes]:
    """Yield the document of a conversation, in pieces: one for each line, several for an attachment.

    Args: raw_log: every byte of the log. blobs: the bytes its records name, each with its hex SHA-256
    and cut anywhere; they are asked for one after the other.
    """
    yield b'{"%b":%d,\n"conversation":%b,\n"log":[' % (
        _MARK.encode(),
        VERSION,
        _json(conversation),
    )
    *lines, unended = raw_log.split(b"\n")
    for i, line in enumerate(lines):
        yield (b",\n" if i else b"\n") + _json(_line(line))
    yield b"\n],\n"
    if unended:
        yield b'"unended":%b,\n' % _json(_line(unended))
    yield b'"attachments":{'
    for i, (sha256, chunks) in enumerate(blobs):
        yield b'%b"%b":"' % (b",\n" if i else b"\n", sha256.encode())
        yield from _base64(chunks)
        yield b'"'
    yield b"\n}}\n"


def load(data: bytes, *, source: str = "the export") -> Exported:
    """Return what `dump` was given.

    Raises: import-invalid: it is no such document, of a later version, or an attachment's bytes are
    not those its hash names. Nothing of it is used then.
    """
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ImportInvalid(source=source, reason=f"not readable as JSON: {error}") from error
    if not looks_like(value):
        raise ImportInvalid(source=source, reason="not a document of `turn-ledger export`")
    if value[_MARK] != VERSION:
        raise ImportInvalid(
            source=source,
            reason=f"written as version {value[_MARK]!r}, this program reads {VERSION}; upgrade it",
        )
    try:
        conversation = ids.check_conversation(value.get("conversation"))
    except ConversationIdInvalid as error:
        raise ImportInvalid(source=source, reason=error.message()) from error
    return Exported(conversation, _log(value, source), _blobs(value, source))


def _base64(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Encode bytes as they come: three at a time give four."""
    rest = b""
    for chunk in chunks:
        given = rest + chunk
        whole = len(given) - len(given) % 3
        yield base64.b64encode(given[:whole])
        rest = given[whole:]
    yield base64.b64encode(rest)


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _line(line: bytes) -> str | dict[str, str]:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(line).decode()}


def _log(value: dict[str, Any], source: str) -> bytes:
    lines = value.get("log")
    if not isinstance(lines, list):
        raise ImportInvalid(source=source, reason="`log` is no list of lines")
    unended = value.get("unended", "")
    return b"\n".join(
        _bytes(line, f"line {number}", source) for number, line in enumerate([*lines, unended], 1)
    )


def _blobs(value: dict[str, Any], source: str) -> dict[str, bytes]:
    listed = value.get("attachments", {})
    if not isinstance(listed, dict):
        raise ImportInvalid(source=source, reason="`attachments` is no object")
    blobs = {}
    for sha256, text in listed.items():
        blob = _bytes({"base64": text}, f"attachment {sha256[:64]}", source)
        if hashlib.sha256(blob).hexdigest() != sha256:
            raise ImportInvalid(source=source, reason=f"attachment {sha256[:64]} has other bytes")
        blobs[sha256] = blob
    return blobs


def _bytes(line: Any, what: str, source: str) -> bytes:
    try:
        if isinstance(line, str):
            return line.encode()
        return base64.b64decode(line["base64"], validate=True)
    except (ValueError, TypeError, KeyError) as error:
        raise ImportInvalid(source=source, reason=f"{what} does not read") from error
