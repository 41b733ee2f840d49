"""What is an event of a running turn, in functai's event format 2.

Must stay in step: `_KINDS` with functai's event.schema.json; a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ledger.records import ids

FORMAT = 2

_Check = Callable[[Any], bool]
_AT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z")
_KIND = re.compile(r"[a-z][a-z0-9_]*")
_SHA256 = re.compile(r"sha256:[0-9a-f]{64}")
_SLOT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


# -- values ----------------------------------------------------------------------------------------


def _text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _any_text(value: Any) -> bool:
    return isinstance(value, str)


def _object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _anything(value: Any) -> bool:
    return True


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _natural(value: Any) -> bool:
    """Say whether it is an integer, which JSON lets be written 1.0, that is not negative."""
    return _number(value) and (isinstance(value, int) or value.is_integer())


def is_count(value: Any) -> bool:
    """Say whether it is an integer from 1 on."""
    return _natural(value) and value >= 1


def _matches(pattern: re.Pattern[str]) -> _Check:
    return lambda value: isinstance(value, str) and bool(pattern.fullmatch(value))


def _or_null(check: _Check) -> _Check:
    return lambda value: value is None or check(value)


def _one_of(*words: str | None) -> _Check:
    return lambda value: (value is None or isinstance(value, str)) and value in words


def _list_of(check: _Check) -> _Check:
    return lambda value: isinstance(value, list | tuple) and all(map(check, value))


def _names(value: Any) -> bool:
    return _list_of(_text)(value) and len(set(value)) == len(value)


def _fields(must: dict[str, _Check], may: dict[str, _Check] | None = None) -> _Check:
    """Return the check of an object by its keys; those that are not named may be anything."""

    needed, allowed = tuple(must.items()), tuple((may or {}).items())

    def fits(value: Any) -> bool:
        if not isinstance(value, Mapping):
            return False
        for key, check in needed:
            if key not in value or not check(value[key]):
                return False
        return all(key not in value or check(value[key]) for key, check in allowed)

    return fits


def _only(check: _Check, *keys: str) -> _Check:
    return lambda value: check(value) and set(value) <= set(keys)


# -- parts -----------------------------------------------------------------------------------------

_place = _only(_fields({"writer": is_count, "seq": is_count}), "writer", "seq")
_omitted = _only(_fields({"inputs": _names, "outputs": _names}), "inputs", "outputs")
_error = _fields({"type": _text}, {"message": _any_text, "code": _any_text})
_sha256 = _matches(_SHA256)
_time = _matches(_AT)
_kind_name = _matches(_KIND)
_saw_entry = _fields(
    {},
    {
        "call": ids.is_turn,
        "steps": lambda value: value is True,
        "without": lambda value: _names(value) and len(value) > 0,
        "slot": _matches(_SLOT),
        "saw_of": ids.is_turn,
    },
)
_program_keys = _fields(
    {
        "name": _text,
        "kind": _one_of("ai", "module", "remote"),
        "module": _any_text,
        "version": _sha256,
        "interface": _sha256,
        "answer": _text,
    },
    {"signature": _sha256, "saved": _sha256, "file": _any_text, "line": _natural, "remote": _text},
)


def _program(value: Any) -> bool:
    return (
        _program_keys(value)
        and (value["kind"] == "ai") is ("signature" in value)
        and (value["kind"] == "remote") is ("remote" in value)
    )


_envelope = _fields(
    {
        "kind": _kind_name,
        "tree": ids.is_turn,
        "writer": is_count,
        "seq": is_count,
        "after": _or_null(_place),
        "at": _time,
        "call": ids.is_turn,
        "function": _text,
    },
    {"invocation": is_count},
)


# -- kinds -----------------------------------------------------------------------------------------
#
# `content` says of an event whether what the turn holds is in it. False: a log that may not keep it.


def _hides(*keys: str, needs: bool = True) -> _Check:
    """Return the check of an event that has some keys, the first for sure, or `content: false`."""

    def fits(event: Any) -> bool:
        if "content" in event:
            return event["content"] is False and not any(key in event for key in keys)
        return not needs or keys[0] in event

    return fits


def _hides_nothing(event: Any) -> bool:
    return "content" not in event


def _hides_inputs(event: Any) -> bool:
    if event["content"] is True:
        return "inputs" in event and "omitted" not in event
    return "omitted" in event


def _hides_message(event: Any) -> bool:
    return "content" not in event or (event["content"] is False and "message" not in event["error"])


class _Kind(NamedTuple):
    keys: _Check
    content: _Check


_asked: dict[str, _Check] = {"id": _text, "name": _text}
_KINDS: dict[str, _Kind] = {
    "started": _Kind(
        _fields(
            {
                "parent": _or_null(ids.is_turn),
                "root": ids.is_turn,
                "program": _program,
                "content": _boolean,
                "saw": _list_of(_saw_entry),
            },
            {"inputs": _object, "omitted": _omitted},
        ),
        _hides_inputs,
    ),
    "request": _Kind(_fields({"request": is_count, "model": _or_null(_any_text)}), _hides_nothing),
    "text": _Kind(_fields({"field": _text, "answer": _boolean, "text": _text}), _hides_nothing),
    "thinking": _Kind(_fields({"text": _text}), _hides_nothing),
    "tool_call": _Kind(_fields(_asked), _hides("input")),
    "tool_result": _Kind(_fields(_asked, {"output": _any_text}), _hides("output")),
    "retry": _Kind(_fields({"wait": _or_null(_number)}, {"reason": _text}), _hides("reason")),
    "done": _Kind(_anything, _hides("value")),
    "failed": _Kind(_fields({"error": _error}), _hides_message),
    "approval": _Kind(
        _fields(
            {
                **_asked,
                "invocation": is_count,
                "effects": _one_of("reads", "changes", None),
                "path": _text,
                "to": _one_of("owner", "caller"),
            },
            {"plugin": _text, "question": _any_text},
        ),
        _hides("input", "question"),
    ),
    "approved": _Kind(
        _fields(
            {
                "id": _text,
                "invocation": is_count,
                "verdict": _one_of("yes", "no"),
                "by": _or_null(_any_text),
            },
            {"reason": _or_null(_any_text), "plugin": _text},
        ),
        _hides("reason", needs=False),
    ),
}
_OTHER_KIND = _Kind(_anything, lambda event: event.get("content", False) is False)


def is_event(value: object) -> bool:
    """Say whether a value is an event of this format. Keys and kinds that are not known are allowed."""
    if not isinstance(value, Mapping) or value.get("functai_event") != FORMAT:
        return False
    return _envelope(value) and _fits_kind(value)


def is_like_before(event: Mapping[str, Any]) -> bool:
    """Say whether a value is an event, where one before it was, in which only the place, time and kind are others."""
    return _time(event["at"]) and _kind_name(event["kind"]) and _fits_kind(event)


def _fits_kind(event: Mapping[str, Any]) -> bool:
    kind = _KINDS.get(event["kind"], _OTHER_KIND)
    return kind.keys(event) and kind.content(event)


def is_named(value: object, tree: str) -> bool:
    """Say whether a value is at least an object that this format gives a place in a tree's log.

    What another version wrote passes, whatever else is in it.
    """
    return (
        isinstance(value, dict)
        and value.get("functai_event") == FORMAT
        and value.get("tree") == tree
        and is_count(value.get("writer"))
        and is_count(value.get("seq"))
        and _text(value.get("kind"))
    )
