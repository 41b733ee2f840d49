"""Both stores against a list: any order of appends, reads, deletions, reopenings and tears."""

from __future__ import annotations

import shutil
import tempfile

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ledger.errors import StoreConflict, StoreGone
from ledger.stores.folder import FolderStore
from ledger.stores.memory import MemoryStore
from tests.stores.support import Unflushed, foreign, lock_path, log_path, stop, turns

NAMES = st.text("abcé\u2028\n", max_size=3)


class Stores(RuleBasedStateMachine):
    """One conversation in a folder, in memory, and as a list of names (None: unreadable)."""

    @initialize()
    def make(self) -> None:
        self.folder = tempfile.mkdtemp()
        self.reopen()
        self.other = FolderStore(self.folder, calls=Unflushed())
        self.memory = MemoryStore()
        self.model: list[str | None] = []
        self.positions: list = []
        self.same_as_memory = True

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @rule()
    def reopen(self) -> None:
        self.store = FolderStore(self.folder, calls=Unflushed())

    @rule(
        names=st.lists(NAMES, max_size=4),
        by_other=st.booleans(),
        off=st.sampled_from([0, 0, 0, 1, -1]),
    )
    def append(self, names: list[str], by_other: bool, off: int) -> None:
        store = self.other if by_other else self.store
        expect = len(self.model) + off
        batch = [stop(name) for name in names]
        stores = [store, self.memory] if self.same_as_memory else [store]
        if off:
            for one in stores:
                with pytest.raises(StoreConflict) as caught:
                    one.append("c", batch, expect=expect)
                assert caught.value.found == len(self.model)
            return
        for one in stores:
            assert one.append("c", batch, expect=expect) == len(self.model) + len(names)
        self.model += names
        if names:
            self.positions.append(self.store.read("c").position)

    @rule(data=st.data())
    def read(self, data) -> None:
        after = data.draw(st.integers(0, len(self.model) + 2))
        if after > len(self.model):
            with pytest.raises(StoreGone):
                self.store.read("c", after)
            return
        found = self.store.read("c", after)
        assert turns(found) == self.model[after:]
        assert [record["seq"] for record in found] == list(range(after + 1, len(self.model) + 1))

    @precondition(lambda self: self.positions)
    @rule(data=st.data())
    def read_after_a_position(self, data) -> None:
        position = data.draw(st.sampled_from(self.positions))
        assert turns(self.store.read("c", position)) == self.model[position:]

    @rule()
    def delete(self) -> None:
        there = self.store.delete("c")
        assert bool(there) is bool(self.model)
        self.memory.delete("c")
        old, self.positions, self.model = self.positions, [], []
        self.same_as_memory = True
        for position in old[-2:]:
            with pytest.raises(StoreGone):
                self.store.read("c", position)

    @precondition(lambda self: self.model)
    @rule(torn=st.binary(min_size=1, max_size=40).filter(lambda data: b"\n" not in data))
    def tear(self, torn: bytes) -> None:
        path = log_path(self.folder)
        if not path.read_bytes().endswith(b"\n"):
            return  # A whole line that lacks its line feed is no longer one with bytes glued to it.
        with path.open("ab") as file:
            file.write(torn)
        self.store.append("c", [stop("after")])
        self.model.append("after")
        self.same_as_memory = False

    @precondition(lambda self: self.model)
    @rule(data=st.data(), names=st.lists(NAMES, min_size=1, max_size=4))
    def tear_a_batch(self, data, names: list[str]) -> None:
        path = log_path(self.folder)
        before = path.read_bytes()
        if not before.endswith(b"\n"):
            return  # What is set aside before the batch would have to be counted too.
        self.store.append("c", [stop(name) for name in names])
        whole = path.read_bytes()
        cut = data.draw(st.integers(len(before), len(whole)))
        path.write_bytes(whole[:cut])
        ends = [at for at in range(len(before), len(whole)) if whole[at : at + 1] == b"\n"]
        written = sum(at <= cut for at in ends)  # A whole line may lack its line feed.
        if cut >= len(whole) - 1:
            self.model += names
        else:
            self.model += [None] * written
        self.same_as_memory = False
        assert lock_path(self.folder).exists()

    @precondition(lambda self: self.model)
    @rule(name=NAMES, blank=st.sampled_from([b"", b"\n", b" \t\n\r\n"]))
    def foreign_line(self, name: str, blank: bytes) -> None:
        path = log_path(self.folder)
        if not path.read_bytes().endswith(b"\n"):
            return
        import json

        text = json.dumps(name, ensure_ascii=True)[1:-1]
        with path.open("ab") as file:
            file.write(blank + foreign(text, len(self.model) + 1))
        self.model.append(name)
        self.same_as_memory = False

    @rule()
    def copy(self) -> None:
        data = self.store.raw("c")
        position = self.store.read("c").position
        other = MemoryStore()
        assert other.adopt("c", data) == position
        assert other.read("c") == self.store.read("c")
        assert other.verify("c").counts == self.store.verify("c").counts

    @invariant()
    def reads_as_the_list(self) -> None:
        if not hasattr(self, "model"):
            return
        found = self.store.read("c")
        assert turns(found) == self.model
        assert [s.seq for s in self.store.scan("c")] == list(range(1, len(self.model) + 1))
        assert found.position == len(self.model)
        assert self.store.conversations() == (["c"] if self.model else [])
        if self.same_as_memory:
            assert self.memory.read("c") == found
        if self.positions and self.model:
            self.positions = [p for p in self.positions if p <= len(self.model)]


TestStores = Stores.TestCase
TestStores.settings = settings(
    max_examples=120,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
