"""MessagePack of LangGraph as plain values: nothing that it names is imported, made or called. Pure.

Extensions hold a class and what it is made of. They come as `{"class": "<module>.<name>", "value": ...}`,
and one that is not known as `{"extension": <code>, "base64": ...}`.
"""

from __future__ import annotations

import base64
from typing import Any

import msgspec

_OF_A_CLASS = range(6)
"""A constructor with one argument, with several, with named ones; a method; two kinds of pydantic."""
_SNAPSHOT = 7
"""A value that stands for itself."""


def loads(data: bytes) -> Any:
    """Return a value of dicts, lists, texts, numbers and None.

    Raises: ValueError: it is no MessagePack, or nested too deep.
    """
    try:
        return _plain(_decoded(data))
    except (msgspec.MsgspecError, RecursionError, OverflowError, TypeError) as error:
        raise ValueError(str(error)) from error


def _decoded(data: bytes | memoryview) -> Any:
    return msgspec.msgpack.decode(data, ext_hook=_extension)


def _extension(code: int, data: memoryview) -> Any:
    if code == _SNAPSHOT:
        return _decoded(data)
    inner = _decoded(data) if code in _OF_A_CLASS else None
    if isinstance(inner, list | tuple) and len(inner) >= 3:
        return {"class": f"{inner[0]}.{inner[1]}", "value": inner[2]}
    return {"extension": code, "base64": base64.b64encode(data).decode()}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, bytes | memoryview):
        return {"base64": base64.b64encode(value).decode()}
    return str(value)
