"""What is searched and what is asked for: words, phrases, beginnings; scripts without spaces; hostile text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.catalog import texts
from tests import tidy


def finds(query: str, text: str) -> bool:
    """Say whether a text is found by a query, in SQLite itself."""
    db = tidy.connect(":memory:")
    db.execute(f'CREATE VIRTUAL TABLE t USING fts5(x, tokenize = "{texts.TOKENS}")')
    db.execute("INSERT INTO t VALUES(?)", (texts.spelled(text),))
    match = texts.match(query)
    found = match and db.execute("SELECT 1 FROM t WHERE t MATCH ?", (match,)).fetchone()
    db.close()
    return bool(found)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("parcel", "Where is my Parcel?"),
        ("PARCEL rain", "rain on the parcel"),
        ('"in the rain"', "It stands in the rain."),
        ("parc*", "parcels"),
        ("elise", "Élise"),
        ("Élise", "elise"),
        ("naïve", "nai\u0308ve"),
        ("αθηνα", "Στην Αθήνα"),
        ("ΑΘΉΝΑ", "Αθηνα"),
        ("ежик", "Ёжик"),
        ("viet", "Việt Nam"),
        ('"a b"', "a \u0301 b"),
        ('"a \u0301 b"', "a b"),
        ("包裹", "我的包裹在哪里?"),
        ("裹", "我的包裹"),
        ("荷物", "私の荷物はどこですか"),
        ("소포", "소포를 보냈어요"),
        ("พัสดุ", "พัสดุของฉันอยู่ที่ไหน"),
        ("iphone 手机", "我的iPhone手机坏了"),
        ("手机iphone", "手机iPhone"),
        ("हिन्दी", "यह हिन्दी है"),
        ("طرد", "أين طرد الشحن"),
        ("AND", "this and that"),
        ("NEAR(a, 5)", "near a 5"),
        ("-rain", "rain"),
        ("snake_case", "a snake_case name"),
        ("3.5", "about 3.5 km"),
        ('parcel "unclosed phr', "an unclosed phr of a parcel"),
        ("col:umn ^x", "col umn x"),
        ("a\0b", "a b"),
    ],
)
def test_it_is_found(query, text):
    """The words of a query are found, by their letters alone."""
    assert finds(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("parcel", "parcels"),
        ("rain parcel", "rain"),
        ('"the in rain"', "in the rain"),
        ("裹包", "包裹"),
        ("包裹", "包了裹"),
        ("हिन", "हिन्दी"),
        ("", "anything"),
        ("*", "anything"),
        ('"" - ( )', "anything"),
    ],
)
def test_it_is_not_found(query, text):
    """What has not all words, in the order of a phrase, is not found; nor anything without a word to find."""
    assert not finds(query, text)


@given(st.text(), st.text(alphabet=st.characters(codec=None, categories=None)))
def test_no_query_is_wrong(query, text):
    """Whatever is asked for, and whatever is kept, SQLite takes it."""
    for asked in (query, text, f'"{query}', f"{text}*", f"{query} AND NOT {text}"):
        finds(asked, text)


@given(st.text(st.sampled_from('ab 包裹พัé."*\n'), max_size=12))
def test_a_text_is_found_by_itself(text):
    """A text that has a letter is found by its own words."""
    words = text.replace('"', " ").replace("*", " ")
    assert finds(words, text) == bool(texts.match(words))


def test_a_piece_is_shown_as_it_was_said():
    """What the index puts between and around characters is not shown; what lies side by side is one match."""
    piece = f"my {texts.BEGIN}包{texts.END}{texts.JOIN}{texts.BEGIN}裹{texts.END}{texts.JOIN}了"
    assert texts.shown(piece) == ("my 包裹了", [(3, 5)])


@pytest.mark.parametrize("said", ["Αθήνα", "Ёжик", "Việt", "nai\u0308ve", "पढ़ना", "각"])
def test_a_word_with_accents_is_shown_as_it_was_said(said):
    """All of it is the match, and its accents stand on their letters."""
    db = tidy.connect(":memory:")
    db.execute(f'CREATE VIRTUAL TABLE t USING fts5(x, tokenize = "{texts.TOKENS}")')
    db.execute("INSERT INTO t VALUES(?)", (texts.spelled(f"so {said}."),))
    asked = f"SELECT highlight(t, 0, '{texts.BEGIN}', '{texts.END}') FROM t WHERE t MATCH ?"
    (piece,) = db.execute(asked, (texts.match(said),)).fetchone()
    db.close()

    whole = unicodedata.normalize("NFC", said)
    assert texts.shown(piece) == (f"so {whole}.", [(3, 3 + len(whole))])


def test_texts_of_values_and_messages():
    """Text is taken from values at any depth, of attachments the name, and of messages what is said."""
    value = {
        "a": ["x", {"b": "y", "n": 3.5}],
        "file": {
            "$attachment": {"sha256": "0" * 64, "media_type": "a/b", "size": 1, "name": "n.pdf"}
        },
        "yes": True,
    }
    assert list(texts.in_value(value)) == ["x", "y", "3.5", "n.pdf"]
    said = [
        {
            "role": "user",
            "parts": [{"type": "text", "content": "hi"}, {"type": "blob", "content": 1}],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "response": "no"}]},
        5,
        {
            "role": "assistant",
            "parts": [{"type": "reasoning", "content": "hm"}, 7, {"type": "text"}],
        },
    ]
    assert list(texts.in_messages(said)) == ["hi", "hm"]
    assert texts.joined(["a", "", "b", "a"]) == "a\n\nb"
