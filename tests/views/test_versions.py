"""Which programs made the turns of a branch: asked before a program continues it."""

from hypothesis import given
from hypothesis import strategies as st

from ledger.records import kinds
from ledger.views import History
from ledger.views.nodes import MOST_VERSIONS

AT = "2026-01-01T00:00:00.000000Z"


def line(programs):
    """A line of turns, each by a program."""
    return [
        kinds.new("turn", AT, turn=f"t{i}", parent=f"t{i - 1}" if i else None, program=program)
        for i, program in enumerate(programs)
    ]


@given(st.lists(st.sampled_from("abcde"), min_size=1, max_size=30))
def test_versions_are_those_of_the_branch(programs):
    """The programs of a branch are those of its turns, each once."""
    history = History.of(line(programs))
    for i in range(len(programs)):
        assert history.versions(f"t{i}") == set(programs[: i + 1])
    assert history.versions(None) == frozenset()


def test_more_programs_than_are_kept_at_each_turn_are_found_by_walking():
    """A branch of very many programs answers the same, without a set at every turn."""
    programs = [str(i) for i in range(3 * MOST_VERSIONS)]
    history = History.of(line(programs))

    assert history.versions(f"t{len(programs) - 1}") == set(programs)
    assert history.node(f"t{len(programs) - 1}").versions is None
