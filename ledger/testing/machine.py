"""Any store against a dumb model: random steps, and after each the store says what the model says.

The model is a list of values for each conversation and a number that counts how often it was made. A
position is remembered with what the model knew when the store gave it, so that old ones can be given
back at any time later.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from ledger.testing.bench import Bench, refused
from ledger.testing.examples import note, notes, same, texts

CONVERSATIONS = ("a", "A")
_STEPS = 25
_EXAMPLES = 60

conversations = st.sampled_from(CONVERSATIONS)
values: st.SearchStrategy[Any] = st.sampled_from(
    [0, 1, 1.0, "", "\u2028\n\x00", None, [], {"a": [1]}]
)
batches = st.lists(values, max_size=3)


class Given(NamedTuple):
    """A position that the store gave, and what the model knew then."""

    conversation: str
    position: Any
    making: int
    """Which of the conversations under this id it was; 0: none yet."""


class Model:
    """What a store is, in the dumbest words."""

    def __init__(self) -> None:
        self.kept: dict[str, list[Any]] = {name: [] for name in CONVERSATIONS}
        self.making = dict.fromkeys(CONVERSATIONS, 0)
        self._makings = 0

    def append(self, name: str, added: list[Any]) -> None:
        """Add values; the first make a conversation."""
        if added and not self.kept[name]:
            self._makings += 1
            self.making[name] = self._makings
        self.kept[name] += added

    def delete(self, name: str) -> bool:
        """Remove a conversation."""
        there = bool(self.kept[name])
        self.kept[name], self.making[name] = [], 0
        return there

    def count(self, name: str) -> int:
        """How many values a conversation holds."""
        return len(self.kept[name])

    def is_of(self, given: Given, name: str) -> bool:
        """Whether a position is of the conversation that now has the id."""
        return given.making in (0, self.making[name])


class StoreMachine(RuleBasedStateMachine):
    """A store and its model, side by side."""

    def __init__(self, bench: Bench) -> None:
        super().__init__()
        self.bench = bench
        self.model = Model()
        self.given: list[Given] = []
        self.open = ExitStack()
        bench.move()
        self.place = bench.place
        self.store = self.opened()

    def opened(self) -> Any:
        """Open the place once more."""
        store = type(self.bench).open_store(self.place)
        self.open.callback(self.bench.close_store, store)
        return store

    def teardown(self) -> None:
        """Compare everything once more, and close."""
        try:
            for name in CONVERSATIONS:
                self.reads(name)
        finally:
            self.open.close()

    def remember(self, name: str, position: Any) -> None:
        """Keep a position that the store gave; only the count if it carries no more."""
        if getattr(position, "incarnation", None) is not None:
            self.given.append(Given(name, position, self.model.making[name]))

    def reads(self, name: str) -> None:
        """Read the whole conversation and the later half of it, and compare."""
        found = self.store.read(name)
        self.are_those_after(0, name, found)
        half = self.model.count(name) // 2
        self.are_those_after(half, name, self.store.read(name, half))
        self.remember(name, getattr(found, "position", None))

    def are_those_after(self, after: int, name: str, found: Any) -> None:
        """Fail unless what was read is what the model has after a place."""
        assert same(texts(found), self.model.kept[name][after:])
        seqs = list(range(after + 1, self.model.count(name) + 1))
        assert [record["seq"] for record in found] == seqs

    # -- what anybody may do

    @rule(name=conversations, added=batches)
    def append(self, name: str, added: list[Any]) -> None:
        """Append without asking."""
        found = self.store.append(name, notes(*added))
        self.model.append(name, added)
        assert found == self.model.count(name)
        self.remember(name, found)

    @rule(name=conversations, added=batches, off=st.integers(-2, 2))
    def append_expecting(self, name: str, added: list[Any], off: int) -> None:
        """Append with the right count or one near it."""
        expect = max(0, self.model.count(name) + off)
        if expect == self.model.count(name):
            assert self.store.append(name, notes(*added), expect=expect) == expect + len(added)
            self.model.append(name, added)
            return
        with refused("store-conflict") as caught:
            self.store.append(name, notes(*added), expect=expect)
        found = (caught.error.expected, caught.error.found)
        assert found == (expect, self.model.count(name))

    @precondition(lambda self: self.given)
    @rule(which=st.integers(0, 30), added=batches)
    def append_expecting_a_position(self, which: int, added: list[Any]) -> None:
        """Append with a position that the store gave once."""
        given = self.given[-1 - which % len(self.given)]
        name = given.conversation
        if given.position == self.model.count(name) and self.model.is_of(given, name):
            found = self.store.append(name, notes(*added), expect=given.position)
            self.model.append(name, added)
            assert found == self.model.count(name)
        else:
            with refused("store-conflict"):
                self.store.append(name, notes(*added), expect=given.position)

    @rule(name=conversations, bad=st.sampled_from([float("nan"), b"", {1: 2}, "\ud800"]))
    def append_what_cannot_be_kept(self, name: str, bad: Any) -> None:
        """Append a batch whose last record is refused."""
        with refused("record-invalid"):
            self.store.append(name, [*notes("x", "y"), note([bad])])

    @rule(name=conversations, after=st.integers(0, 12))
    def read_after(self, name: str, after: int) -> None:
        """Read after a count."""
        if after > self.model.count(name):
            with refused("store-gone"):
                self.store.read(name, after)
        else:
            self.are_those_after(after, name, self.store.read(name, after))

    @precondition(lambda self: self.given)
    @rule(which=st.integers(0, 30))
    def read_after_a_position(self, which: int) -> None:
        """Read after a position that the store gave once."""
        given = self.given[-1 - which % len(self.given)]
        name = given.conversation
        if given.position > self.model.count(name) or not self.model.is_of(given, name):
            with refused("store-gone"):
                self.store.read(name, given.position)
        else:
            self.are_those_after(given.position, name, self.store.read(name, given.position))

    @rule(name=conversations)
    def read(self, name: str) -> None:
        """Read all."""
        self.reads(name)

    # -- what not every store can do

    @precondition(lambda self: not self.bench.is_lacking("delete"))
    @rule(name=conversations)
    def delete(self, name: str) -> None:
        """Delete."""
        assert bool(self.store.delete(name)) is self.model.delete(name)

    @precondition(lambda self: not self.bench.is_lacking("delete"))
    @rule(name=conversations)
    def make_anew(self, name: str) -> None:
        """Delete, and make a conversation of as many records."""
        self.reads(name)
        count = self.model.count(name)
        self.delete(name)
        self.append(name, [0] * count)

    @precondition(lambda self: not self.bench.is_lacking("wait"))
    @rule(name=conversations, off=st.integers(-1, 1))
    def wait_for_no_time(self, name: str, off: int) -> None:
        """Ask whether the conversation is elsewhere."""
        after = max(0, self.model.count(name) + off)
        assert self.store.wait(name, after, 0) is (after != self.model.count(name))

    @precondition(lambda self: self.given and not self.bench.is_lacking("wait"))
    @rule(which=st.integers(0, 30))
    def wait_at_a_position(self, which: int) -> None:
        """Ask whether the conversation is not where the store once said it was."""
        given = self.given[-1 - which % len(self.given)]
        name = given.conversation
        here = given.position == self.model.count(name) and self.model.is_of(given, name)
        assert self.store.wait(name, given.position, 0) is not here

    @precondition(lambda self: not self.bench.is_lacking("conversations"))
    @rule()
    def list_conversations(self) -> None:
        """List."""
        expected = sorted(name for name in CONVERSATIONS if self.model.kept[name])
        assert self.store.conversations() == expected

    @precondition(lambda self: not self.bench.is_lacking("reopening"))
    @rule()
    def go_on_elsewhere(self) -> None:
        """Go on with another store at the same place; the one before stays open."""
        self.store = self.opened()

    @precondition(lambda self: not self.bench.is_lacking("tearing"))
    @rule(name=conversations, part=st.floats(0.02, 0.9))
    def tear(self, name: str, part: float) -> None:
        """Leave the beginning of a record after the last, as a crash does."""
        if not self.model.count(name):
            return
        data = self.bench.read_bytes(self.store, name)
        end = data.rindex(b"\n") + 1
        start = data.rfind(b"\n", 0, end - 1) + 1
        line = data[start : end - 1]
        torn = line[: max(1, int(len(line) * part))]
        self.bench.write_bytes(self.store, name, data[:end] + torn)


class MachineChecks(Bench):
    """The state machine, as one check."""

    def test_random_steps_agree_with_a_dumb_model(self) -> None:
        """Whatever is done in whatever order, the store says what a list would say."""
        run_state_machine_as_test(
            lambda: StoreMachine(self),  # type: ignore[arg-type]
            settings=settings(
                max_examples=len(self.times(_EXAMPLES)),
                stateful_step_count=_STEPS,
                phases=[Phase.generate, Phase.shrink] if self._shrinks else [Phase.generate],
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
