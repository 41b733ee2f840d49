"""Events for tests: one of each kind, made by hand, and whole logs made by the writer."""

from __future__ import annotations

from typing import Any

from ledger.records.events import Event, Writer

AT = "2026-01-01T00:00:00.000000Z"
TREE = "01890a5d-ac96-774b-bcce-b302099a8057"
OTHER = "01890a5d-ac96-774b-bcce-b302099a8058"
SHA256 = "sha256:" + "0" * 64
PROGRAM = {
    "name": "tutor",
    "kind": "module",
    "module": "tutors",
    "version": SHA256,
    "interface": SHA256,
    "answer": "result",
}
SAW = [{"saw_of": OTHER}, {"call": OTHER, "steps": True}, {"call": OTHER, "without": ["a"]}]


def event(kind: str, **keys: Any) -> Event:
    """Return an event with the common keys of the first one."""
    common = {"functai_event": 2, "kind": kind, "tree": TREE, "writer": 1, "seq": 1, "after": None}
    return {**common, "at": AT, "call": TREE, "function": "tutor", **keys}


_tool = {"id": "t1", "name": "look", "invocation": 1}
EXAMPLES = [
    event(
        "started", parent=None, root=TREE, program=PROGRAM, inputs={"m": 1}, content=True, saw=SAW
    ),
    event(
        "started",
        parent=OTHER,
        root=OTHER,
        program={**PROGRAM, "kind": "ai", "signature": SHA256, "file": "", "line": 0},
        content=False,
        omitted={"inputs": ["m"], "outputs": []},
        saw=[],
    ),
    event("request", request=1, model="m"),
    event("text", field="result", answer=True, text="hi"),
    event("thinking", text="hm"),
    event("tool_call", **_tool, input={"a": [1]}),
    event("tool_call", **_tool, content=False),
    event("tool_result", **_tool, output=""),
    event("tool_result", **_tool, content=False),
    event(
        "approval",
        **_tool,
        input={},
        effects="changes",
        path="a/b",
        to="owner",
        plugin="p",
        question="?",
    ),
    event("approval", **_tool, content=False, effects=None, path="a", to="caller"),
    event("approved", id="t1", invocation=1, verdict="yes", by="me", reason=None, plugin="p"),
    event("approved", id="t1", invocation=1, verdict="no", by=None, content=False),
    event("retry", reason="busy", wait=0.5),
    event("retry", wait=None, content=False),
    event("done", value={"a": 1}),
    event("done", content=False),
    event("failed", error={"type": "E", "message": "m", "code": "c"}),
    event("failed", error={"type": "E"}, content=False),
    event("later_kind", anything=[1], invocation=2),
    event("later_kind", content=False),
]


def turn(tree: str = TREE, pieces: int = 2) -> list[Event]:
    """Return the events of a whole turn."""
    writer = Writer(tree, "tutor")
    return [
        writer.started(PROGRAM, {"m": "hi"}, saw=[], at=AT),
        writer.request(1, "m", at=AT),
        *(writer.text("result", f"piece {n} ", at=AT) for n in range(pieces)),
        writer.done("piece", at=AT),
    ]
