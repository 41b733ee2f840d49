"""What a turn has said by now, as its events tell."""

from hypothesis import given
from hypothesis import strategies as st

from ledger import errors
from ledger.records.events import Writer
from ledger.stores.memory import MemoryStore
from ledger.turns.following import said
from ledger.turns.log import Log
from ledger.turns.programs import recorded
from ledger.turns.scribe import described

TURN = "0190b1c3-0000-7000-8000-000000000001"
AT = "2026-01-01T00:00:00.000000Z"
PROGRAM = described(recorded({"message": ""}, {"result": ""}))
STEPS = st.lists(
    st.one_of(
        st.sampled_from(["one ", "two ", "three "]),
        st.sampled_from(["request", "retry", "aside", "inner", "tool"]),
    )
)


def written(writer, number, step):
    """One event: a piece of the answer, unless the step names another kind."""
    if step == "request":
        return writer.request(number, None, at=AT)
    if step == "retry":
        return writer.retry("again", None, at=AT)
    if step == "tool":
        return writer.tool_call("#1", "look", input={}, invocation=1, at=AT)
    event = writer.text("result", "hm" if step in ("aside", "inner") else step, at=AT)
    if step == "aside":
        return {**event, "field": "reasoning", "answer": False}
    return {**event, "call": TURN[:-1] + "9"} if step == "inner" else event


@given(STEPS)
def test_said_is_the_answers_text_since_the_model_was_asked_last(steps):
    """It is the pieces of the turn's own answer after its last `request` or `retry`, joined; None: none."""
    store, writer = MemoryStore(), Writer(TURN, "p")
    events = [writer.started(PROGRAM, {}, saw=[], at=AT)]
    events += [written(writer, number, step) for number, step in enumerate(steps, 1)]
    store.events.extend(events)

    text = ""
    for step in steps:
        if step in ("request", "retry"):
            text = ""
        elif step.endswith(" "):
            text += step
    assert said(Log(store, "alex"), TURN) == (text or None)


def test_events_that_cannot_be_read_are_none():
    """A store whose events cannot be read now, or that keeps none, tells nothing and fails nothing."""

    class Unreadable:
        def extend(self, events):
            """Keep nothing."""

        def read(self, tree, after=None):
            """Fail."""
            raise errors.StoreIO(where="trees", reason="it is away")

        def wait(self, tree, after, timeout):
            """Know nothing."""
            return False

    class Two:
        def append(self, conversation, records, *, expect=None):
            return 0

        def read(self, conversation, after=0):
            return []

    store = Two()
    assert said(Log(store, "alex"), TURN) is None
    store.events = Unreadable()
    assert said(Log(store, "alex"), TURN) is None
