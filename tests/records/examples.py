"""One record of each kind as we write it, our own keys included."""

from typing import Any

from ledger.records import kinds

AT = "2026-01-01T00:00:00.000000Z"
TURN = "0199c000-0000-7000-8000-000000000001"
OTHER = "0199c000-0000-7000-8000-000000000002"
HASH = "sha256:" + "a" * 64
TEXT_SHAPE = {"type": "string"}
ATTACHMENT = {"$attachment": {"sha256": "b" * 64, "media_type": "image/png", "size": 3}}
SAW = [{"saw_of": OTHER}, {"call": OTHER, "steps": True}, {"call": OTHER, "without": ["a"]}]
MESSAGES = [
    {
        "role": "user",
        "parts": [
            {"type": "text", "content": "hi"},
            {"type": "blob", "modality": "image", "mime_type": "image/png", "content": ATTACHMENT},
        ],
    },
    {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "1", "name": "f", "arguments": {}}],
        "finish_reason": "tool_calls",
    },
]

NEW: dict[str, dict[str, Any]] = {
    "program": kinds.new(
        "program",
        AT,
        version=HASH,
        name="answer",
        program_kind="module",
        module="m",
        signature=HASH,
        interface={
            "description": "",
            "inputs": [{"name": "message", "shape": TEXT_SHAPE}],
            "outputs": [{"name": "result", "shape": TEXT_SHAPE, "type": "str"}],
        },
        fields=[
            {"name": "message", "direction": "input", "purpose": "plain", "shape": TEXT_SHAPE},
            {"name": "result", "direction": "output", "purpose": "plain", "shape": TEXT_SHAPE},
        ],
        answer="result",
    ),
    "turn": kinds.new(
        "turn",
        AT,
        turn=TURN,
        parent=None,
        program=HASH,
        inputs={"message": "hi"},
        request_id="r",
        settings={"lm": "model"},
        reads=[OTHER],
        made_by={"name": "merge", "version": HASH, "call": None},
        context={"turns": [OTHER], "without": {OTHER: ["a"]}, "sections": ["s"]},
        saw=SAW,
        shown_entries=[3],
        messages=MESSAGES,
        source={"format": "x", "conversation": "y", "ids": ["z"]},
        approve=["refund"],
        remembers=[{"name": "helper", "module": "m", "mode": "turn", "steps": False}],
    ),
    "lease": kinds.new(
        "lease", AT, turn=TURN, holder="h:1:r", until=AT, attempt=1, boot="b" * 36, program=HASH
    ),
    "ended": kinds.new(
        "ended",
        AT,
        turn=TURN,
        state="done",
        outputs={"result": "hello"},
        value="hello",
        saw=SAW,
        error={"type": "ValueError", "code": "c", "message": "m"},
        model="model",
        usage={"input_tokens": 1, "output_tokens": 2},
        seconds=0.5,
        attempt=1,
        messages=MESSAGES,
        partial="hel",
        shown_entries=[3],
    ),
    "waiting": kinds.new(
        "waiting",
        AT,
        turn=TURN,
        approvals=[
            {
                "call": OTHER,
                "invocation": 1,
                "id": "1",
                "name": "f",
                "input": {"x": 1},
                "effects": None,
                "path": "answer",
                "site": "answer#1",
                "asked": HASH,
            }
        ],
        saw=SAW,
        attempt=1,
    ),
    "approval": kinds.new(
        "approval",
        AT,
        turn=TURN,
        site="answer#1",
        invocation=1,
        plugin="approval",
        path="answer",
        verdict="yes",
        by="me",
        reason="fine",
        asked=HASH,
    ),
    "tool": kinds.new(
        "tool",
        AT,
        turn=TURN,
        site="answer#1",
        scope=HASH,
        raised="OSError",
        usage={"tokens": 1},
        invocation=1,
        id="1",
        name="f",
        state="done",
        input={"x": 1},
        effects="changes",
        output='{"y":2}',
        output_value={"y": 2},
        attempt=1,
    ),
    "reply": kinds.new(
        "reply", AT, turn=TURN, key=HASH, response={"text": "x"}, usage={"tokens": 2}, attempt=1
    ),
    "call": kinds.new(
        "call",
        AT,
        turn=TURN,
        call=OTHER,
        site="helper#1",
        tools=[{"name": "look", "input": 1, "output": "x"}],
        program={"name": "helper", "module": "m", "signature": HASH},
        lmcc={"inputs": {}, "outputs": {}, "steps": []},
        saw=SAW,
        attempt=1,
    ),
    "stop": kinds.new("stop", AT, turn=TURN),
    "head": kinds.new("head", AT, turn=TURN),
    "entry": kinds.new("entry", AT, plugin="ledger", entry="title", data={"t": "x"}, turn=TURN),
}
