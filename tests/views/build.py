"""Builders of records for the tests of views, and Hypothesis strategies of whole logs."""

from datetime import UTC, datetime
from typing import Any

import msgspec
from hypothesis import strategies as st

from ledger.records import codec, kinds

Record = dict[str, Any]

AT = "2026-01-01T00:00:00.000000Z"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PAST = "2026-01-01T11:59:59.000000Z"
AHEAD = "2026-01-01T12:00:30.000000Z"
DAMAGED = msgspec.Raw(b'{"broken')
"""A payload whose bytes do not decode."""


def new(kind: str, **keys: Any) -> Record:
    """A record as a store hands it out, but for its place."""
    return {"functai_conversation": 1, "kind": kind, "at": AT, **keys}


def turn(name: Any, parent: Any = None, **keys: Any) -> Record:
    """A `turn` record."""
    return new("turn", turn=name, parent=parent, program="p", **{"inputs": {}, **keys})


def lease(name: Any, until: Any = PAST, holder: str = "h", attempt: Any = 1) -> Record:
    """A `lease` record; by default one that ran out."""
    return new("lease", turn=name, holder=holder, until=until, attempt=attempt)


def ended(name: Any, state: str = "done", **keys: Any) -> Record:
    """An `ended` record."""
    return new("ended", turn=name, state=state, **{"outputs": {}, **keys})


def waiting(name: Any, approvals: Any = (), **keys: Any) -> Record:
    """A `waiting` record."""
    asked = list(approvals) if isinstance(approvals, tuple) else approvals
    return new("waiting", turn=name, approvals=asked, attempt=1, **keys)


def question(site: Any = "p#1", invocation: Any = 1, **keys: Any) -> Record:
    """One question of a `waiting` record."""
    return {"site": site, "invocation": invocation, "name": "pay", "input": {}, **keys}


def approval(name: Any, site: Any = "p#1", invocation: Any = 1, **keys: Any) -> Record:
    """A person's answer."""
    return new("approval", turn=name, site=site, invocation=invocation, verdict="yes", **keys)


def tool(
    turn: Any, state: str = "started", site: Any = "p#1", invocation: Any = 1, **keys: Any
) -> Record:
    """A `tool` record."""
    named = {"name": "pay", **keys}
    return new("tool", turn=turn, site=site, invocation=invocation, state=state, **named)


def done(name: str, parent: str | None = None, **keys: Any) -> list[Record]:
    """The three records of a turn that ended well; `outputs` goes to its end, the rest to its start."""
    outputs = keys.pop("outputs", {})
    return [turn(name, parent, **keys), lease(name), ended(name, outputs=outputs)]


def line(*names: str) -> list[Record]:
    """Done turns, each continuing the one before."""
    records: list[Record] = []
    for parent, name in zip((None, *names), names, strict=False):
        records += done(name, parent)
    return records


def placed(records: list[Record]) -> list[Record]:
    """The records as a store numbers them."""
    return [{**record, "seq": seq} for seq, record in enumerate(records, 1)]


def as_struct(record: Record, seq: int) -> kinds.Recorded:
    """The record as our own stores read it from bytes, its payloads undecoded."""
    body = {key: value for key, value in record.items() if value is not DAMAGED}
    read = codec.decode_struct(msgspec.json.encode(body), seq)
    for key, value in record.items():
        if value is DAMAGED and isinstance(getattr(read, key, None), msgspec.Raw):
            setattr(read, key, DAMAGED)
    return read


# -- logs by chance --------------------------------------------------------------------------------

POOL = ["a", "b", "c", "d", "e", "f"]
NAMES = st.sampled_from([*POOL, "nobody"])
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [5, "x", {}, [], None, True, DAMAGED, [None, 3, {"call": 4}], [[]]]
)

_entries = st.lists(
    st.one_of(
        st.builds(lambda t: {"call": t}, NAMES),
        st.builds(lambda t: {"saw_of": t}, NAMES),
        st.builds(lambda t: {"call": t, "without": ["result"]}, NAMES),
        st.builds(lambda t, u: {"call": t, "saw_of": u}, NAMES, NAMES),
    ),
    max_size=3,
)


def _keys(**optional: Any) -> st.SearchStrategy[Record]:
    return st.fixed_dictionaries({}, optional=optional)


_saw = st.one_of(_entries, ODD)
_values: st.SearchStrategy[Any] = st.one_of(st.just({"m": 1, "result": 2}), st.just({}), ODD)
_turns = st.builds(
    lambda name, parent, keys: turn(name, parent, **keys),
    NAMES,
    st.one_of(NAMES, st.none(), ODD),
    _keys(
        saw=_saw,
        inputs=_values,
        reads=st.one_of(st.lists(NAMES, max_size=3), ODD),
        request_id=st.sampled_from(["r1", "r2", 7]),
        made_by=ODD,
    ),
)
_ends = st.builds(
    lambda name, state, keys: ended(name, state, **keys),
    NAMES,
    st.sampled_from(["done", "done", "done", "failed", "stopped", "abandoned", "odd"]),
    _keys(saw=_saw, outputs=_values, model=st.sampled_from(["m1", "m2"])),
)
_sites = st.sampled_from(["p#1", "p#2", None, 5])
_invocations = st.sampled_from([1, 2, None, "x", True])
_plugins = _keys(plugin=st.sampled_from(["approval", "other", None, 3]))
_questions = st.builds(lambda s, i, keys: question(s, i, **keys), _sites, _invocations, _plugins)
_others = st.one_of(
    st.builds(
        lease,
        NAMES,
        until=st.sampled_from([PAST, AHEAD, "never", 5, None]),
        holder=st.sampled_from(["h", "k"]),
        attempt=st.sampled_from([1, 2, 3, -1, "x", True]),
    ),
    st.builds(
        lambda name, asked, keys: waiting(name, asked, **keys),
        NAMES,
        st.one_of(st.lists(_questions, max_size=3), ODD),
        _keys(saw=_saw),
    ),
    st.builds(
        lambda n, s, i, keys: approval(n, s, i, **keys), NAMES, _sites, _invocations, _plugins
    ),
    st.builds(
        tool,
        NAMES,
        st.sampled_from(["started", "done", "given", "rerun", "odd"]),
        _sites,
        _invocations,
    ),
    st.builds(lambda name: new("head", turn=name), NAMES),
    st.builds(lambda name: new("stop", turn=name), NAMES),
    st.builds(
        lambda plugin, name: new("entry", plugin=plugin, entry="title", data="t", turn=name),
        st.sampled_from(["x", "y"]),
        st.one_of(NAMES, st.none()),
    ),
    st.builds(lambda: new("entry", plugin="ledger", entry="cleared", data=None)),
    st.builds(
        lambda name, number: note(name, number), st.one_of(NAMES, st.none()), st.integers(0, 2)
    ),
    st.builds(lambda version: new("program", version=version), st.sampled_from(["v1", "v2"])),
    st.sampled_from(
        [
            {"kind": "unreadable", "seq": 1},
            {},
            {"kind": "turn", "turn": "a"},
            {"functai_conversation": 2, "kind": "turn", "turn": "a"},
            new("invented", turn="a"),
            new("turn"),
            new("ended", turn=["a"], state="done"),
        ]
    ),
)


def note(name: str | None, number: int) -> Record:
    """Make a rating, a label, or instructions of a turn."""
    data: list[tuple[str, Any]] = [
        ("rating", {"value": True, "by": None, "why": None}),
        ("label", {"label": "odd", "on": True}),
        ("instructions", [{"role": "system", "parts": [{"type": "text", "text": "be brief"}]}]),
    ]
    kind, value = data[number]
    return new("entry", plugin="ledger", entry=kind, data=value, turn=name)


hostile_logs = st.lists(st.one_of(_turns, _ends, _others), max_size=25).map(placed)
"""Any records in any order: duplicates, unknown names, cycles, wrong types, damage."""


@st.composite
def honest_logs(draw: st.DrawFn) -> list[Record]:
    """Turns that start after their parents and end at most once, some merged, in log order."""
    records: list[Record] = []
    answered: list[str] = []
    for i in range(draw(st.integers(0, 9))):
        name = f"t{i}"
        parent = draw(st.sampled_from([None, *answered[-3:]]))
        keys: Record = {"inputs": {"m": i}}
        if draw(st.integers(0, 4)) == 0 and answered:
            keys["reads"] = draw(st.lists(st.sampled_from(answered), unique=True, max_size=2))
        records += [turn(name, parent, **keys), lease(name, draw(st.sampled_from([PAST, AHEAD])))]
        state = draw(
            st.sampled_from(["done", "done", "done", "failed", "abandoned", None, "waiting"])
        )
        if state == "waiting":
            records.append(waiting(name, (question(),)))
        elif state is not None:
            records.append(ended(name, state, outputs={"result": i}))
        if state == "done":
            answered.append(name)
    return placed(records)


logs = st.one_of(hostile_logs, honest_logs())


@st.composite
def mixed(draw: st.DrawFn, records: list[Record]) -> list[Any]:
    """The same records, some as dicts and some as Structs."""
    return [
        as_struct(record, seq) if draw(st.booleans()) else record
        for seq, record in enumerate(records, 1)
    ]
