"""Whether JSON data is of a vendor's type: the small part of Python's typing that those types use.

Stricter than pydantic, which takes an iterable on trust until somebody walks it, and passes over keys
that a typed dict does not name.
"""

import types
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from typing_extensions import is_typeddict

_LISTS = (list, Iterable, Sequence)
_MARKS = (Annotated, Required, NotRequired)


def fits(value: Any, kind: Any) -> bool:
    """Say whether JSON data is of a type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in (Any, object):
        return True
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in arguments)
    if origin is Literal:
        return value in arguments
    if origin in _MARKS:
        return fits(value, arguments[0])
    if origin in _LISTS or getattr(origin, "__name__", "") == "SequenceNotStr":
        return isinstance(value, list) and all(fits(one, arguments[0]) for one in value)
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(fits(one, arguments[1]) for one in value.values())
    if is_typeddict(kind):
        return isinstance(value, dict) and _has_keys(value, _hints(kind))
    return isinstance(value, (int, float) if kind is float else kind)


def _has_keys(value: dict, hints: dict) -> bool:
    needed = {key for key, kind in hints.items() if get_origin(kind) is Required}
    return needed <= value.keys() <= hints.keys() and all(
        fits(one, hints[key]) for key, one in value.items()
    )


@cache
def _hints(kind: Any) -> dict:
    return get_type_hints(kind, include_extras=True)
