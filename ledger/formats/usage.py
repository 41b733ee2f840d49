"""Counts of tokens as every vendor spells them, in one spelling. Pure.

`input_tokens` is all that a model read, of which `cache_read_tokens` and `cache_write_tokens`;
`output_tokens` all that it wrote, of which `reasoning_tokens`. Anthropic and Bedrock count what was read
from a cache, or written to it, beside the input, and Google what was thought beside the output: it is added to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from ledger.errors import RecordInvalid
from ledger.records import values

_SPELLINGS = {
    "input_tokens": (
        *("input_tokens", "prompt_tokens", "request_tokens"),
        *("prompt_eval_count", "prompt_token_count"),
    ),
    "output_tokens": (
        *("output_tokens", "completion_tokens", "response_tokens"),
        *("eval_count", "candidates_token_count", "response_token_count"),
    ),
    "cache_read_tokens": (
        *("cache_read_tokens", "cache_read_input_tokens", "cached_tokens", "cached_input_tokens"),
        *("prompt_cache_hit_tokens", "cached_content_token_count"),
    ),
    "cache_write_tokens": (
        *("cache_write_tokens", "cache_creation_input_tokens", "cache_write_input_tokens"),
    ),
    "reasoning_tokens": (
        *("reasoning_tokens", "output_reasoning_tokens", "thinking_tokens"),
        "thoughts_token_count",
    ),
}
"""What each is called elsewhere, with words set apart by `_`: `promptTokens` is `prompt_tokens`."""
_CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens", "cache_write_input_tokens")
"""Stand beside `input_tokens`, where that is their name for it; `prompt_tokens` has them in it."""
_BESIDE = {
    "input_tokens": ("tool_use_prompt_token_count",),
    "output_tokens": ("thoughts_token_count",),
}
"""Stand beside a count of ours."""
_DETAILS = (
    *("input_tokens_details", "output_tokens_details"),
    *("prompt_tokens_details", "completion_tokens_details"),
    *("input_token_details", "output_token_details", "details"),
)
_NESTED = (*_DETAILS, "tokens")
"""Objects with more counts in them."""
_IN_DETAILS = {
    "cache_read": "cache_read_tokens",
    "cache_creation": "cache_write_tokens",
    "reasoning": "reasoning_tokens",
}
_THEIRS = {key for keys in _SPELLINGS.values() for key in keys} - _SPELLINGS.keys()
_TOTAL = "total_tokens"
_DERIVED = (_TOTAL, "total_token_count", "prompt_cache_miss_tokens")
"""Follow from the others."""
_TIMES = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
"""Nanoseconds, which Ollama tells beside its counts."""
_KNOWN = _THEIRS | _SPELLINGS.keys() | {*_DERIVED, *_TIMES, *_BESIDE["input_tokens"]}
_HUMP = re.compile("(?<=[a-z])(?=[A-Z])")
_MOST = (1 << 40) - 1


def taken(given: Any) -> dict[str, int]:
    """Return the counts that a caller hands over.

    A vendor's, as an object of its client or as data, become ours; what else it tells that is no number is left out.
    Counts by other names are kept under them; beside a vendor's, those that are not zero.
    Raises: record-invalid naming what is no whole number of at least 0, or too large.
    """
    told = _plain(given)
    told = _spelled(told) if isinstance(told, dict) else told
    if not isinstance(told, dict):
        reason = f"token counts by name, or a vendor's usage, not {type(given).__name__}"
        raise RecordInvalid(path="usage", reason=reason)
    if _is_theirs(told):
        for path, count in _numbers(told):
            _refuse(path, _whole(count), _MOST)
        others = {name: n for name, n in told.items() if name not in _KNOWN and _is_whole(n)}
        return (counts(told) or {}) | {name: n for name, n in _own(others).items() if n}
    if isinstance(told.get("usage"), dict) and _is_theirs(told["usage"]):
        reason = "this is a whole reply, which has its counts in `usage`: give reply.usage"
        raise RecordInvalid(path="usage", reason=reason)
    return _own(told)


def _own(told: dict[Any, Any]) -> dict[str, int]:
    """Return counts by names of the caller's own, as they are. Raises: record-invalid: one is none."""
    for name, count in told.items():
        if not isinstance(name, str):
            raise RecordInvalid(path="usage", reason=f"a count is named by text, not {name!r}")
        values.check({name: 0}, "usage", references=False)
        _refuse(f"usage.{name}", count, values.INTEGER_LIMIT)
    return told


def _refuse(path: str, count: Any, most: int) -> None:
    if not _is_whole(count) or not 0 <= count <= most:
        raise RecordInvalid(path=path, reason=f"a token count is a whole number from 0 to {most}")


def _is_whole(count: Any) -> bool:
    return type(count) is int


def _whole(count: Any) -> Any:
    """Return a vendor's count as an integer: Cohere's client has 217.0."""
    return int(count) if type(count) is float and count.is_integer() else count


def _plain(given: Any) -> Any:
    """Return what an object of a vendor's client stands for."""
    dump = getattr(given, "model_dump", None)
    if callable(dump):
        given = dump()
    elif is_dataclass(given) and not isinstance(given, type):
        given = {each.name: getattr(given, each.name) for each in fields(given)}
    if isinstance(given, Mapping):
        return {key: _plain(value) for key, value in given.items()}
    return given


def _spelled(told: dict[Any, Any], *, inside: bool = True) -> dict[Any, Any]:
    """Return counts with the names that a vendor writes in one word spelled as others do.

    Args: inside: those in its objects too; deeper ones nobody reads.
    """
    found: dict[Any, Any] = {}
    for name, value in told.items():
        apart = _HUMP.sub("_", name).lower() if isinstance(name, str) else name
        known = apart != name and apart not in told and (apart in _KNOWN or apart in _NESTED)
        nested = inside and isinstance(value, dict)
        found[apart if known else name] = _spelled(value, inside=False) if nested else value
    return found


def _is_theirs(told: dict[Any, Any]) -> bool:
    """Say whether counts are as a vendor tells them, and not by names of the caller's own."""
    if any(told.get(key, 0) is None or isinstance(told.get(key), dict) for key in _DETAILS):
        return True
    tokens = told.get("tokens")
    if isinstance(tokens, dict) and not _SPELLINGS.keys().isdisjoint(tokens):
        return True  # As Cohere has them; a caller may have a count of that name.
    return not _THEIRS.isdisjoint(told) or (
        _TOTAL in told and not _SPELLINGS.keys().isdisjoint(told)
    )


def _numbers(told: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the counts of a vendor's that are read, by their paths."""
    known = _THEIRS | _SPELLINGS.keys()
    inner = [(f"usage.{key}", told[key]) for key in _NESTED if isinstance(told.get(key), dict)]
    for path, piece in (("usage", told), *inner):
        names = known if piece is told else known | _IN_DETAILS.keys()
        for name in sorted(names & piece.keys()):
            if piece[name] is not None:
                yield f"{path}.{name}", piece[name]


def counts(given: Any) -> dict[str, int] | None:
    """Return the counts that a usage object tells; None when it tells of no token at all.

    Counts beside `input_tokens` and `output_tokens` are told only where they are not zero.
    """
    if not isinstance(given, dict):
        return None
    given = _spelled(given)
    pieces = [given, *(given[key] for key in _NESTED if isinstance(given.get(key), dict))]
    found: dict[str, int] = {}
    for piece in pieces:
        for ours, theirs in _SPELLINGS.items():
            for key in theirs:
                _take(found, ours, piece.get(key))
    for piece in pieces[1:]:
        for key, ours in _IN_DETAILS.items():
            _take(found, ours, piece.get(key))
    if not any(found.values()):
        return None
    for ours, theirs in _BESIDE.items():
        beside = (*theirs, *_CACHED) if ours in given and ours == "input_tokens" else theirs
        more = sum(_count(given.get(key)) or 0 for key in beside)
        if more:
            found[ours] = found.get(ours, 0) + more
    return {key: n for key, n in found.items() if n or key in ("input_tokens", "output_tokens")}


def _take(found: dict[str, int], name: str, given: Any) -> None:
    if (count := _count(given)) is not None:
        found.setdefault(name, count)


def _count(given: Any) -> int | None:
    count = _whole(given)
    return count if _is_whole(count) and 0 <= count <= _MOST else None


def added(one: dict[str, int] | None, other: dict[str, int] | None) -> dict[str, int] | None:
    """Return the sum of counts, either of which may be none."""
    total = dict(one or {})
    for key, count in (other or {}).items():
        total[key] = total.get(key, 0) + count
    return total or None
