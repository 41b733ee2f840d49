"""Text to be searched, and what is searched for in it. Pure.

A word is a run of letters, digits and marks; case and accents do not count. Scripts that are written without
spaces have no words to be found by, so there each character is one: `包裹` is found in `收到包裹了` as two
characters side by side. Korean is written with spaces, but its endings stick to words, so it is taken the same
way. For that a `JOIN` is put between such characters, in what is kept and in what is asked for, and taken out
of what is shown. SQLite knows the accents of Latin letters alone, so letters and accents are kept apart, and joined
again in what is shown.

A query is words, all of which have to stand there; `"several words"` have to stand so; `parc*` begins so. All
else in it is no syntax but text: what SQLite is asked for is made here of quoted words alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ledger.records import values
from ledger.records.values import REFERENCE

JOIN = "\x1f"
"""Stands between characters each of which is a word; no letter, so it ends one."""
BEGIN, END = "\x02", "\x03"
"""Stand around what was found, in what the index gives back."""
TOKENS = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
"""What SQLite takes for a word: marks too, without which the scripts of India fall apart."""

_ALONE = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u0f00-\u0fff"  # Tibetan
    "\u1000-\u109f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "\u3040-\u30ff\u31f0-\u31ff"  # Japanese
    "\u3100-\u312f\u31a0-\u31bf"  # Bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"  # Korean
)
_SPLIT = re.compile(f"(?<=[{_ALONE}])(?=\\w)|(?<=\\w)(?=[{_ALONE}])")
_ACCENTS = frozenset(
    "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u0309\u030a\u030b\u030c\u030f"
    "\u0311\u031b\u0323\u0324\u0325\u0326\u0327\u0328\u032d\u032e\u0330\u0331"
)
"""Those that SQLite leaves off; others are a part of their word."""
_LONE = re.compile("(?<![^\\W_])(?<![\u0300-\u036f])[\u0300-\u036f]+")
"""Accents on no letter. To SQLite they are a word of no letter."""
_OURS = str.maketrans({"\0": " ", JOIN: " ", BEGIN: " ", END: " "})
_PART = re.compile(r'"([^"]*)"?|([^\s"]+)')
_TEXTS = ("text", "reasoning")
"""The types of the parts of messages whose `content` is text that somebody said."""


# -- what is kept -----------------------------------------------------------------------------------


def in_value(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value, in order: of an attachment its name; no names of fields."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            named = item.get(REFERENCE) if values.is_reference(dict(item)) else None
            stack.extend(
                [named.get("name")] if named is not None else reversed(list(item.values()))
            )
        elif isinstance(item, list):
            stack.extend(reversed(item))
        elif type(item) in (int, float):
            yield str(item)


def in_messages(messages: Iterable[Any]) -> Iterator[str]:
    """Yield what somebody says in messages; what tools are given and give is left out."""
    for message in messages:
        parts = message.get("parts") if isinstance(message, dict) else None
        for part in parts if isinstance(parts, list) else []:
            said = part.get("content") if isinstance(part, dict) else None
            if isinstance(said, str) and part.get("type") in _TEXTS:
                yield said


def joined(texts: Iterable[str]) -> str:
    """Return texts as one, each that says the same as an earlier one left out."""
    return "\n\n".join(dict.fromkeys(filter(None, texts)))


def spelled(text: str) -> str:
    """Return a text as the index keeps it."""
    whole = text.encode(errors="replace").decode() if not text.isascii() else text
    if not whole.isascii():
        whole = _LONE.sub("", unicodedata.normalize("NFC", whole).translate(_APART))
    whole = whole.translate(_OURS)
    return whole if whole.isascii() else _SPLIT.sub(JOIN, whole)


class _Apart(dict[int, str]):
    """What each character is kept as: a letter with accents as both."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        parts = unicodedata.normalize("NFD", char)
        self[code] = parts if _ACCENTS.issuperset(parts[1:]) else char
        return self[code]


_APART = _Apart()


# -- what is asked for ---------------------------------------------------------------------------------


def match(query: str) -> str:
    """Return what to ask the index for; empty: there is no word in a query, so nothing is found by it."""
    return " AND ".join(f'"{said}"' + (" *" if begins else "") for said, begins in _parts(query))


def phrases(query: str) -> list[Phrase]:
    """Return the words that have to stand side by side, for an index that cuts texts by `words`."""
    cut = (Phrase(words(said), begins) for said, begins in _parts(query))
    return [phrase for phrase in cut if phrase.words]


class Phrase(NamedTuple):
    """Words that have to stand side by side."""

    words: list[str]
    begins: bool
    """Whether any word that begins as the last one does."""


def _parts(query: str) -> Iterator[tuple[str, bool]]:
    for found in _PART.finditer(query):
        exact, word = found.groups()
        begins = word is not None and word.endswith("*")
        said = spelled(exact if word is None else word)
        if any(map(_is_letter, said)):
            yield said, begins


def _is_letter(char: str) -> bool:
    kind = unicodedata.category(char)
    return kind[0] in "LN" or kind in ("Co", "Mn", "Mc")


# -- words, where SQLite does not cut them -----------------------------------------------------------


def words(said: str) -> list[str]:
    """Return the words of a text that was `spelled`, as `TOKENS` has SQLite take them; long ones cut."""
    return [word[:_LONGEST] for word in said.translate(_FOLDED).split(" ") if word]


class _Folded(dict[int, str]):
    """What each character is to a word: its letter without case and accent, nothing, or the end of the word."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = _folded(char) if _is_letter(char) else " "
        return self[code]


def _folded(char: str) -> str:
    low = folded if len(folded := char.casefold()) == 1 else char.lower()
    bare = [part for part in unicodedata.normalize("NFD", low) if part not in _ACCENTS]
    return unicodedata.normalize("NFC", "".join(bare))


_FOLDED = _Folded()
_LONGEST = 500
"""Of longer words so many characters count: PostgreSQL takes 2046 bytes."""


# -- what is shown ---------------------------------------------------------------------------------


class Shown(NamedTuple):
    """A piece of text with what was found in it."""

    text: str
    matches: list[tuple[int, int]]
    """Where: the first character, and the one after the last."""


def shown(piece: str) -> Shown:
    """Return a piece that the index gave, in which `BEGIN` and `END` stand around what was found."""
    text, begun = "", 0
    matches: list[tuple[int, int]] = []
    for part in re.split(f"([{BEGIN}{END}])", piece.replace(JOIN, "")):
        if part == BEGIN:
            begun = len(text)
        elif part == END:
            if matches and matches[-1][1] == begun:
                begun = matches.pop()[0]  # Characters side by side, each found as a word.
            matches.append((begun, len(text)))
        else:
            text += unicodedata.normalize("NFC", part)
    return Shown(text, matches)
