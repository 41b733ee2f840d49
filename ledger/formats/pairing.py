"""Calls and their results kept together, and ids that a provider takes. Pure.

Providers want the results of a reply's calls right behind it, each call answered once. A result
belongs to the latest reply before it that called under its id; of such calls in one reply, to the
first that has none yet. What stands otherwise is mended, and each mending is a loss that is told: a
result that stands elsewhere is moved to its call, a call without a result is given one that says so,
a result without a call is left out. They go right behind the message that calls, since what the assistant
says in messages after that it said later; or to the other results of its reply, where these have to come first.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter, deque
from dataclasses import replace

from ledger.formats.converting import MISSING, Line, Losses, Placed, is_missing
from ledger.formats.converting import Ids as Ids
from ledger.records.canonical import canonical

_Call = tuple[int, int]
"""Which line, which part of it."""
_Key = tuple[int, int, int]
_SPEAKER = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UNSAFE_RUN = re.compile(r"[^A-Za-z0-9_-]+")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


def paired(given: list[Line], ids: Ids, losses: Losses) -> list[Line]:
    """Return the lines with every result right behind its call, under ids that are taken."""
    answers, ends, spelled = _answers(given), _ends(given), _spelled(given, ids)
    behind = _behind(given, answers, ends)
    put: list[tuple[_Key, Line]] = [
        ((at, 0, 0), _with_calls(line, at, spelled))
        for at, line in enumerate(given)
        if line.response is None
    ]
    for (at, k), id in spelled.items():
        call, answer = given[at].parts[k], answers.get((at, k))
        if answer is None:
            losses.of(call, "the call has no result; one that says so is put in")
            put.append(((behind[at], 2, len(put)), _missing(call, id)))
        elif answer > ends[at]:
            losses.add(given[answer].parts[0].path, "the result is moved to its call")
            put.append(((behind[at], 1, answer), _with_id(given[answer], id)))
        else:
            put.append(((answer, 0, 0), _with_id(given[answer], id)))
    for at in sorted({at for at, line in enumerate(given) if line.response} - {*answers.values()}):
        losses.add(given[at].parts[0].path, "the result has no call and is left out")
    return [line for _, line in sorted(put, key=lambda one: one[0])]


def joined(given: list[Line]) -> list[Line]:
    """Return paired lines with a reply that calls as one message, so that its results follow it."""
    out: list[Line] = []
    for line in given:
        last = out[-1] if out else line
        if out and last.role == line.role == "assistant" and _calls(last):
            parts, only = [*last.parts, *line.parts], {**line.only, **last.only}
            ended = line.finish_reason or last.finish_reason
            out[-1] = replace(last, parts=parts, finish_reason=ended, only=only)
        else:
            out.append(line)
    return out


def respelled(id: str, occurrence: int, ids: Ids) -> str:
    """Return an id as a provider takes it: the same one always gives the same.

    An id that is taken stays as it is; any other is its own letters and a hash of itself.
    """
    fine = id != "" and len(id) <= ids.longest and not (ids.plain and _UNSAFE.search(id))
    if fine and occurrence == 1:
        return id
    digest = hashlib.sha256(canonical([id, occurrence])).hexdigest()[:16]
    return f"{_UNSAFE.sub('_', id)[:20] or 'call'}_{digest}"


def tool_name(placed: Placed, losses: Losses) -> str:
    """Return a tool's name as providers take it; a change is told."""
    name = str(placed.part["name"])
    plain = _UNSAFE.sub("_", name)[:64] or "_"
    if plain != name:
        losses.of(placed, "the tool's name has signs that are not taken; they are said as _")
    return plain


def speaker(line: Line, losses: Losses) -> str | None:
    """Return the name of who speaks as providers take it; a change is told."""
    if line.name is None or _SPEAKER.fullmatch(line.name):
        return line.name
    bare = (
        one for one in unicodedata.normalize("NFKD", line.name) if not unicodedata.combining(one)
    )
    plain = _UNSAFE_RUN.sub("_", "".join(bare)).strip("_")[:64]
    told = "it is said as its letters" if plain else "it is left out"
    losses.add(line.path, f"who speaks has a name with signs that are not taken; {told}")
    return plain or None


def _answers(given: list[Line]) -> dict[_Call, int]:
    """Return for each call at which line its result stands.

    A reply that calls under an id again closes that id's earlier calls: what follows answers the new. A result that
    was put in, and recorded as if a tool had said it, makes way for a later one.
    """
    waiting: dict[str, tuple[int, deque[_Call]]] = {}
    put_in: dict[str, _Call] = {}
    answers = {}
    begun = 0
    for at, line in enumerate(given):
        if at == 0 or given[at - 1].role != "assistant":
            begun = at
        for k, placed in _calls(line):
            if waiting.get(placed.part["id"], (None,))[0] != begun:
                waiting[placed.part["id"]] = begun, deque()
                put_in.pop(placed.part["id"], None)
            waiting[placed.part["id"]][1].append((at, k))
        if line.response is not None:
            id = line.response.part["id"]
            _, calls = waiting.get(id, (begun, deque[_Call]()))
            if calls:
                call = calls.popleft()
                answers[call] = at
                if is_missing(line.parts):
                    put_in[id] = call
            elif id in put_in:
                answers[put_in.pop(id)] = at
    return answers


def _ends(given: list[Line]) -> dict[int, int]:
    """Return for each line of an assistant the last line of its round, results right behind included."""
    ends: dict[int, int] = {}
    end = len(given) - 1
    for at in range(len(given) - 1, -1, -1):
        following = given[at + 1].role if at + 1 < len(given) else None
        if given[at].role == "tool":
            end = end if following == "tool" else at
        elif given[at].role == "assistant":
            end = end if following in ("assistant", "tool") else at
            ends[at] = end
    return ends


def _behind(given: list[Line], answers: dict[_Call, int], ends: dict[int, int]) -> dict[int, int]:
    """Return for each line of an assistant the one behind which a result of its calls may be put: itself, but where
    the end of its round has the result of a call that it, or a line before it in the round, makes."""
    behind: dict[int, int] = {}
    for at in sorted(ends):
        waits = any(at < answers.get((at, k), -1) <= ends[at] for k, _ in _calls(given[at]))
        begun = behind.get(at - 1) == ends[at]
        behind[at] = ends[at] if waits or begun else at
    return behind


def _spelled(given: list[Line], ids: Ids) -> dict[_Call, str]:
    """Return the id of each call as it is taken, in order."""
    seen: Counter[str] = Counter()
    spelled = {}
    for at, line in enumerate(given):
        if line.role != "assistant" and not ids.once:
            seen.clear()
        for k, placed in _calls(line):
            seen[placed.part["id"]] += 1
            spelled[at, k] = respelled(placed.part["id"], seen[placed.part["id"]], ids)
    return spelled


def _calls(line: Line) -> list[tuple[int, Placed]]:
    return [(k, placed) for k, placed in enumerate(line.parts) if placed.type == "tool_call"]


def _with_calls(line: Line, at: int, spelled: dict[_Call, str]) -> Line:
    parts = [
        Placed(placed.path, {**placed.part, "id": spelled[at, k]}) if (at, k) in spelled else placed
        for k, placed in enumerate(line.parts)
    ]
    return replace(line, parts=parts)


def _with_id(line: Line, id: str) -> Line:
    first, *rest = line.parts
    return replace(line, parts=[Placed(first.path, {**first.part, "id": id}), *rest])


def _missing(call: Placed, id: str) -> Line:
    part = {"type": "tool_call_response", "id": id, "response": MISSING}
    return Line(call.path, "tool", [Placed(call.path, part)])
