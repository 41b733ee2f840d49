"""What two texts have in common."""

import random
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.views import words
from ledger.views.words import Piece, matches, pieces

ODD = st.text(alphabet=st.sampled_from("ab \n\t.,–é日本ﬂ́\u200d🙂\r\x0b\u2028"), max_size=40)


def side(found, op):
    """One of the texts, from the pieces."""
    return "".join(piece.text for piece in found if piece.op in ("same", op))


def shortest(a, b):
    """How many items are left over at least: the dumb way, by the table of all beginnings."""
    table = [[i + j for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i, one in enumerate(a, 1):
        for j, other in enumerate(b, 1):
            table[i][j] = min(table[i - 1][j], table[i][j - 1]) + 1
            if one == other:
                table[i][j] = min(table[i][j], table[i - 1][j - 1])
    return table[-1][-1]


@given(ODD, ODD, st.sampled_from([0, 3, words.MOST_STEPS]))
def test_pieces_make_up_both_texts(a, b, most):
    """What is the same or removed is the one text, what is the same or added the other; within any bound."""
    found = pieces(a, b, most=most)

    assert (side(found, "removed"), side(found, "added")) == (a, b)
    assert all(piece.text for piece in found)
    for one, next_one in pairwise(found):
        assert (one.op, next_one.op) not in {("added", "removed")}
        assert one.op != next_one.op


@given(ODD)
def test_a_text_is_the_same_as_itself(text):
    """There is one piece, or none of an empty text."""
    assert pieces(text, text) == [Piece("same", text)] * bool(text)


@given(
    st.lists(st.sampled_from("abcd"), max_size=14), st.lists(st.sampled_from("abcd"), max_size=14)
)
def test_the_fewest_items_are_left_over(a, b):
    """Runs are in order, apart, the same in both, and leave as few items over as can be."""
    found = matches(a, b)

    at = to = left = 0
    for i, j, size in [*found, (len(a), len(b), 0)]:
        assert i >= at
        assert j >= to
        assert a[i : i + size] == b[j : j + size]
        left += (i - at) + (j - to)
        at, to = i + size, j + size
    assert left == shortest(a, b)


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        ("Six parts.", "Six pieces.", "Six [-parts-]{+pieces+}."),
        ("one two three", "one three", "one [-two -]three"),
        ("one\ntwo", "one two", "one[-\n-]{+ +}two"),
        ("red, green, blue", "ash, oak, elm", "[-red, green, blue-]{+ash, oak, elm+}"),
        ("", "new", "{+new+}"),
        ("  x", "x", "[-  -]x"),
        ("5/6", "You need sixths: 5/6 it is.", "[-5/6-]{+You need sixths: 5/6 it is.+}"),
        ("東京は晴れ", "東京は雨", "東京は[-晴れ-]{+雨+}"),
    ],
)
def test_what_changed_is_told_by_words(a, b, told):
    """Words are matched whole, blanks with them, and scripts without blanks by characters."""
    marks = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}
    assert "".join(marks[piece.op].format(piece.text) for piece in pieces(a, b)) == told


def test_past_the_bound_lines_are_compared_then_only_the_ends():
    """Too much for words is compared by lines; too much for lines too, by how both begin and end."""
    a = "one a\n" + "x y z\n" * 3 + "end\n"
    b = "one b\n" + "x y z\n" * 3 + "end\n"
    shuffled = random.Random(1)
    left, right = ([str(shuffled.random()) for _ in range(60)] for _ in range(2))
    by_lines = pieces("\n".join([*left, a]), "\n".join([*right, a]), most=4000)
    assert [piece.op for piece in by_lines] == ["removed", "added", "same"]
    assert by_lines[-1] == Piece("same", a)  # By words it would begin with the line feed before.
    assert pieces(a, b, most=0) == [
        Piece("removed", "one a\n"),
        Piece("added", "one b\n"),
        Piece("same", a[6:]),
    ]


def test_texts_with_nothing_in_common_take_bounded_time():
    """Two long texts of random words are told within the bound, and the cost does not grow with their square."""
    source = random.Random(7)
    a, b = (" ".join(str(source.randrange(10**9)) for _ in range(20_000)) for _ in range(2))
    started = time.process_time()

    found = pieces(a, b, most=50_000)

    assert time.process_time() - started < 5
    assert (side(found, "removed"), side(found, "added")) == (a, b)
