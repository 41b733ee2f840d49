"""Conversations by chance, and what was said in them, path by path: what an export must bring back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any

from hypothesis import strategies as st

from ledger.formats.base import DraftTurn
from ledger.formats.talks import Talk
from ledger.records import messages as neutral
from ledger.views import History
from tests.views import build

Raw = dict[str, Any]
Said = tuple[Any, ...]

PNG = {
    "type": "uri",
    "modality": "image",
    "mime_type": "image/png",
    "uri": "data:image/png;base64,iVBORw0KGgo=",
}
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_values = st.one_of(st.integers(-9, 9), _texts, st.booleans(), st.none())


def _text(role: str, content: str) -> Raw:
    return neutral.text(role, content)


@st.composite
def _rounds(draw: Any, *, thoughts: bool) -> list[Raw]:
    out: list[Raw] = []
    for number in range(draw(st.integers(0, 2))):
        calls = [
            {
                "type": "tool_call",
                "id": f"c{number}-{place}",
                "name": draw(st.sampled_from(["add", "find"])),
                "arguments": draw(
                    st.dictionaries(st.sampled_from(["a", "b"]), _values, max_size=2)
                ),
            }
            for place in range(draw(st.integers(1, 2)))
        ]
        thought = [{"type": "reasoning", "content": draw(_texts.filter(str.strip))}] * thoughts
        out.append({"role": "assistant", "parts": [*thought, *calls]})
        for call in calls:
            part = {"type": "tool_call_response", "id": call["id"], "response": draw(_texts)}
            out.append({"role": "tool", "parts": [part]})
    return out


@st.composite
def conversations(
    draw: Any, *, images: bool = False, thoughts: bool = False, wordless: bool = False
) -> History:
    """A tree of turns: with tool rounds, failed and erased ones, the same asked twice; a head anywhere.

    Args: images, thoughts: whether there are some. wordless: whether an answer may say nothing.
    """
    answers = _texts if wordless else _texts.filter(bool)
    records: list[Raw] = []
    above: list[str | None] = [None]
    asked: dict[str | None, list[Raw]] = {}
    system = [_text("system", "Be brief.")] * draw(st.booleans())
    for number in range(draw(st.integers(1, 5))):
        name, parent = f"t{number}", draw(st.sampled_from(above))
        question = _text("user", draw(_texts))
        if images and draw(st.booleans()):
            question["parts"].append(PNG)
        said = [*(system if parent is None else []), question]
        if parent in asked and draw(st.booleans()):
            said = asked[parent]
        asked[parent] = said
        records.append(
            build.turn(name, parent, messages=said, inputs={"message": neutral_text(said)})
        )
        state = draw(st.sampled_from(["done", "done", "done", "failed"]))
        if state != "done":
            records.append(build.ended(name, state))
            continue
        answer = [*draw(_rounds(thoughts=thoughts)), _text("assistant", draw(answers))]
        outputs = {"result": answer[-1]["parts"][0]["content"]}
        records.append(build.ended(name, outputs=outputs, messages=answer, model="m"))
        above.append(name)
    if draw(st.booleans()):
        records.append(build.new("head", turn=f"t{draw(st.integers(0, number))}"))
    return History.of(build.placed(records))


def neutral_text(said: Iterable[Raw]) -> str:
    """The words of the user's messages."""
    return "\n\n".join(
        part["content"]
        for message in said
        if message["role"] == "user"
        for part in message["parts"]
        if part["type"] == "text"
    )


def talk_of(history: History, *, every: bool = True) -> Talk:
    """A conversation as exporters are given it, all branches of it."""
    return Talk("talk", "Ducks", history, history.head, history.head, every, lambda sha256: None)


# -- what was said ---------------------------------------------------------------------------------


def parts(said: Iterable[Raw]) -> Said:
    """What messages say, part by part, with results as text and behind their calls; no words beside others."""
    listed = [p for message in said if message["role"] != "system" for p in message["parts"]]
    results = {p["id"]: _dumped(p["response"]) for p in listed if p["type"] == "tool_call_response"}
    out: list[Said] = []
    for part in listed:
        kind = part["type"]
        if kind in ("text", "reasoning"):
            out.append((kind, part["content"]))
        elif kind == "tool_call":
            call = json.dumps(part["arguments"], sort_keys=True)
            out.append((kind, part["name"], call, results.get(part["id"])))
        elif kind in ("uri", "blob"):
            out.append((kind,))
    told = [("blob",) if one == ("uri",) else one for one in out]
    return tuple(one for one in told if one != ("text", "") or len(told) == 1)


def _dumped(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def of_history(history: History, *, unanswered: bool, of: str | None = None) -> Counter[Said]:
    """The paths of a conversation, each as what is said on it. Args: of: of this turn alone."""
    return Counter(
        tuple(map(partial(_of_turn, history), history.branch(turn)))
        for turn in history.order
        if (history.node(turn).done or unanswered) and of in (None, turn)
    )


def _of_turn(history: History, turn: str) -> Said:
    asked = history.asked(turn)
    answered = history.messages(turn)[len(asked) :]
    return parts(asked), parts(answered) if history.node(turn).done else None


def of_turns(turns: Iterable[DraftTurn], *, of: str | None = None) -> Counter[Said]:
    """The paths of turns that were read back, each turn once."""
    by_id = {turn.id: turn for turn in turns}
    return Counter(
        tuple(_path(by_id, turn)) for turn in by_id.values() if of is None or turn.id == of
    )


def _path(by_id: dict[str, DraftTurn], turn: DraftTurn) -> list[Said]:
    above = _path(by_id, by_id[turn.parent]) if turn.parent is not None else []
    answered = None if turn.outputs is None else parts(turn.messages_out)
    return [*above, (parts(turn.messages_in), answered)]
