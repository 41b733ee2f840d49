"""Every format over values that nobody meant: none raises, and what is found may be stored."""

from __future__ import annotations

import copy
import json
import sqlite3
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.formats import (
    agents_sdk,
    chatbot_ui,
    claude_ai,
    langchain,
    langgraph,
    librechat,
    llm_logs,
    oasst,
    open_webui,
    openai_jsonl,
    pydantic_ai_json,
    sharegpt,
    sillytavern,
)
from ledger.sources.files import FORMATS
from tests.formats import test_agents_sdk, test_langgraph, test_llm_logs
from tests.formats.finds import checked, found
from tests.formats.given import Given

CALL = {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{}"}}
CHAT: list[Any] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "a"}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "2"},
    {"role": "assistant", "content": "b"},
]
BLOCKS = [
    {"type": "thinking", "thinking": "hm"},
    {"type": "tool_use", "name": "add", "input": {}},
    {"type": "tool_result", "name": "add", "content": [{"type": "text", "text": "2"}]},
    {"type": "text", "text": "b"},
]
EXAMPLES: dict[str, tuple[Any, list[Any]]] = {
    "claude-ai": (
        claude_ai,
        [
            {
                "uuid": "t",
                "name": "x",
                "current_leaf_message_uuid": "m2",
                "chat_messages": [
                    {
                        "uuid": "m1",
                        "sender": "human",
                        "text": "a",
                        "created_at": "2026-01-01T00:00:00Z",
                        "attachments": [{"file_name": "", "extracted_content": "x"}],
                        "files": [{"file_uuid": "f", "file_kind": "image"}],
                        "parent_message_uuid": None,
                    },
                    {
                        "uuid": "m2",
                        "sender": "assistant",
                        "content": BLOCKS,
                        "parent_message_uuid": "m1",
                    },
                ],
            }
        ],
    ),
    "openai-chat": (
        openai_jsonl,
        [
            {"messages": CHAT},
            {
                "input": {"messages": CHAT[:2]},
                "preferred_output": CHAT[4:],
                "non_preferred_output": CHAT[4:],
            },
        ],
    ),
    "sharegpt": (
        sharegpt,
        [
            {
                "id": "x",
                "system": "s",
                "tools": "[]",
                "chosen": {"from": "gpt", "value": "y"},
                "conversations": [
                    {"from": "human", "value": "a"},
                    {"from": "function_call", "value": '{"name": "add", "arguments": {}}'},
                    {"from": "observation", "value": "2"},
                    {"from": "gpt", "value": "b"},
                ],
            },
            {"id": "y"},
        ],
    ),
    "open-webui": (
        open_webui,
        [
            {
                "id": "c",
                "chat": {
                    "title": "x",
                    "params": {"system": "s"},
                    "history": {
                        "currentId": "m2",
                        "messages": {
                            "m1": {
                                "role": "user",
                                "content": "a",
                                "childrenIds": ["m2"],
                                "files": [{"type": "image", "url": "https://example.com/a.png"}],
                                "timestamp": 1,
                            },
                            "m2": {
                                "role": "assistant",
                                "parentId": "m1",
                                "content": '<details type="reasoning" done="true">x</details>b',
                                "usage": {"prompt_tokens": 1},
                                "modelIdx": 0,
                                "error": None,
                            },
                        },
                    },
                },
            }
        ],
    ),
    "librechat": (
        librechat,
        [
            {
                "conversationId": "c",
                "options": {"promptPrefix": "s"},
                "messages": [
                    {
                        "messageId": "m1",
                        "isCreatedByUser": True,
                        "text": "a",
                        "files": [{"file_id": "f", "type": "image/png"}],
                        "children": [
                            {
                                "messageId": "m2",
                                "parentMessageId": "m1",
                                "isCreatedByUser": False,
                                "createdAt": "2026-01-01T00:00:00Z",
                                "tokenCount": 1,
                                "content": [
                                    {"type": "think", "think": "hm"},
                                    {
                                        "type": "tool_call",
                                        "tool_call": {"id": "c", "args": "{}", "output": ""},
                                    },
                                    {"type": "text", "text": {"value": "b"}},
                                ],
                            }
                        ],
                    }
                ],
            }
        ],
    ),
    "chatbot-ui": (
        chatbot_ui,
        [
            {
                "version": 4,
                "history": [
                    {"id": "c", "name": "x", "messages": CHAT, "prompt": "s", "model": {"id": "m"}}
                ],
            }
        ],
    ),
    "langchain": (
        langchain,
        [
            {"type": "human", "data": {"content": "a", "id": "h"}},
            {
                "lc": 1,
                "id": ["x", "AIMessage"],
                "kwargs": {"content": [{"type": "text", "text": "b"}]},
            },
            {
                "type": "ai",
                "content": "",
                "tool_calls": [{"name": "add", "args": {}, "id": "c"}],
                "usage_metadata": {"input_tokens": 1},
            },
            {
                "type": "tool",
                "content": ["2"],
                "tool_call_id": "c",
                "response_metadata": {"finish_reason": "stop"},
            },
        ],
    ),
    "pydantic-ai": (
        pydantic_ai_json,
        [
            {
                "kind": "request",
                "parts": [{"part_kind": "user-prompt", "content": ["a"]}],
                "timestamp": "2026-01-01T00:00:00Z",
            },
            {
                "kind": "response",
                "parts": [
                    {"part_kind": "thinking", "content": "hm"},
                    {
                        "part_kind": "tool-call",
                        "tool_name": "final_result",
                        "args": "{}",
                        "tool_call_id": "c",
                    },
                ],
                "usage": {"input_tokens": 1, "details": {}},
                "model_name": "m",
            },
            {
                "kind": "request",
                "parts": [{"part_kind": "tool-return", "content": 1, "tool_call_id": "c"}],
            },
        ],
    ),
    "oasst": (
        oasst,
        [
            {
                "message_tree_id": "m1",
                "prompt": {
                    "message_id": "m1",
                    "role": "prompter",
                    "text": "a",
                    "replies": [
                        {
                            "message_id": "m2",
                            "role": "assistant",
                            "text": "b",
                            "rank": 0,
                            "replies": [],
                        }
                    ],
                },
            },
            {
                "message_id": "n1",
                "parent_id": None,
                "role": "prompter",
                "text": "a",
                "created_date": "2023-01-01",
            },
            {"message_id": "n2", "parent_id": "n1", "role": "assistant", "text": "b", "rank": 1},
        ],
    ),
    "sillytavern": (
        sillytavern,
        [
            {"user_name": "A", "character_name": "B", "create_date": "x", "chat_metadata": {}},
            {
                "name": "B",
                "is_user": False,
                "mes": "hi",
                "swipes": ["hi", "ho"],
                "swipe_id": 0,
                "swipe_info": [{"extra": {}}],
            },
            {
                "name": "A",
                "is_user": True,
                "mes": "a",
                "send_date": 1,
                "extra": {"type": "x", "image": "i"},
            },
            {
                "name": "B",
                "is_user": False,
                "mes": "b",
                "is_system": True,
                "extra": {"reasoning": "hm", "model": "m"},
            },
        ],
    ),
}
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([-1, 0, 1, 2**70, float("nan"), float("inf"), 1e300])
    | st.sampled_from(["", "x", "m1", "user", "human", "text", "\ud800", "\0", "$attachment"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["type", "text", "content", "id", "role", "$attachment"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=5,
)
Place = tuple[Any, Any]


def places(value: Any) -> list[Place]:
    """Return every place in a value: what holds it, and its key."""
    out: list[Place] = []
    stack = [value]
    while stack:
        item = stack.pop()
        pairs = (
            item.items()
            if isinstance(item, dict)
            else enumerate(item)
            if isinstance(item, list)
            else ()
        )
        for key, inner in pairs:
            out.append((item, key))
            stack.append(inner)
    return out


@pytest.mark.parametrize("name", sorted(EXAMPLES))
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_value_that_nobody_meant_loses_nothing_else(name, data):
    """With anything in any place, a format raises nothing, and what it finds may be stored."""
    format, example = EXAMPLES[name]
    value = copy.deepcopy(example)
    for _ in range(data.draw(st.integers(0, 2))):
        holder, key = data.draw(st.sampled_from(places(value)))
        if data.draw(st.booleans()):
            holder[key] = data.draw(VALUES)
        elif isinstance(holder, dict):
            del holder[key]

    found(format, *value)


DATABASES: dict[str, tuple[Any, Any]] = {
    "llm": (llm_logs, lambda: test_llm_logs.pelican().database),
    "llm, older": (llm_logs, lambda: test_llm_logs.older().database),
    "openai-agents": (agents_sdk, lambda: test_agents_sdk.forked().database),
    "langgraph": (langgraph, lambda: test_langgraph.forked().database),
}
CELLS = st.sampled_from(
    [None, 0, -1, 2**62, 1.5, "", "x", "{}", "[1]", '{"a": 1}', b"", b"\x80\xff", "s", "u1"]
)


@pytest.mark.parametrize("name", sorted(DATABASES))
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_cell_that_nobody_meant_loses_nothing_else(name, data):
    """With anything in any cell of a database, a format raises nothing."""
    format, make = DATABASES[name]
    database: sqlite3.Connection = make()
    columns = database.execute(
        "select m.name, c.name from sqlite_master m, pragma_table_info(m.name) c"
        " where m.type = 'table' and m.name not like 'sqlite%' and c.pk = 0"
    ).fetchall()
    for _ in range(data.draw(st.integers(0, 3))):
        table, column = data.draw(st.sampled_from(columns))
        row = data.draw(st.integers(1, 9))
        query = f'update "{table}" set "{column}" = ? where rowid = ?'
        database.execute(query, (data.draw(CELLS), row))

    assert list(checked(format.drafts([Given(database)])))


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_is_read_whole_and_known_by_one_format_alone(name):
    """Each example looks like its own format and no other's, and nothing of it is skipped or unknown."""
    format, example = EXAMPLES[name]
    others = [other for other in FORMATS if other is not format]

    assert format.looks_like(example[0])
    assert not any(other.looks_like(example[0]) for other in others)
    assert json.dumps(example)


@settings(max_examples=100)
@given(value=VALUES)
def test_no_value_makes_looking_raise(value):
    """Whatever a file begins with, every format says yes or no."""
    for format in FORMATS:
        assert isinstance(format.looks_like(value), bool)
