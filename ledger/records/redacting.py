"""What a record or an event holds of content, with every text of it replaced. Pure.

`STRUCTURE` names the keys that readers find turns, calls and steps by: ids, names, hashes, states, places.
Everything else is content, also under a key that nobody thought of, and so are all texts in it, at any depth.
Keys of objects are names and stay. Inside content stay what says how a part of a message, a reference to an
attachment or an error is to be read, and the bytes of `data:` addresses.

To redact what is redacted must change nothing: a turn that is resumed has redacted inputs, and its calls are
found again by what they are then.

Must stay in step: `STRUCTURE` with the keys of `kinds` and of `events`; a test asks for each.
"""

from __future__ import annotations

import base64
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import reduce
from typing import Any, cast

import msgspec

from ledger.errors import RecordInvalid
from ledger.records import canonical
from ledger.records.values import REFERENCE

Redact = Callable[[str], str]
"""A text -> the text that may be kept."""

STRUCTURE = frozenset(
    (
        *("functai_conversation", "functai_event", "kind", "at", "seq", "after", "writer"),
        *("turn", "parent", "tree", "root", "call", "site", "invocation", "attempt", "scope"),
        *("program", "version", "name", "program_kind", "module", "signature", "fields", "answer"),
        *("request_id", "request", "reads", "made_by", "context", "changes", "function", "field"),
        *(
            "saw",
            "saw_all",
            "shown_entries",
            "approve",
            "remembers",
            "redacted",
            "erased",
            "content",
            "to",
        ),
        *("holder", "until", "boot", "state", "model", "usage", "seconds", "omitted", "wait"),
        *("id", "effects", "key", "asked", "verdict", "path", "plugin", "entry"),
    )
)
"""The keys of records and events whose values are no content."""
_PART = frozenset({"type", "modality", "mime_type", "id", "file_id"})
_MESSAGE = frozenset({"role", "finish_reason"})
_INTERFACE = frozenset({"description", "default"})
_SUMMARY = ("ledger", "summary")
_KEY = ("ledger", "key")
_LISTS = (("ledger", "instructions"), ("ledger", "left"))
"""The entries whose data are messages."""


def of(redact: Any) -> Redact | None:
    """Return the function that a caller names: one, a list of them that are applied in order, or None.

    Raises: TypeError.
    """
    if redact is None:
        return None
    each = list(redact) if isinstance(redact, list | tuple) else [redact]
    for function in each:
        if not callable(function) or inspect.iscoroutinefunction(function):
            raise TypeError(
                f"redact is a plain function of a text, or a list of them, not {redact!r}"
            )
    if len(each) == 1:
        return cast(Redact, each[0])
    return lambda text: reduce(lambda said, function: function(said), each, text)


def record(said: Mapping[str, Any], redact: Redact) -> dict[str, Any]:
    """Return a record to append with its content redacted.

    How a turn ended that has no answer can always be recorded: what cannot be redacted of it is left out.
    Raises: record-invalid: `redact` raised, or gave no text; it names the place, and nothing of the text.
    """
    out = {}
    unanswered = said.get("kind") == "ended" and said.get("state") != "done"
    for key, value in said.items():
        if key in STRUCTURE:
            out[key] = value
        elif not unanswered:
            out[key] = _content(said, key, value, redact)
        elif key == "error":
            out[key] = _error_at_least(value, redact)
        else:
            with suppress(RecordInvalid):
                out[key] = _content(said, key, value, redact)
    if "output" in out and "output_value" in out:
        out["output"] = canonical.canonical(out["output_value"]).decode()
    return out


def _content(said: Mapping[str, Any], key: str, value: Any, redact: Redact) -> Any:
    own = (said.get("plugin"), said.get("entry"))
    if key == "messages" or (key == "data" and own in _LISTS):
        return messages(value, redact, key)
    if key == "data" and own == _KEY:
        return value  # By it a conversation is found again.
    if key == "error":
        return _error(value, redact, key)
    if key == "approvals":
        return [_but(STRUCTURE, one, redact, f"{key}[{i}]") for i, one in enumerate(value)]
    if key == "interface":
        return _interface(value, redact)
    if key == "data" and own == _SUMMARY and isinstance(value, dict) and "text" in value:
        return {**value, "text": texts(value["text"], redact, "summary")}
    return texts(value, redact, key)


def event(said: Mapping[str, Any], redact: Redact) -> dict[str, Any]:
    """Return an event with its content redacted. Raises: record-invalid, as `record`."""
    return {
        key: value if key in STRUCTURE else _content(said, key, value, redact)
        for key, value in said.items()
    }


def messages(said: Any, redact: Redact, path: str = "messages") -> Any:
    """Return messages with all that they say redacted. Raises: record-invalid, as `record`."""
    if not isinstance(said, list):
        return texts(said, redact, path)
    return [_message(one, redact, f"{path}[{i}]") for i, one in enumerate(said)]


def texts(value: Any, redact: Redact, path: str) -> Any:
    """Return a value with every text in it redacted. Raises: record-invalid, as `record`.

    Args: path: what it is called in a refusal.
    """
    if isinstance(value, str):
        return _text(value, redact, path)
    if isinstance(value, list):
        return [texts(one, redact, f"{path}[{i}]") for i, one in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if set(value) == {REFERENCE} and isinstance(value[REFERENCE], dict):
        kept = {"sha256", "media_type", "size"}
        return {REFERENCE: _but(kept, value[REFERENCE], redact, path)}
    return {key: texts(one, redact, f"{path}.{key}") for key, one in value.items()}


def _message(said: Any, redact: Redact, path: str) -> Any:
    if not isinstance(said, dict) or not isinstance(said.get("parts"), list):
        return texts(said, redact, path)
    parts = [_part(part, redact, f"{path}.parts[{i}]") for i, part in enumerate(said["parts"])]
    rest = {key: value for key, value in said.items() if key != "parts"}
    return {**_but(_MESSAGE, rest, redact, path), "parts": parts}


def _part(part: Any, redact: Redact, path: str) -> Any:
    if not isinstance(part, dict):
        return texts(part, redact, path)
    uri = part.get("uri")
    stay = _PART | {"name"} if part.get("type") == "tool_call" else _PART
    if not (isinstance(uri, str) and uri.startswith("data:")):
        return _but(stay, part, redact, path)
    clean = _but(stay | {"uri"}, part, redact, path)
    return {**clean, "uri": _data(uri, redact, f"{path}.uri")}


def _data(uri: str, redact: Redact, path: str) -> str:
    """Return a `data:` address with the text in it redacted, where it is text; other bytes are no text."""
    head, _, data = uri.partition(";base64,")
    if not head.startswith("data:text/"):
        return uri
    try:
        text = base64.b64decode(data, validate=True).decode()
    except ValueError:
        return uri
    return f"{head};base64,{base64.b64encode(_text(text, redact, path).encode()).decode()}"


def _interface(value: Any, redact: Redact, path: str = "interface") -> Any:
    """Return what a program says of itself: its description and the defaults of its fields are content."""
    if isinstance(value, list):
        return [_interface(one, redact, f"{path}[{i}]") for i, one in enumerate(value)]
    if not isinstance(value, dict):
        return value
    return {
        key: (texts if key in _INTERFACE else _interface)(one, redact, f"{path}.{key}")
        for key, one in value.items()
    }


def _error(value: Any, redact: Redact, path: str) -> Any:
    """Return an error with its texts redacted, those of a group's errors and of refused lines too."""
    found = _but({"type", "module", "errors", "lines"}, value, redact, path)
    for name in ("errors", "lines"):
        if isinstance(value, dict) and isinstance(value.get(name), list):
            found[name] = [
                _error(e, redact, f"{path}.{name}[{i}]") for i, e in enumerate(value[name])
            ]
    return found


def _error_at_least(value: Any, redact: Redact) -> Any:
    try:
        return _but({"type"}, value, redact, "error")
    except RecordInvalid:
        return {"type": value["type"]}


def _but(stay: frozenset[str] | set[str], value: Any, redact: Redact, path: str) -> Any:
    if not isinstance(value, dict):
        return texts(value, redact, path)
    return {
        key: one if key in stay else texts(one, redact, f"{path}.{key}")
        for key, one in value.items()
    }


def _spelled(text: str, redact: Redact, path: str) -> str:
    """Return a text that is JSON and spells some of its texts otherwise (`\\u0040`) with these redacted too."""
    if "\\" not in text or text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        said = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    clean = texts(said, redact, path)
    return text if clean == said else msgspec.json.encode(clean).decode()


def _text(text: str, redact: Redact, path: str) -> str:
    try:
        found = redact(text)
    except Exception as error:
        found, reason = None, f"redact raised {type(error).__name__}"
    else:
        reason = f"redact gave {type(found).__name__}, not text"
    if isinstance(found, str):
        return _spelled(str(found), redact, path)
    # Outside the clause: what it raised may repeat the text, and is to follow no error of ours.
    raise RecordInvalid(path=path, reason=reason)
