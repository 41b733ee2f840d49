"""Tests of `ledger.formats.markdown`: a branch for people, whatever its texts hold."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.formats.markdown import Row, document

NASTY = st.text(alphabet="`~#>*_<&!-[]\\a \n\r\t\u2028", max_size=40) | st.text(max_size=20)
ID = "018f353b-b2a4-753b-a2b1-af7e3a37a335"


def skeleton(text: str) -> list[str]:
    """Return what structures a document: its headings and foldings, outside quotes and fences."""
    found, fence = [], ""
    for line in text.split("\n"):
        ticks = re.match(" {0,3}(`{3,})", line)
        if fence:
            closes = ticks and line.strip() == ticks[1] and len(ticks[1]) >= len(fence)
            fence = "" if closes else fence
        elif ticks:
            fence = ticks[1]
        elif shape := re.match(r"#+|</?[a-z]+", line):
            found.append(shape[0])
    assert fence == "", "a fence is left open"
    return found


def rows(text: str) -> list[Row]:
    messages: list[dict[str, Any]] = [
        {"role": "developer", "parts": [{"type": "text", "content": text}]},
        {"role": "user", "parts": [{"type": "uri", "modality": "image", "uri": text}]},
        {"role": "assistant", "parts": [{"type": "reasoning", "content": text}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "name": text, "arguments": text}]},
        {"role": "tool", "name": text, "parts": [{"type": "tool_call_response", "response": text}]},
        {"role": "assistant", "parts": [{"type": "odd", "content": {"x": text}}]},
    ]
    first = Row(ordinal=1, id=ID, inputs={"message": text}, outputs={"result": text}, model=text)
    first["messages"] = messages
    return [first, Row(ordinal=2, id=ID, inputs={"a": text, "b": [text]}, outputs=None, state=text)]


@given(NASTY)
def test_no_text_breaks_out(text):
    """Whatever a text, a title, a name or a tool's output holds, the document keeps its shape."""
    plain = "".join(document("plain", rows("plain")))

    assert skeleton(plain) == skeleton("".join(document(text, rows(text))))


def test_a_turn_is_shown_with_its_model_time_and_rounds():
    """A person sees who said what, when, with which model, tools folded, images named."""
    messages = [
        {"role": "user", "parts": [{"type": "text", "content": "Draw it"}]},
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "name": "python", "arguments": {"text": "plot()"}}],
        },
        {
            "role": "tool",
            "name": "python",
            "parts": [
                {"type": "tool_call_response", "response": "<<Image>>"},
                {"type": "uri", "modality": "image", "uri": "file-service://1"},
            ],
        },
    ]
    row = Row(
        ordinal=3,
        id=ID,
        inputs={"message": "Draw it"},
        outputs={"result": "Here:\n```\nx\n```"},
        model="gpt-4",
        state="done",
        started="2024-05-01T17:37:11.000000Z",
        messages=messages,
    )

    text = "".join(document("Plots & more", [row]))

    assert (
        text
        == f"""\
# Plots \\& more

## 3 · User

*2024-05-01T17:37:11.000000Z · turn {ID}*

> Draw it

### 3 · gpt-4

<details><summary>Called python</summary>

```
plot()
```

</details>

<details><summary>python answered</summary>

```
<<Image>>
```

</details>

> Here:
> ```
> x
> ```

- image: file-service://1

"""
    )


@pytest.mark.parametrize(
    "part, named",
    [
        ({"type": "file", "modality": "document", "file_id": "f1"}, "- document: f1"),
        (
            {"type": "blob", "modality": "image", "content": {"$attachment": {"name": "a.png"}}},
            "- image: a.png",
        ),
        (
            {"type": "blob", "modality": "image", "content": {"$attachment": {"sha256": "00ff"}}},
            "- image: attachment 00ff",
        ),
    ],
)
def test_what_is_not_text_is_named(part, named):
    """Files and attachments are named, since their bytes are not in the document."""
    row = Row(ordinal=1, id=ID, outputs={}, messages=[{"role": "user", "parts": [part]}])

    assert named in "".join(document(None, [row])).split("\n")
