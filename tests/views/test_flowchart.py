"""A tree as a Mermaid flowchart: whatever turns say, each stays in its box."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.views import History, drawing
from ledger.views.drawing import Tree
from ledger.views.text import one_line
from tests.views import build

HOSTILE = [
    "quotes \" and ' and `ticks`",
    '"] --> t9["owned"]',
    "end",
    "subgraph x\nend\nclick t1 call alert()",
    "%%{init: {}}%% %% comment",
    "#35; #quot; &quot; &#35; ;",
    "ﬂ°°35¶ß ﬂ°lt¶ß Straße",
    "<script>alert(1)</script><br/><img src=x onerror=y>",
    "`**markdown**` _x_ 1. list - item",
    "[(({{>/\\|<- -->-.->==>~~~&@:::",
    "\x00\x1b[2J\u202e\u2028\ud7ff\uffff\U0010ffff",
    "日本語 ü é 🙂 עברית",
    "",
]
BOX = re.compile(r'    t\d+\["(?:[\w .,!?()/+=]|#\d+;|<br/>)*"\]')
REST = [
    re.compile(r"    t\d+ (-->|-\. merged \.->) t\d+"),
    re.compile(r"    classDef [a-z]+ [a-z0-9:#,\- ]+"),
    re.compile(r"    class t\d+(,t\d+)* [a-z]+"),
]


def drawn(history: History, head: Any = None) -> Tree:
    """The tree at noon."""
    how: dict[str, Any] = {"conversation": "c", "title": None, "now": build.NOW, "width": 80}
    return drawing.tree(history, head=head, **how)


def saying(text: str) -> History:
    """A turn that says a text everywhere."""
    named: dict[str, Any] = {"inputs": {"message": text}, "settings": {"lm": text}}
    history = History.of(build.done("a", outputs={"result": text}, **named))
    data = {"label": text, "on": True}
    return history.extend([build.new("entry", plugin="ledger", entry="label", turn="a", data=data)])


def lines_in(box: str) -> list[str]:
    """What a box says, as Mermaid reads it: `#35;` is a character, `<br/>` a line's end."""
    inner = box.partition('["')[2].removesuffix('"]')
    return [
        re.sub(r"#(\d+);", lambda found: chr(int(found[1])), line) for line in inner.split("<br/>")
    ]


def check(chart: str) -> list[str]:
    """Every line is one of the forms that we write. Returns: the boxes."""
    first, *rest = chart.split("\n")
    assert first == "flowchart TD"
    boxes = [line for line in rest if BOX.fullmatch(line)]
    for line in rest:
        assert line in boxes or any(form.fullmatch(line) for form in REST), line
    return boxes


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_stays_in_its_box(text):
    """What is hostile to the syntax is read back as what it is, cut to a line."""
    (box,) = check(drawn(saying(text)).mermaid())

    asked, answered, *_ = lines_in(box)
    assert asked == one_line(f"1 · {one_line(text, 100)}", 60)
    assert answered == one_line(f"→ {one_line(text, 100)}", 60)


@given(st.text(max_size=30))
def test_any_text_stays_in_its_box(text):
    """No text makes a line, a box or an arrow; none leaves Mermaid's own marks in it."""
    chart = drawn(saying(text)).mermaid()

    assert len(check(chart)) == 1
    assert not set('ﬂ°¶ß"`') & set(re.sub(r'\["|"\]', "", chart))


def test_the_tree_is_drawn():
    """Parents by arrows, merges by dotted ones, the head, states, models, ratings and labels."""
    history = History.of(build.done("a", inputs={"message": "why"}, outputs={"result": "so"}))
    history.extend(build.done("b", "a", settings={"lm": "m"}))
    history.extend([build.turn("c", "a"), build.ended("c", "failed"), build.turn("d", "a")])
    history.extend([build.turn("e", "a"), build.lease("e", build.AHEAD)])
    history.extend(build.done("f", "a", reads=["a", "b"]))
    history.extend([build.turn("g", "b", erased=True)])
    noted = [("rating", {"value": 4}), ("label", {"label": "x", "on": True})]
    history.extend(
        build.new("entry", plugin="ledger", entry=kind, turn="b", data=data) for kind, data in noted
    )
    chart = drawn(history, head="f").mermaid()

    boxes = check(chart)
    assert lines_in(boxes[0]) == ["1 · why", "→ so"]
    assert lines_in(boxes[1])[-1] == "(m) ★ 4 #x"
    assert lines_in(boxes[2])[-1] == "[failed]"
    assert lines_in(boxes[5])[-1] == "◂ head"
    lines = [line.strip() for line in chart.split("\n")]
    for line in (
        "t1 --> t2",
        "t1 --> t6",
        "t1 -. merged .-> t6",
        "t2 -. merged .-> t6",
        "class t3 failed",
        "class t4 interrupted",
        "class t5 running",
        "class t7 erased",
        "class t6 head",
    ):
        assert line in lines


def test_an_empty_conversation_is_an_empty_chart():
    """No turns, no boxes; a tree is a value all the same."""
    assert drawn(History()).mermaid() == "flowchart TD"


def test_a_long_chain_is_drawn_without_recursion():
    """As many turns as there are, each a box."""
    assert len(check(drawn(History.of(build.line(*map(str, range(3000))))).mermaid())) == 3000
