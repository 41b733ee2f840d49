"""Every line that we write validates against the schema that functai ships."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import functai
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

import ledger
from ledger import errors, merging

SCHEMAS = {
    path.name: json.loads(path.read_text(encoding="utf-8"))
    for path in (files(functai) / "schema").iterdir()
    if path.name.endswith(".schema.json")
}
REGISTRY: Registry = Registry().with_resources(
    (schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS.values()
)
VALIDATOR = Draft202012Validator(SCHEMAS["conversation.schema.json"], registry=REGISTRY)

EXPORT = Path(__file__).parents[2] / "docs" / "tutorial" / "chatgpt-export.json"
SAFE_TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
WHOLE = st.integers(-(2**53) + 1, 2**53 - 1)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | WHOLE
    | st.floats(allow_nan=False, allow_infinity=False)
    | SAFE_TEXT,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(SAFE_TEXT.filter(lambda k: k != "$attachment"), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,10}", fullmatch=True)
TEXT = st.fixed_dictionaries({"type": st.just("text"), "content": SAFE_TEXT})
CALL = st.fixed_dictionaries(
    {"type": st.just("tool_call"), "id": SAFE_TEXT, "name": SAFE_TEXT, "arguments": VALUES}
)
RESULT = st.fixed_dictionaries(
    {"type": st.just("tool_call_response"), "id": SAFE_TEXT, "response": VALUES}
)


def said(*roles: str, parts: st.SearchStrategy[Any], least: int = 1) -> st.SearchStrategy[Any]:
    """Return messages of some roles."""
    listed = st.lists(parts, min_size=least, max_size=2)
    return st.fixed_dictionaries({"role": st.sampled_from(roles), "parts": listed})


MESSAGES = st.lists(
    said("system", "developer", "user", parts=TEXT)
    | said("assistant", parts=TEXT | CALL, least=0)
    | said("tool", parts=RESULT),
    max_size=4,
)


def lines_of(store: Any, conversation: str = "alex") -> list[dict[str, Any]]:
    """Return the lines of a log as any JSON reader has them."""
    return [json.loads(line) for line in store.raw(conversation).split(b"\n") if line]


def faults(record: dict[str, Any]) -> list[str]:
    """Return what the schema has against a line."""
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(record)]


def assert_valid(lines: list[dict[str, Any]]) -> None:
    """Every line passes, and there are some."""
    assert lines
    assert {n: found for n, line in enumerate(lines, 1) if (found := faults(line))} == {}


def test_summaries_and_steps_are_valid():
    """A summary, the turns that were shown it, and turns shown with their steps pass the schema."""

    def program(message: str) -> str:
        return ledger.current().tool("look", {}, lambda: str(len(ledger.current().earlier())))

    store = ledger.MemoryStore()
    rule = ledger.pipeline(
        ledger.all_turns(steps=True),
        ledger.compacted(lambda earlier, rows: "a summary", keep_last=1, every=2),
    )
    chat = ledger.open("alex", program, store=store, context=rule)
    assert [chat("x") for _ in range(5)] == ["0", "1", "2", "2", "3"]

    lines = lines_of(store)
    assert {"saw": [{"call": chat.turn(3).id, "steps": True}]}.items() <= next(
        line.items() for line in lines if line.get("turn") == chat.turn(4).id
    )
    assert any("shown_entries" in line for line in lines)
    assert_valid(lines)


def test_lists_that_are_handed_over_are_valid():
    """Turns of a list, changed instructions, what is left over, a long key, and a head before the first turn."""
    store = ledger.MemoryStore()
    memory = ledger.memory(store, format="openai")
    exchange = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    memory.save("x" * 300, [{"role": "system", "content": "one"}, *exchange])
    memory.save(
        "x" * 300, [{"role": "system", "content": "two"}, *exchange, *exchange, exchange[0]]
    )
    memory.clear("x" * 300)

    lines = lines_of(store, store.conversations()[0])
    kinds = [line["entry"] for line in lines if line["kind"] == "entry"]
    assert kinds == ["key", "instructions", "left", "cleared"]
    assert_valid(lines)


def test_every_kind_that_we_write_is_valid():
    """Turns sent, failed, recorded, merged, renamed and retried; head, title and entries: each line."""
    store = ledger.MemoryStore()

    @ledger.program(settings=("temperature",))
    def program(message: str, tone: str = "kind") -> str:
        """Answer."""
        if message == "fail":
            raise ValueError
        ledger.current().note(model="m", usage={"input_tokens": 3})
        return message

    chat = ledger.open("alex", program, store=store, lm="a model", temperature=0.5)
    first = chat.send("one", request_id="r-1")
    with pytest.raises(ValueError, match=r"^$"):
        chat("fail")
    second = chat.send("two")
    third = chat.continue_from(first).send("two again", tone="rude")
    chat.merge([second, third], merging.pick(third))
    chat.merge([second, third], lambda answers: "both", onto=None)
    chat.record(
        {"message": "three", "tone": "kind"},
        "3",
        model="m",
        usage={"input_tokens": 0},
        saw=[first],
        messages=[{"role": "user", "parts": [{"type": "text", "content": "three"}]}],
    )
    ledger.open("alex", store=store).record("plain", "text", parent=None)
    ledger.open("alex", lambda message: None, store=store).continue_from(8).send("untyped")
    chat.head = second
    chat.title = "A title"
    chat.keep_entry("notes", "note", {"n": 1}, turn=first)

    lines = lines_of(store)
    assert_valid(lines)
    assert {line["kind"] for line in lines} == {
        *("program", "turn", "lease", "ended", "head", "entry"),
    }
    assert {line["state"] for line in lines if line["kind"] == "ended"} == {"done", "failed"}
    assert {line["name"] for line in lines if line["kind"] == "program"} == {
        *("program", "recorded", "<lambda>"),
    }


def test_imported_conversations_are_valid():
    """What an import writes (sources, times, abandoned turns, heads, titles) is valid."""
    store = ledger.MemoryStore()
    ledger.import_conversations(EXPORT, store=store)

    assert len(store.conversations()) == 2
    for conversation in store.conversations():
        assert_valid(lines_of(store, conversation))


@settings(max_examples=60)
@given(
    inputs=st.dictionaries(NAMES, VALUES, max_size=3),
    outputs=st.dictionaries(NAMES, VALUES, min_size=1, max_size=3),
    model=st.none() | SAFE_TEXT,
    usage=st.none() | st.dictionaries(SAFE_TEXT, st.integers(0, 2**53 - 1), max_size=3),
    messages=st.none() | MESSAGES,
)
def test_whatever_is_recorded_is_valid(inputs, outputs, model, usage, messages):
    """Any inputs, outputs, counts and messages that `record` takes make valid lines."""
    assume(not inputs.keys() & outputs.keys())
    store = ledger.MemoryStore()
    chat = ledger.open("alex", store=store)
    chat.record("first", "1")
    chat.record(inputs, outputs, model=model, usage=usage, messages=messages)

    assert_valid(lines_of(store))


@settings(max_examples=60)
@given(
    inputs=st.dictionaries(SAFE_TEXT, SAFE_TEXT, max_size=2),
    outputs=st.dictionaries(SAFE_TEXT, SAFE_TEXT, max_size=2),
)
def test_names_that_cannot_name_a_field_are_refused_whole(inputs, outputs):
    """`record` either makes valid lines of the names it is given, or refuses and stores nothing."""
    store = ledger.MemoryStore()
    try:
        ledger.open("alex", store=store).record(inputs, outputs)
    except errors.RecordInvalid:
        assert store.read("alex") == []
    else:
        assert_valid(lines_of(store))


@settings(max_examples=60)
@given(message=SAFE_TEXT, answer=VALUES, error=SAFE_TEXT, fails=st.booleans())
def test_whatever_a_program_answers_or_raises_is_valid(message, answer, error, fails):
    """Any answer, and any exception's text, make valid lines."""
    store = ledger.MemoryStore()

    def program(message: str):
        if fails:
            raise ValueError(error)
        return answer

    chat = ledger.open("alex", program, store=store)
    if fails:
        with pytest.raises(ValueError):  # noqa: PT011 - its text is what varies here
            chat(message)
    else:
        chat(message)

    assert_valid(lines_of(store))


class Odd:
    """A callable object, without a name of its own."""

    def __call__(self, message: Literal["a", "b"], n: int | None = None) -> list[str]:
        return [message] * (n or 1)


def test_programs_of_every_sort_are_valid():
    """Callable objects, annotations that say nothing and odd defaults give valid descriptions."""

    def custom(message: object, path: Any = print, limit: float = 1.5):
        return None

    def nothing():
        return None

    store = ledger.MemoryStore()
    programs: list[tuple[Any, dict[str, Any]]] = [
        (Odd(), {"message": "a"}),
        (custom, {"message": "a", "path": ""}),
        (nothing, {}),
    ]
    for n, (program, inputs) in enumerate(programs):
        ledger.open(f"c{n}", program, store=store)(**inputs)
        assert_valid(lines_of(store, f"c{n}"))


def test_the_ids_and_times_of_a_new_process_are_valid(tmp_path):
    """What a real process writes (its clock, its ids, its holder) is valid too."""
    code = (
        "import sys, ledger\n"
        "def program(message: str) -> str:\n"
        "    return message\n"
        "chat = ledger.open('alex', program, store=sys.argv[1])\n"
        "[chat(str(n)) for n in range(20)]\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True, timeout=120)

    lines = lines_of(ledger.FolderStore(tmp_path))
    assert_valid(lines)
    assert len(lines) == 61


def test_the_schema_is_asked():
    """The validator refuses what is wrong, in the file itself and behind each reference."""
    store = ledger.MemoryStore()
    ledger.open("alex", store=store).record("a", "b")
    program, turn, ended = lines_of(store)

    assert faults({**turn, "turn": "T-1"})
    assert faults({**program, "interface": {**program["interface"], "more": 1}})
    assert faults({**ended, "usage": {"tokens": -1}})
    assert faults({k: v for k, v in ended.items() if k != "outputs"})
