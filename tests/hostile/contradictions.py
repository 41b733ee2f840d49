"""Records that are each well-formed and together make no sense, as a hostile or broken writer leaves them."""

from __future__ import annotations

from typing import Any

AT = "2026-01-01T00:00:00.000000Z"
FAR = "9999-12-31T23:59:59.999999Z"
STEERING = "\x1b]0;owned\x07\x1b[2J\u202e\r\x9b31m"

Records = list[dict[str, Any]]


def turn_id(number: int) -> str:
    """Return the id of the turn of a number."""
    return f"01a22a97-f751-7051-a503-{number:012d}"


def record(kind: str, **keys: Any) -> dict[str, Any]:
    """Return a record."""
    return {"functai_conversation": 1, "kind": kind, "at": AT, **keys}


def turn(number: int, parent: int | None = None, **keys: Any) -> dict[str, Any]:
    """Return the record of a turn that is sent."""
    return record(
        "turn",
        turn=turn_id(number),
        parent=None if parent is None else turn_id(parent),
        program="p",
        **{"inputs": {"message": f"asked {number}"}, **keys},
    )


def ended(number: int, state: str = "done", **keys: Any) -> dict[str, Any]:
    """Return the record of a turn that ended."""
    said = f"said {number}"
    answer = {"outputs": {"result": said}, "value": said, "saw": [], "model": "m", "usage": {}}
    return record(
        "ended", turn=turn_id(number), state=state, **{**answer, "attempt": 1, "seconds": 1, **keys}
    )


def lease(number: int, until: Any, attempt: int = 1) -> dict[str, Any]:
    """Return the record of a lease."""
    return record("lease", turn=turn_id(number), holder="h:1:x", until=until, attempt=attempt)


def _circle(size: int) -> Records:
    sent = [turn(i, (i + 1) % size, saw=[{"saw_of": turn_id((i + 1) % size)}]) for i in range(size)]
    return sent + [ended(i) for i in range(size)]


ODD_MESSAGES = [
    1,
    {"role": 5, "parts": "x"},
    {"role": "user", "parts": 7},
    {"role": "user", "parts": [1, {"type": 5}, {"type": "text", "content": {}}, {"type": "text"}]},
    {"role": "assistant", "parts": [{"type": "tool_call", "arguments": 3}, {"type": "reasoning"}]},
    {"role": "tool", "parts": [{"type": "tool_call_response"}, {"type": "blob", "content": 1}]},
]

CASES: dict[str, Records] = {
    "two ends": [turn(1), ended(1), ended(1, "failed", error={"type": "X"})],
    "an end of nothing": [ended(9)],
    "two turns of one id": [turn(1), ended(1), turn(2, 1), ended(2), turn(1, 2), ended(1)],
    "its own parent": [turn(1, 1), ended(1)],
    "parents in a circle": [turn(1, 2), turn(2, 1), ended(1), ended(2)],
    "parents and shown in a wide circle": _circle(60),
    "a parent that comes later": [turn(1, 2), ended(1), turn(2), ended(2)],
    "a lease of the far future": [turn(1), lease(1, FAR)],
    "leases that are none": [turn(1), lease(1, "soon", -5), lease(1, 7), lease(1, "", 2**53 - 1)],
    "approvals of nothing": [
        record("approval", turn=turn_id(3), site="s", invocation=1, verdict="yes"),
        turn(1),
        record("approval", turn=turn_id(1), site="nowhere", invocation=7, verdict="perhaps"),
    ],
    "questions that are none": [turn(1), record("waiting", turn=turn_id(1), approvals=[1, {}])],
    "questions in no list": [
        turn(1),
        record("waiting", turn=turn_id(1), approvals={"a": 1}, saw=5),
    ],
    "heads and stops of nothing": [
        record("head", turn=turn_id(8)),
        record("stop", turn=turn_id(8)),
        turn(1),
        ended(1),
        record("head", turn=turn_id(8)),
    ],
    "shown to itself": [turn(1, saw=[{"saw_of": turn_id(1)}, {"call": turn_id(1)}]), ended(1)],
    "shown what is none": [turn(1, saw="x"), ended(1), turn(2, 1, saw=[1, {"call": 5}, {}])],
    "merges of itself": [turn(1, reads=[turn_id(1)], made_by={"name": STEERING}), ended(1)],
    "merges in a circle": [
        turn(1, reads=[turn_id(2)]),
        ended(1),
        turn(2, 1, reads=[turn_id(1)]),
        ended(2),
    ],
    "merges of what is none": [turn(1, reads="x", made_by=[]), turn(2, reads=[1, {}], made_by="q")],
    "ids that are none": [
        record(
            "turn", turn=STEERING, parent=STEERING, program=STEERING, inputs={STEERING: STEERING}
        ),
        record("ended", turn=STEERING, state="done", outputs={STEERING: 1}, model=STEERING, saw=[]),
    ],
    "an empty id": [record("turn", turn="", parent=""), record("ended", turn="", state="done")],
    "inputs and outputs that are none": [
        *(turn(1, inputs=[1]), ended(1, outputs=[2])),
        *(turn(2, inputs="x"), ended(2, outputs=7)),
        *(turn(3, inputs=None), ended(3, outputs=None)),
        *(turn(4, 1), ended(4)),
    ],
    "messages that are none": [
        *(turn(1, messages=5), ended(1, messages={"a": 1})),
        *(turn(2, 1, messages=ODD_MESSAGES), ended(2, messages=[None, *ODD_MESSAGES])),
    ],
    "usage and errors that are none": [
        *(turn(1), ended(1, usage=[1], error="boom", seconds=1e308)),
        *(turn(2), ended(2, "failed", usage={"a": "b", "c": -1}, error={"type": 5, "message": []})),
        *(turn(3), ended(3, "failed", error=[1], model=3)),
    ],
    "programs that are none": [
        record("program", version="p", name=5, interface=[1], fields="x", answer=3),
        turn(1),
        ended(1),
    ],
    "fields that are none": [
        record(
            "program", version="p", interface={"inputs": 5}, fields=[1, {"name": 3}], answer="z"
        ),
        turn(1),
        ended(1),
    ],
    "entries that are none": [
        record("entry", plugin="ledger", entry="title", data=[1]),
        record("entry", plugin="ledger", entry="title", data=STEERING),
        record("entry", plugin="ledger", entry="import", data=5),
        record("entry", plugin=STEERING, entry=STEERING, data=None, turn="x"),
        turn(1),
        ended(1),
    ],
    "sources that are none": [
        *(turn(1, source=5), ended(1)),
        *(turn(2, 1, source={"format": [], "conversation": {}, "created": STEERING}), ended(2)),
    ],
    "one request twice": [
        *(turn(1, request_id="r"), ended(1)),
        *(turn(2, 1, request_id="r"), ended(2)),
    ],
    "tools and calls that are none": [
        turn(1),
        record("tool", turn=turn_id(1), site=None, invocation="x", state="weird", name=STEERING),
        record("reply", turn=turn_id(1), key="k", response={}),
        record("call", turn=turn_id(1), call=turn_id(1), site=STEERING, program=5),
    ],
    "times at the ends": [
        turn(1) | {"at": "0001-01-01T00:00:00.000000Z"},
        ended(1) | {"at": FAR},
    ],
    "times that are none": [turn(1) | {"at": "soon"}, ended(1) | {"at": 5}],
}
