"""What the catalog should answer, found the dumb way: every log is folded whole, each time."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

from hypothesis import strategies as st

from ledger.errors import LedgerError, StoreCorrupt
from ledger.records import kinds, times
from ledger.views import History
from ledger.views.earlier import usage_of
from ledger.views.nodes import Node, model_of
from tests.views import build

# -- a conversation -----------------------------------------------------------------------------------


def row(history: History, now: datetime) -> dict[str, Any]:
    """What a listing should tell of a conversation."""
    nodes = list(history.nodes.values())
    started = [when for node in nodes if (when := sent(node)) is not None]
    ended = [when for node in nodes if (when := over(node)) is not None]
    models = Counter(model for node in nodes if (model := model_of(node)) is not None)
    usage: Counter[str] = Counter()
    for node in nodes:
        usage.update(tokens(node))
    return {
        "position": history.position,
        "turns": len(nodes),
        "heads": len(history.heads()),
        "states": dict(Counter(history.state(node.id, now=now) for node in nodes)),
        "models": dict(models),
        "first": min(started, default=None),
        "last": max([*started, *ended], default=None),
        "usage": {kind: number for kind, number in usage.items() if number},
        "head": history.head,
        "title": title(history),
        "preview": next((said for turn in history.order if (said := asked(history, turn))), None),
        "labels": labels(history, None),
        "unreadable": len(history.unreadable),
    }


def turn(history: History, name: str) -> dict[str, Any]:
    """What should be known of a turn."""
    node = history.nodes[name]
    return {
        "ordinal": node.ordinal,
        "parent": node.parent,
        "model": model_of(node),
        "tokens": tokens(node),
        "labels": labels(history, name),
        "questions": questions(history, name),
    }


def sent(node: Node) -> str | None:
    """When a turn was sent, as a record's time."""
    return _time(node, "created", node.record.at)


def month(node: Node) -> str | None:
    """The month in which a turn was used; None: it was imported from a source that does not tell."""
    source = value(node.record.source)
    imported = isinstance(source, dict) and isinstance(source.get("format"), str)
    when = sent(node)
    if when is None or (imported and _time(node, "created", "") is None):
        return None
    return when[:7]


def over(node: Node) -> str | None:
    """When a turn ended, as a record's time."""
    return None if node.ended is None else _time(node, "updated", node.ended.at)


def _time(node: Node, key: str, at: str) -> str | None:
    told = value(node.record.source)
    text = told.get(key) if isinstance(told, dict) else None
    found = (times.from_text(text) if isinstance(text, str) else None) or times.from_text(at)
    return None if found is None else times.to_text(found)


def tokens(node: Node) -> dict[str, int]:
    """What a turn used, as far as it is whole numbers."""
    try:
        return {kind: n for kind, n in usage_of(node).items() if type(n) is int and n}
    except StoreCorrupt:
        return {}


def asked(history: History, name: str) -> str:
    """The short text that was sent by a turn, on one line; these logs have no other."""
    inputs = value(history.nodes[name].record.inputs)
    texts = inputs.values() if isinstance(inputs, dict) else []
    return " ".join(str(text) for text in texts)


def title(history: History) -> str | None:
    """The last title that is text."""
    said = [value(entry.data) for entry in history.entries("ledger", "title")]
    return next((each for each in reversed(said) if isinstance(each, str)), None)


def labels(history: History, of: str | None) -> list[str]:
    """The labels of a turn, or of the conversation."""
    found: list[str] = []
    for entry in history.entries("ledger", "label"):
        said = value(entry.data)
        if entry.turn != of or not isinstance(said, dict):
            continue
        label, on = said.get("label"), said.get("on")
        if isinstance(label, str) and on is True and label not in found:
            found.append(label)
        if isinstance(label, str) and on is False and label in found:
            found.remove(label)
    return found


def questions(history: History, name: str) -> list[Any]:
    """What a turn asks and nobody has answered."""
    try:
        return history.unanswered(name)
    except StoreCorrupt:
        return []


def value(payload: Any) -> Any:
    """A payload's value, or None where it does not decode."""
    try:
        return kinds.payload(payload)
    except LedgerError:
        return None


# -- logs by chance -------------------------------------------------------------------------------------

_USAGE = st.one_of(
    st.dictionaries(st.sampled_from(["in", "out"]), st.integers(0, 9), max_size=2),
    st.sampled_from([None, 5, {"in": "x"}, {"in": True, "out": 2}, build.DAMAGED]),
)
_TEXTS = st.sampled_from(["a title", "b", "", 5, None, build.DAMAGED])
_LABELS = st.one_of(
    st.builds(
        lambda label, on: {"label": label, "on": on},
        st.sampled_from(["good", "bad", 5]),
        st.sampled_from([True, True, False, "yes"]),
    ),
    st.sampled_from([None, [], build.DAMAGED]),
)
_SOURCES = st.sampled_from(
    [
        {"format": "f", "conversation": "x", "created": "2025-01-01T00:00:00Z"},
        {"updated": "2027-01-01T00:00:00+01:00", "created": "never"},
        5,
        build.DAMAGED,
    ]
)
_said = st.one_of(
    st.builds(
        lambda name, usage, model: build.ended(name, "done", usage=usage, model=model),
        build.NAMES,
        _USAGE,
        st.sampled_from(["m1", None]),
    ),
    st.builds(lambda name: build.ended(name, "abandoned"), build.NAMES),
    st.builds(
        lambda name, usage: build.new("reply", turn=name, key="k", response={}, usage=usage),
        build.NAMES,
        _USAGE,
    ),
    st.builds(
        lambda name, i, usage: build.tool(name, "done", invocation=i, usage=usage),
        build.NAMES,
        st.sampled_from([1, 2]),
        _USAGE,
    ),
    st.builds(lambda text: build.new("entry", plugin="ledger", entry="title", data=text), _TEXTS),
    st.builds(
        lambda data, name: build.new("entry", plugin="ledger", entry="label", data=data, turn=name),
        _LABELS,
        st.one_of(st.none(), build.NAMES),
    ),
    st.builds(
        lambda name, source, lm: build.turn(name, "a", source=source, settings={"lm": lm}),
        build.NAMES,
        _SOURCES,
        st.sampled_from(["m1", "m3", 7]),
    ),
)


@st.composite
def logs(draw: st.DrawFn) -> list[Any]:
    """Any records in any order, as dicts and Structs."""
    records = [*draw(build.logs), *draw(st.lists(_said, max_size=12))]
    shuffled = draw(st.permutations(records)) if draw(st.booleans()) else records
    return draw(build.mixed(build.placed(shuffled)))
