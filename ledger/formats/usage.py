"""Counts of tokens as every vendor spells them, in one spelling. Pure.

`input_tokens` is all that a model read, of which `cache_read_tokens` and `cache_write_tokens`;
`output_tokens` all that it wrote, of which `reasoning_tokens`. Anthropic alone counts what it read
from a cache, or wrote to it, beside the input: it is added to it.
"""

from __future__ import annotations

from typing import Any

from ledger.formats import tables

_SPELLINGS = {
    "input_tokens": ("input_tokens", "prompt_tokens", "request_tokens", "prompt_eval_count"),
    "output_tokens": ("output_tokens", "completion_tokens", "response_tokens", "eval_count"),
    "cache_read_tokens": ("cache_read_tokens", "cache_read_input_tokens", "cached_tokens"),
    "cache_write_tokens": ("cache_write_tokens", "cache_creation_input_tokens"),
    "reasoning_tokens": ("reasoning_tokens", "output_reasoning_tokens"),
}
_BESIDE_THE_INPUT = ("cache_read_input_tokens", "cache_creation_input_tokens")
_DETAILS = (
    *("input_tokens_details", "output_tokens_details"),
    *("prompt_tokens_details", "completion_tokens_details"),
    *("input_token_details", "output_token_details", "details"),
)
_IN_DETAILS = {
    "cache_read": "cache_read_tokens",
    "cache_creation": "cache_write_tokens",
    "reasoning": "reasoning_tokens",
}


def counts(given: Any) -> dict[str, int] | None:
    """Return the counts that a usage object tells; None when it tells of no token at all.

    Counts beside `input_tokens` and `output_tokens` are told only where they are not zero.
    """
    if not isinstance(given, dict):
        return None
    pieces = [given, *(given[key] for key in _DETAILS if isinstance(given.get(key), dict))]
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
    if "input_tokens" in found:
        found["input_tokens"] += sum(_count(given.get(key)) or 0 for key in _BESIDE_THE_INPUT)
    return {key: n for key, n in found.items() if n or key in ("input_tokens", "output_tokens")}


def _take(found: dict[str, int], name: str, given: Any) -> None:
    if (count := _count(given)) is not None:
        found.setdefault(name, count)


def _count(given: Any) -> int | None:
    whole = isinstance(given, int) and not isinstance(given, bool)
    return given if whole and 0 <= given < 1 << 40 else None


def of_row(row: dict[str, Any]) -> dict[str, int] | None:
    """Return the counts of a row with columns for input, output, and JSON for the rest."""
    rest = tables.value(row.get("token_details"))
    told = {key: row.get(key) for key in ("input_tokens", "output_tokens")}
    return counts({**(rest if isinstance(rest, dict) else {}), **told})


def added(one: dict[str, int] | None, other: dict[str, int] | None) -> dict[str, int] | None:
    """Return the sum of counts, either of which may be none."""
    total = dict(one or {})
    for key, count in (other or {}).items():
        total[key] = total.get(key, 0) + count
    return total or None
