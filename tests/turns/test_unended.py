"""What is remembered of a log's turns without an end is what its history says of them."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from ledger.records import kinds, times
from ledger.turns.unended import fold
from ledger.views import History, states
from tests.worlds import START

AT = times.to_text(START)
LATER = times.to_text(START + timedelta(seconds=30))
TURNS = st.sampled_from(["a", "b", "c"])
RECORDS = st.one_of(
    st.builds(lambda turn: kinds.new("turn", AT, turn=turn, parent=None, program="p"), TURNS),
    st.builds(
        lambda turn, until: kinds.new("lease", AT, turn=turn, holder="h", until=until, attempt=1),
        TURNS,
        st.sampled_from([AT, LATER]),
    ),
    st.builds(lambda turn: kinds.new("waiting", AT, turn=turn, approvals=[]), TURNS),
    st.builds(lambda turn: kinds.new("ended", AT, turn=turn, state="done", outputs={}), TURNS),
    st.just({"kind": "unreadable"}),
)


@given(st.lists(RECORDS, max_size=12), st.integers(0, 12))
def test_a_fold_of_what_was_added_says_what_the_history_says(records, cut):
    """However the records are cut in two, each turn without an end is there, in its state; and at most others that
    were recorded again after their end."""
    found: dict = {}
    count = fold(found, fold_in := records[:cut], 0)
    fold(found, records[len(fold_in) :], count)
    history = History("c")
    history.extend([kinds.of(record, seq) for seq, record in enumerate(records, 1)])
    now = START + timedelta(seconds=1)

    expected = {
        turn: history.state(turn, now=now)
        for turn in history.order
        if history.node(turn).outcome is None
    }

    known = {
        turn: states.unended(one.lease, waits=one.waits, now=now) for turn, one in found.items()
    }
    assert expected.items() <= known.items()
    again = [r["turn"] for r in records if r["kind"] == "turn"]
    assert all(again.count(turn) > 1 for turn in known.keys() - expected.keys())
