"""JSON that is nested deeper than the interpreter's stack: replies that stand in each other. Pure."""

from __future__ import annotations

import json
import re
from json import JSONDecodeError
from typing import Any

_SPACE = re.compile(r"[ \t\n\r]*")
_FLAT = json.JSONDecoder()
_MISSING = object()


def loads(text: str) -> Any:
    """Return what `json.loads` does, to any depth. Raises: ValueError: it is no JSON."""
    try:
        return json.loads(text)
    except RecursionError:
        return _Reader(text).value()


class _Reader:
    """Reads with a stack of its own: the containers that are open, each with the key it waits at."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._open: list[Any] = []
        self._keys: list[Any] = []

    def value(self) -> Any:
        done = self._begun()
        while self._open:
            if done is not _MISSING:
                self._put(done)
                mark = self._next()
                self._at += 1
                if mark == ("]" if isinstance(self._open[-1], list) else "}"):
                    done = self._closed()
                    continue
                if mark != ",":
                    self._at -= 1
                    raise JSONDecodeError("Expecting ',' delimiter", self._text, self._at)
                if isinstance(self._open[-1], dict):
                    self._key()
            done = self._begun()
        if self._next():
            raise JSONDecodeError("Extra data", self._text, self._at)
        return done

    def _next(self) -> str:
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._text[self._at : self._at + 1]

    def _begun(self) -> Any:
        """Return the next value; a container that has something in it is opened instead."""
        mark = self._next()
        if mark not in ("[", "{"):
            return self._flat()
        self._at += 1
        self._open.append([] if mark == "[" else {})
        self._keys.append(None)
        if self._next() == ("]" if mark == "[" else "}"):
            self._at += 1
            return self._closed()
        if mark == "{":
            self._key()
        return _MISSING

    def _flat(self) -> Any:
        """Return the value that begins here and holds no other."""
        value, self._at = _FLAT.raw_decode(self._text, self._at)
        return value

    def _key(self) -> None:
        if self._next() != '"':
            raise JSONDecodeError("Expecting property name", self._text, self._at)
        self._keys[-1] = self._flat()
        if self._next() != ":":
            raise JSONDecodeError("Expecting ':' delimiter", self._text, self._at)
        self._at += 1

    def _closed(self) -> Any:
        self._keys.pop()
        return self._open.pop()

    def _put(self, value: Any) -> None:
        if isinstance(self._open[-1], list):
            self._open[-1].append(value)
        else:
            self._open[-1][self._keys[-1]] = value
