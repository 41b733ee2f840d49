"""A log as the shells use it: what is looked at without its lock is always whole."""

import sys
from datetime import UTC, datetime

import pytest

import ledger
from ledger.turns import commands
from ledger.turns.log import Log

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Looked(ledger.MemoryStore):
    """A store that lets a test look, each time before it gives records."""

    glance = staticmethod(lambda: None)

    def scan(self, conversation, after=0):
        """Let the test look, then give the records."""
        self.glance()
        return super().scan(conversation, after)


@pytest.fixture
def chat():
    """A conversation of three turns, whose log was read."""
    chat = ledger.open("alex", store=Looked())
    for i in range(3):
        chat.record(str(i), "x")
    return chat


def test_a_log_that_is_folded_anew_is_never_seen_in_part(chat):
    """While a log is folded again after a turn was forgotten, others see the turns as they were or are."""
    seen = []
    chat.store.glance = lambda: seen.append(len(chat._log.history.order))

    chat.forget(1)

    assert set(seen) == {3}
    assert len(chat._log.history.order) == 3


def test_what_was_forgotten_is_forgotten_here(chat):
    """When `forget` returns, the folded log says nothing of the turn any more, read again or not."""
    turn = chat.turn(1).id

    chat.forget(1)

    assert chat._log.history.node(turn).erased


def test_nothing_stays_that_could_not_be_read_anew(chat):
    """When the log cannot be read after a turn was erased, what was folded of it is dropped all the same."""
    erase = chat.store.erase

    def erase_and_break(*args, **kwargs):
        found = erase(*args, **kwargs)
        chat.store.glance = fail
        return found

    def fail():
        raise OSError("no disk")

    chat.store.erase = erase_and_break
    chat.forget(1)
    assert len(chat._log.history.order) == 0

    del chat.store.glance
    assert [turn.erased for turn in chat.all_turns()] == [True, False, False]


def test_a_log_that_was_made_anew_is_never_seen_in_part():
    """So it is when the conversation was deleted and made anew by others."""
    store = Looked()
    chat = ledger.open("alex", store=store)
    chat.record("old", "x")
    other = ledger.open("alex", store=store)
    store.delete("alex")
    other.record("new", "x")
    seen = []
    store.glance = lambda: seen.append(list(chat._log.history.order))

    turns = chat.all_turns()

    assert [turn.inputs["message"] for turn in turns] == ["new"]
    assert [len(order) for order in seen] == [1, 1]


def test_a_log_can_be_looked_at_by_position():
    """The position is that of what was folded."""
    store = ledger.MemoryStore()
    ledger.open("alex", store=store).record("a", "b")
    log = Log(store, "alex")
    assert log.position == 0
    log.read()
    assert log.position == 3


def test_what_is_appended_last_is_folded_when_it_is_asked_for(chat):
    """Who asks nothing after an append gets the history it was decided on; the next read has it all."""
    log = Log(chat.store, "alex")
    decided = log.append(lambda history: commands.entry("own", "note", 1, now=NOW), last=True)
    position = decided.position

    assert log.read().position == position + 1


VERBS = {
    "record": lambda chat, deep: chat.record({"message": "hi", "deep": deep}, {"result": "x"}),
    "keep_entry": lambda chat, deep: chat.keep_entry("x", "y", {"deep": deep}),
    "rate": lambda chat, deep: chat.turn(1).rate(1),
    "forget": lambda chat, deep: chat.forget(1),
}


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_verb_that_raises_deep_in_the_stack_did_nothing(verb):
    """However little of the stack is left: what was appended is returned, and is known here."""
    deep: object = 1
    for _ in range(120):
        deep = [deep]

    def count():
        return len(store.read("alex")), store.erasures("alex")

    def down(levels):
        return down(levels - 1) if levels else VERBS[verb](chat, deep)

    raised = answered = 0
    for levels in range(sys.getrecursionlimit() - 300, sys.getrecursionlimit() - 20, 3):
        store = ledger.MemoryStore()
        chat = ledger.open("alex", store=store)
        chat.record("first", "x")
        before = count()
        try:
            down(levels)
        except RecursionError:
            raised += 1
            assert count() == before
        else:
            answered += 1
            assert count() != before
        assert len(chat.all_turns()) == len(ledger.open("alex", store=store).all_turns())
    assert raised
    assert answered
