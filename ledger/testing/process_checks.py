"""Checks of several processes: one winner, nothing lost, and what a killed writer leaves."""

from __future__ import annotations

import random
from collections import Counter

from ledger.testing import jobs
from ledger.testing.bench import Bench, needs
from ledger.testing.children import children, together
from ledger.testing.examples import notes, texts

PROCESSES = 4


class ProcessChecks(Bench):
    """What holds when other processes use the place."""

    @needs("processes")
    def test_processes_have_one_winner_per_expect(self) -> None:
        """Of processes that expect the same count, one adds its record and all others conflict."""
        self.move()
        rounds = len(self.times(60))
        opener = type(self).open_store
        done = together(PROCESSES, self.patience_s * 3, jobs.race, opener, self.place, rounds)
        assert Counter(outcome for told in done for outcome in told) == Counter(
            {
                **{(count, "won"): 1 for count in range(rounds)},
                **{(count, "store-conflict"): PROCESSES - 1 for count in range(rounds)},
            }
        )
        found = texts(self.again().read("c"))
        assert [text.split("-")[0] for text in found] == [str(count) for count in range(rounds)]

    @needs("processes")
    def test_processes_lose_nothing(self) -> None:
        """Without `expect`, all that processes append at once is there once, each batch together."""
        self._fill(times=len(self.times(15)), threads=2)

    @needs("processes")
    def test_processes_are_the_first_users(self) -> None:
        """A place nobody has used takes the first appends of threads of several processes at once."""
        for _ in self.times(4):
            self._fill(times=1, threads=4)

    def _fill(self, *, times: int, threads: int) -> None:
        self.move()
        opener = type(self).open_store
        done = together(
            PROCESSES, self.patience_s * 3, jobs.add_in_threads, opener, self.place, threads, times
        )
        names = [f"{number}.{n}" for number in range(PROCESSES) for n in range(threads)]
        store = self.again()
        found = texts(store.read("c"))
        assert jobs.runs(found) == Counter(
            {(f"{name}-{i}", 1 + i % 3): 1 for name in names for i in range(times)}
        )
        counts = [count for told in done for count in told]
        assert len(set(counts)) == len(counts)
        assert max(counts) == len(found)
        for name in names:
            assert texts(store.read(f"own-{name}")) == [name]

    @needs("processes")
    def test_readers_in_other_processes_see_whole_batches(self) -> None:
        """Reading while another process appends gives whole batches, and what was read goes on."""
        store = self.fresh()
        times = len(self.times(60))
        opener = type(self).open_store
        reader = jobs.Reader(store)
        with children(2) as (writer, follower):
            follower.prepare(jobs.follow, opener, self.place, 3 * times)
            writer.prepare(jobs.write_batches, opener, self.place, times)
            follower.begin(self.patience_s)
            writer.begin(self.patience_s)
            while not writer.said_within(0):
                reader.look()
            assert writer.result(self.patience_s) == times
            assert follower.result(self.patience_s) == []
        reader.look()
        assert reader.wrong == []
        assert reader.count == 3 * times

    @needs("processes")
    def test_another_process_sees_what_was_appended(self) -> None:
        """A record is there for a process that starts to read after the append returned."""
        store = self.fresh()
        with children(1) as (child,):
            for count in range(1, 4):
                store.append("c", notes(count))
                child.prepare(jobs.read_all, type(self).open_store, self.place)
                child.begin(self.patience_s)
                expected = list(range(1, count + 1))
                assert child.result(self.patience_s) == (count, expected)

    @needs("processes", "delete")
    def test_delete_by_another_process_is_noticed(self) -> None:
        """A conversation that another process deleted and made anew is read anew."""
        store = self.fresh()
        store.append("c", notes("old 1", "old 2"))
        store.read("c")
        with children(1) as (child,):
            child.prepare(jobs.add_and_delete, type(self).open_store, self.place)
            child.begin(self.patience_s)
            assert child.result(self.patience_s) is True
        assert texts(store.read("c")) == ["new 1", "new 2"]
        assert store.append("c", notes("a"), expect=2) == 3

    @needs("processes")
    def test_killed_writer_leaves_whole_batches(self) -> None:
        """Killed at any moment, a writer leaves each batch whole or not at all; appends go on.

        A batch that was acknowledged is there. Lines of one that was not may be `unreadable`.
        """
        store = self.fresh()
        chance = random.Random(0)
        acknowledged: list[str] = []
        for number in self.times(6):
            acknowledged += self._write_and_kill(f"w{number}", chance)
            before = len(store.read("c"))
            assert store.append("c", notes(f"after {number}"), expect=before) == before + 1
            assert texts(self.again().read("c", before)) == [f"after {number}"]
        found = texts(store.read("c"))
        kept = [text for text in found if text is not None and not text.startswith("after")]
        batches = [kept[i : i + 3] for i in range(0, len(kept), 3)]
        assert all(len(batch) == 3 and len(set(batch)) == 1 for batch in batches)
        names = [batch[0].rpartition("-")[0] for batch in batches]
        assert len(set(names)) == len(names)
        assert sorted(set(acknowledged) - set(names)) == []
        assert [record["seq"] for record in store.read("c")] == list(range(1, len(found) + 1))

    def _write_and_kill(self, name: str, chance: random.Random) -> list[str]:
        """Kill a writer at a random moment. Returns: the batches that were acknowledged to it."""
        with children(1) as (child,):
            child.prepare(jobs.write_until_killed, type(self).open_store, self.place, name)
            child.begin(self.patience_s)
            heard = [child.hear(self.patience_s) for _ in range(chance.randint(1, 4))]
            child.hear(self.patience_s)
            moment = chance.random() * 0.004
            while child.said_within(moment):
                heard.append(child.hear(self.patience_s))
                moment *= 0.5
            return heard + child.kill()
