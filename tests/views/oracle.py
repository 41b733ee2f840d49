"""Dumb twins of the views, over plain dicts, written from the contract's words.

Each scans the whole list of records again. Nothing here is shared with the code, and nothing is
fast. Where a twin and the code differ, the contract decides which of them is wrong.
"""

from datetime import datetime, timedelta
from typing import Any

import msgspec

Record = dict[str, Any]
DAMAGED = "<damaged>"


def value(record: Record, key: str) -> Any:
    """A payload; DAMAGED when its bytes do not decode."""
    found = record.get(key)
    return DAMAGED if isinstance(found, msgspec.Raw) else found


def known(record: Record, kind: str) -> bool:
    """Whether a record is one of this kind that this version understands."""
    if type(record.get("functai_conversation")) is not int or record["functai_conversation"] != 1:
        return False
    if record.get("kind") != kind:
        return False
    if kind == "ended" and record.get("state") not in ("done", "failed", "stopped", "abandoned"):
        return False
    if kind == "entry":
        return isinstance(record.get("plugin"), str) and isinstance(record.get("entry"), str)
    if kind == "program":
        return isinstance(record.get("version"), str)
    return isinstance(record.get("turn"), str)


def whole(number: Any, otherwise: int) -> int:
    """A whole number, or what an absent one reads as."""
    return number if type(number) is int else otherwise


def text(words: Any) -> str | None:
    """Text; anything else reads as absent."""
    return words if isinstance(words, str) else None


# -- the tree --------------------------------------------------------------------------------------


def start(records: list[Record], name: str) -> int | None:
    """Where the first `turn` record of a turn is in the list."""
    for i, record in enumerate(records):
        if known(record, "turn") and record["turn"] == name:
            return i
    return None


def order(records: list[Record]) -> list[str]:
    """All turns, each where it stands first."""
    names: list[str] = []
    for record in records:
        if known(record, "turn") and record["turn"] not in names:
            names.append(record["turn"])
    return names


def parent(records: list[Record], name: str) -> str | None:
    """The named parent, if it stands earlier in the log."""
    mine = start(records, name)
    assert mine is not None
    above = text(records[mine].get("parent"))
    theirs = start(records, above) if above is not None else None
    return above if theirs is not None and theirs < mine else None


def branch(records: list[Record], name: str) -> list[str]:
    """The branch of the parent, then the turn."""
    above = parent(records, name)
    return [*(branch(records, above) if above is not None else []), name]


def children(records: list[Record], name: str | None) -> list[str]:
    """The turns with this parent; of None: the roots."""
    return [other for other in order(records) if parent(records, other) == name]


def head(records: list[Record]) -> str | None:
    """From the end: the first record of a turn, or a move to a turn that stands before."""
    for i in range(len(records) - 1, -1, -1):
        record = records[i]
        if known(record, "turn") and start(records, record["turn"]) == i:
            return str(record["turn"])
        if known(record, "entry") and (record["plugin"], record["entry"]) == ("ledger", "cleared"):
            return None
        if known(record, "head"):
            begun = start(records, record["turn"])
            if begun is not None and begun < i:
                return str(record["turn"])
    return None


def latest(records: list[Record], name: str) -> str:
    """The last turn in the log whose branch goes through this one."""
    return [other for other in order(records) if name in branch(records, other)][-1]


def of_turn(records: list[Record], name: str, kind: str) -> list[tuple[int, Record]]:
    """A turn's records of one kind, with their places; those before it starts are skipped."""
    begun = start(records, name)
    assert begun is not None
    return [
        (i, record)
        for i, record in enumerate(records)
        if i > begun and known(record, kind) and record["turn"] == name
    ]


def end(records: list[Record], name: str) -> Record | None:
    """The first end of a turn."""
    ends = of_turn(records, name, "ended")
    return ends[0][1] if ends else None


def before_end(records: list[Record], name: str, kind: str) -> list[tuple[int, Record]]:
    """A turn's records of one kind up to its first end."""
    ends = of_turn(records, name, "ended")
    limit = ends[0][0] if ends else len(records)
    return [(i, record) for i, record in of_turn(records, name, kind) if i < limit]


def is_done(records: list[Record], name: str) -> bool:
    """Whether a turn has an answer."""
    ending = end(records, name)
    return ending is not None and ending["state"] == "done"


def reads(records: list[Record], name: str) -> list[str]:
    """The turns a merge reads: known ones that stand before it."""
    begun = start(records, name)
    assert begun is not None
    named = value(records[begun], "reads")
    found: list[str] = []
    for other in named if isinstance(named, list) else []:
        if not isinstance(other, str) or other in found:
            continue
        theirs = start(records, other)
        if theirs is not None and theirs < begun:
            found.append(other)
    return found


def heads(records: list[Record]) -> list[str]:
    """Take useless leaves away until none is left; then the leaves, newest first, unmerged ones."""
    kept = order(records)
    while True:
        useless = [
            name
            for name in kept
            if not any(parent(records, other) == name for other in kept)
            and end(records, name) is not None
            and not is_done(records, name)
        ]
        if not useless:
            break
        kept = [name for name in kept if name not in useless]
    leaves = [name for name in kept if not any(parent(records, o) == name for o in kept)]
    read = [r for name in order(records) if is_done(records, name) for r in reads(records, name)]
    return [name for name in reversed(leaves) if name not in read]


def merge_base(records: list[Record], a: str, b: str) -> str | None:
    """The last turn that both branches have."""
    common = [name for name in branch(records, a) if name in branch(records, b)]
    return common[-1] if common else None


def meeting_place(records: list[Record], turns: list[str]) -> str | None:
    """The shared parent, else the last common turn that is none of them."""
    parents = [parent(records, name) for name in turns]
    if all(above == parents[0] for above in parents):
        return parents[0]
    common = [
        name
        for name in branch(records, turns[0])
        if name not in turns and all(name in branch(records, other) for other in turns)
    ]
    return common[-1] if common else None


def entries(records: list[Record], plugin: str, kind: str, at: str | None) -> list[int]:
    """The places (from 1) of entries."""
    found = []
    for i, record in enumerate(records):
        if not known(record, "entry") or (record["plugin"], record["entry"]) != (plugin, kind):
            continue
        name = text(record.get("turn"))
        begun = start(records, name) if name is not None else None
        if name is not None and (begun is None or begun > i):
            continue
        if at is None or name is None or name in branch(records, at):
            found.append(i + 1)
    return found


def request(records: list[Record], request_id: str) -> str | None:
    """The first turn with this request id."""
    for name in order(records):
        begun = start(records, name)
        assert begun is not None
        if records[begun].get("request_id") == request_id:
            return name
    return None


# -- one turn --------------------------------------------------------------------------------------


def state(records: list[Record], name: str, now: datetime, dead: set[tuple[str, int]]) -> str:
    """The four rules, in order."""
    ending = end(records, name)
    if ending is not None:
        return str(ending["state"])
    waits = of_turn(records, name, "waiting")
    leases = of_turn(records, name, "lease")
    if waits and (not leases or waits[-1][0] > leases[-1][0]):
        return "waiting"
    if not leases:
        return "interrupted"
    last = leases[-1][1]
    if (last["holder"], whole(last["attempt"], 1)) in dead:
        return "interrupted"
    try:
        over = now - datetime.fromisoformat(last["until"]) > timedelta(0)
    except (TypeError, ValueError):
        over = True
    return "interrupted" if over else "running"


def named(record: Record) -> tuple[Any, int, str]:
    """How answers name a question, and tools a call."""
    plugin = text(record.get("plugin"))
    return text(record.get("site")), whole(record.get("invocation"), 0), plugin or "approval"


def unanswered(records: list[Record], name: str) -> list[Any]:
    """The questions; DAMAGED when they do not decode."""
    waits = of_turn(records, name, "waiting")
    if not waits or end(records, name) is not None:
        return []
    place, wait = waits[-1]
    asked = value(wait, "approvals")
    if asked == DAMAGED:
        return [DAMAGED]
    later = [named(r) for i, r in of_turn(records, name, "approval") if i > place]
    return [
        {**q, "key": f"{q.get('site') or ''}:{q.get('invocation')}"}
        for q in (asked if isinstance(asked, list) else [])
        if isinstance(q, dict) and named(q) not in later
    ]


def unfinished(records: list[Record], name: str) -> list[int]:
    """The places (from 1) of the tools that may have run: nothing known says what came of them."""
    tools = of_turn(records, name, "tool")
    return [
        i + 1
        for i, record in tools
        if record["state"] not in ("done", "given", "rerun")
        and not any(j > i and named(other)[:2] == named(record)[:2] for j, other in tools)
    ]


# -- the next turn ---------------------------------------------------------------------------------


def nearest_done(records: list[Record], name: str) -> str | None:
    """The last turn of a branch that has an answer."""
    answered = [other for other in branch(records, name) if is_done(records, other)]
    return answered[-1] if answered else None


def place(
    records: list[Record], at: str | None, sends: str, now: datetime, dead: set[tuple[str, int]]
) -> tuple[str, Any]:
    """(`parent`, a turn), (`waits_for`, a turn) or (`refusal`, running or waiting)."""
    name = at if at is not None else head(records)
    if name is None:
        return "parent", None
    doing = state(records, name, now, dead)
    if sends != "branch":
        if doing == "waiting":
            return "refusal", "waiting"
        if doing == "running":
            return ("waits_for", name) if sends == "queue" else ("refusal", "running")
    return "parent", nearest_done(records, name)


def own_saw(records: list[Record], name: str) -> Any:
    """The list that counts for a turn; None: not recorded; DAMAGED."""
    ending, waits = end(records, name), before_end(records, name, "waiting")
    begun = start(records, name)
    assert begun is not None
    counted = value(ending, "saw") if ending is not None else None
    if counted != DAMAGED and not isinstance(counted, list) and waits:
        counted = value(waits[-1][1], "saw")
    if counted == DAMAGED or (isinstance(counted, list) and counted):
        return counted
    own = value(records[begun], "saw")
    if own == DAMAGED or isinstance(own, list):
        return own
    return counted if isinstance(counted, list) else None


def saw(records: list[Record], name: str, seen: tuple[str, ...] = ()) -> Any:
    """The expanded entries; "cycle"; DAMAGED."""
    own = own_saw(records, name)
    if own is None:
        return []
    if own == DAMAGED:
        return DAMAGED
    before: Any = []
    if own and isinstance(own[0], dict) and list(own[0]) == ["saw_of"]:
        link = own[0]["saw_of"]
        if isinstance(link, str):
            if link == name or link in seen:
                return "cycle"
            readable = link in order(records) and isinstance(own_saw(records, link), list)
            before = saw(records, link, (*seen, name)) if readable else [{"saw_of": link}]
            if not isinstance(before, list):
                return before
    return before + [
        entry
        for entry in own
        if isinstance(entry, dict) and isinstance(entry.get("call"), str) and "saw_of" not in entry
    ]


def calls_tools(records: list[Record], name: str, ending: Record) -> bool:
    """Whether a tool of a turn gave something, by a record of it or by its messages."""
    if any(
        record.get("state") in ("done", "given") for _, record in of_turn(records, name, "tool")
    ):
        return True
    said = value(ending, "messages")
    return isinstance(said, list) and "'tool_call'" in str(said)


def shown(
    records: list[Record], at: str | None, last: int | None, without: list[str], steps: bool
) -> Any:
    """The entries that a turn under `at` saw, written out."""
    line = branch(records, at) if at is not None else []
    answered = [name for name in line if is_done(records, name)]
    if last is not None:
        answered = answered[len(answered) - min(last, len(answered)) :]
    found: list[Record] = []
    for name in answered:
        begun, ending = start(records, name), end(records, name)
        assert begun is not None
        assert ending is not None
        has = [
            field
            for fields in (value(records[begun], "inputs"), value(ending, "outputs"))
            if isinstance(fields, dict)
            for field in fields
        ]
        out = sorted({field for field in without if field in has})
        found.append({"call": name})
        if out:
            found[-1]["without"] = out
        elif steps and calls_tools(records, name, ending):
            found[-1]["steps"] = True
    return found


def recorded(
    records: list[Record], at: str | None, last: int | None, without: list[str], steps: bool
) -> Any:
    """The entries as the record holds them: short when they are what the last one saw, and it."""
    entries = shown(records, at, last, without, steps)
    if len(entries) < 2:
        return entries
    newest = entries[-1]["call"]
    is_known = isinstance(own_saw(records, newest), list)
    if is_known and saw(records, newest) == entries[:-1]:
        return [{"saw_of": newest}, entries[-1]]
    return entries


# -- where answers come from -----------------------------------------------------------------------


def lenient_saw(records: list[Record], name: str) -> list[str]:
    """The ids that a turn saw, as far as its links can be followed at all."""
    ids: list[str] = []
    link: Any = name
    met: list[str] = []
    while isinstance(link, str) and link not in met:
        met.append(link)
        own = own_saw(records, link) if link in order(records) else None
        if not isinstance(own, list):
            if link not in order(records):
                ids.append(link)
            break
        first = own[0] if own and isinstance(own[0], dict) else {}
        ids += [
            entry["call"]
            for entry in own
            if isinstance(entry, dict)
            and isinstance(entry.get("call"), str)
            and "saw_of" not in entry
        ]
        link = first.get("saw_of") if list(first) == ["saw_of"] else None
    return ids


def uses(records: list[Record], name: str) -> set[str]:
    """What a turn's answer rests on directly."""
    return {*lenient_saw(records, name), *reads(records, name)}


def rests_on(records: list[Record], name: str) -> dict[str, int]:
    """All that an answer rests on, known or not, each with how many steps away it is."""
    away = {name: 0}
    steps = 0
    while True:
        edge = [other for other, far in away.items() if far == steps and other in order(records)]
        steps += 1
        fresh = {used for other in edge for used in uses(records, other)} - set(away)
        if not fresh:
            del away[name]
            return away
        away.update(dict.fromkeys(fresh, steps))


def influenced(records: list[Record], name: str) -> list[str]:
    """The turns that rest on this one."""
    return [other for other in order(records) if other != name and name in rests_on(records, other)]
