"""A tree of turns as a Mermaid flowchart, for pages that draw such: Markdown on code hosts, wikis, notebooks.

Whatever a turn says is written so that it is text of its own box and nothing else: in quotes, and of it only
letters, digits, blanks and a few signs as they are; every other character is spelled as Mermaid's entity of its
number (`#35;`). Letters that Mermaid itself uses to mark entities are spelled so too. Ids and classes are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ledger.views.text import one_line

_WIDTH = 60
"""Of a line in a box, in characters."""
_PLAIN = frozenset(" .,!?()/+=")
_MERMAIDS_OWN = frozenset("ﬂß°¶")
"""By these Mermaid marks, inside, what was an entity."""
_LOOKS = {
    "running": "stroke-dasharray:6 3",
    "waiting": "stroke:#b58900,stroke-width:2px",
    "interrupted": "stroke:#b58900,stroke-dasharray:2 3",
    "failed": "stroke:#dc322f,stroke-width:2px",
    "stopped": "stroke:#dc322f,stroke-dasharray:6 3",
    "abandoned": "stroke:#93a1a1,stroke-dasharray:2 3",
    "erased": "stroke:#93a1a1,color:#93a1a1,stroke-dasharray:2 3",
    "head": "stroke-width:4px",
}
"""How a box looks by the state of its turn (one that is done: as Mermaid draws it), and that of the head."""


class Drawn(msgspec.Struct, frozen=True):
    """One turn of a tree, as it is drawn: every text is one printable line, and not more than is seen of it."""

    ordinal: int
    parent: int | None
    """By ordinal, as are all turns here."""
    asked: str
    answered: str | None
    state: str
    """`erased` of one that was taken out."""
    model: str | None
    reads: list[int]
    """What a merge was made from."""
    noted: list[str]
    """Its ratings and labels, in short."""
    is_head: bool


def flowchart(turns: Iterable[Drawn]) -> str:
    """Return turns as the text of a Mermaid flowchart, first turns at the top."""
    drawn = list(turns)
    lines = ["flowchart TD", *map(_box, drawn), *_edges(drawn)]
    for name, look in _LOOKS.items():
        of = [f"t{t.ordinal}" for t in drawn if t.state == name or (t.is_head and name == "head")]
        if of:
            lines += [f"classDef {name} {look}", f"class {','.join(of)} {name}"]
    return "\n    ".join(lines)


def _box(turn: Drawn) -> str:
    told = [f"{turn.ordinal} · {turn.asked}"]
    told += [] if turn.answered is None else [f"→ {turn.answered}"]
    marks = [] if turn.state == "done" else [f"[{turn.state}]"]
    marks += [f"({turn.model})"] if turn.model else []
    marks += [*turn.noted, *["◂ head"] * turn.is_head]
    told += [" ".join(marks)] if marks else []
    text = "<br/>".join(_escaped(one_line(line, _WIDTH)) for line in told)
    return f't{turn.ordinal}["{text}"]'


def _edges(turns: list[Drawn]) -> Iterator[str]:
    for turn in turns:
        if turn.parent is not None:
            yield f"t{turn.parent} --> t{turn.ordinal}"
        for read in turn.reads:
            yield f"t{read} -. merged .-> t{turn.ordinal}"


def _escaped(text: str) -> str:
    return "".join(c if _is_plain(c) else f"#{ord(c)};" for c in text)


def _is_plain(char: str) -> bool:
    return char in _PLAIN or (char.isalnum() and char not in _MERMAIDS_OWN)
