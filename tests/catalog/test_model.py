"""The catalog beside one who opens every conversation: after whatever was done, both answer the same."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ledger
from ledger.catalog import Catalog, refreshing
from ledger.stores import names
from ledger.stores.sql import ends
from ledger.views import History
from tests.catalog import oracle
from tests.catalog.test_folder_index import hidden
from tests.stores.support import Unflushed
from tests.testing import sql_places
from tests.views import build
from tests.worlds import FakeWorld

CONVERSATIONS = ["a", "b", "c"]
WORDS = ["parcel", "rain", "包裹", "walrus"]
WORLD = FakeWorld()
WORLD.time = build.NOW


@st.composite
def _turn(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Records of a turn that has, or has not, ended; honest but for a name that may be taken."""
    name, parent = draw(build.NAMES), draw(st.one_of(st.none(), build.NAMES))
    text = draw(st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join))
    reads = draw(st.one_of(st.none(), st.lists(build.NAMES, max_size=2)))
    source = draw(st.sampled_from([None, None, {"format": "f"}, _DATED]))
    told = {"reads": reads, "source": source}
    sent = build.turn(
        name, parent, inputs={"m": text}, **{key: one for key, one in told.items() if one}
    )
    state = draw(st.sampled_from(["done", "done", "failed", None]))
    usage = {"in": draw(st.integers(0, 5))}
    said = {"r": draw(st.sampled_from(WORDS))}
    end = [
        build.ended(
            name,
            state or "done",
            outputs=said,
            model=draw(st.sampled_from(["m", "n"])),
            usage=usage,
        )
    ]
    return [sent, build.lease(name, draw(st.sampled_from([build.PAST, build.AHEAD])))] + end * bool(
        state
    )


_DATED = {"format": "f", "created": "2025-05-01T00:00:00Z"}
_beside = st.one_of(
    st.builds(
        lambda text: [build.new("entry", plugin="ledger", entry="title", data=text)],
        st.sampled_from(WORDS),
    ),
    st.builds(
        lambda label, on, turn: [
            build.new(
                "entry", plugin="ledger", entry="label", data={"label": label, "on": on}, turn=turn
            )
        ],
        st.sampled_from(WORDS),
        st.booleans(),
        st.one_of(st.none(), build.NAMES),
    ),
    st.builds(lambda name: [build.new("head", turn=name)], build.NAMES),
    st.builds(lambda name: [build.waiting(name, (build.question(),))], build.NAMES),
)
_steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"), st.sampled_from(CONVERSATIONS), st.one_of(_turn(), _turn(), _beside)
        ),
        st.tuples(
            st.sampled_from(["erase", "erase unseen"]), st.sampled_from(CONVERSATIONS), build.NAMES
        ),
        st.tuples(st.just("delete"), st.sampled_from(CONVERSATIONS), st.none()),
        st.tuples(st.just("ask"), st.none(), st.none()),
        st.tuples(st.sampled_from(["rebuild", "harm", "restart"]), st.none(), st.none()),
    ),
    max_size=14,
)


def compare(catalog: Catalog, store: Any) -> None:
    """Ask the catalog everything, and find the same by folding every log."""
    histories = {
        name: History.of(store.read(name), conversation=name) for name in store.conversations()
    }
    found = {each.id: each for each in catalog.conversations()}
    assert set(found) == set(histories)
    for name, history in histories.items():
        expected, row = oracle.row(history, build.NOW), found[name]
        assert (row.turns, row.heads, row.states) == (
            expected["turns"],
            expected["heads"],
            expected["states"],
        )
        assert set(row.models) == set(expected["models"])
        assert (row.usage, row.head, row.title) == (
            expected["usage"],
            expected["head"],
            expected["title"],
        )
        assert (row.labels, row.preview) == (expected["labels"], expected["preview"])
    compare_usage(catalog, histories)
    for word in WORDS:
        hits = {(hit.conversation, hit.turn) for hit in catalog.search(word, limit=1000)}
        assert hits == {
            (name, turn)
            for name, history in histories.items()
            for turn in [None, *history.order]
            if word in text(history, turn)
        }
        labelled = {name for name, history in histories.items() if word in history.labels()}
        narrowed = catalog.search(word, labels=[word], limit=1000)
        assert {(hit.conversation, hit.turn) for hit in narrowed} == {
            hit for hit in hits if hit[0] in labelled
        }


def compare_usage(catalog: Catalog, histories: dict[str, History]) -> None:
    """Sum what turns used, each once: as the first conversation says that says something."""
    once: dict[str, Any] = {}
    for name in sorted(histories):
        for node in histories[name].nodes.values():
            known = once.get(node.id)
            if known is None or (oracle.tokens(node) and not oracle.tokens(known)):
                once[node.id] = node
    turns: Counter[Any] = Counter(oracle.model_of(node) for node in once.values())
    tokens: Counter[Any] = Counter()
    for node in once.values():
        tokens[oracle.model_of(node)] += sum(oracle.tokens(node).values())
    found = {each.key: (each.turns, sum(each.tokens.values())) for each in catalog.usage()}
    assert found == {key: (count, tokens[key]) for key, count in turns.items()}
    months = Counter(oracle.month(node) for node in once.values())
    assert {each.key: each.turns for each in catalog.usage("month")} == months


def text(history: History, turn: str | None) -> list[str]:
    """All words that are said in a turn, or of the conversation itself."""
    labels = oracle.labels(history, turn)
    if turn is None:
        return [*(oracle.title(history) or "").split(), *labels]
    node = history.nodes[turn]
    values = [
        oracle.value(node.record.inputs),
        oracle.value(node.ended.outputs) if node.ended else {},
    ]
    said = [
        word for value in values for each in (value or {}).values() for word in str(each).split()
    ]
    return [*said, *labels]


def harm(folder: Path) -> None:
    """Do to an index what accidents do."""
    path = folder / names.INDEX
    if path.exists():
        os.truncate(path, path.stat().st_size * 2 // 3)


def check(store: Any, steps: Any, opened: Any, place: Path) -> None:
    """Do steps to a store and its catalog, and compare."""
    catalog = Catalog(store, world=WORLD)
    for step, conversation, what in steps:
        if step == "append":
            store.append(conversation, what)
        elif step == "erase":
            store.erase(conversation, what)
        elif step == "erase unseen" and (place / names.INDEX).exists():
            with hidden(store):
                store.erase(conversation, what)
        elif step == "delete":
            store.delete(conversation)
        elif step == "rebuild":
            catalog.rebuild()
        elif step == "harm":
            harm(place)
        elif step == "restart":
            store = opened()
            catalog = Catalog(store, world=WORLD)
        else:
            compare(catalog, store)
    compare(catalog, store)


@pytest.mark.parametrize("kind", ["memory", "folder"])
@given(steps=_steps)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_the_catalog_says_what_the_logs_say(kind, steps):
    """After any appends, erasures, deletions, restarts and damage, all that is asked is as the logs say."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "store"
        memory = ledger.MemoryStore()

        def opened() -> Any:
            if kind == "memory":
                return memory
            return ledger.FolderStore(place, calls=Unflushed())

        check(opened(), steps, opened, place)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@given(steps=_steps)
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
def test_the_catalog_says_what_the_logs_in_a_database_say(kind, steps):
    """The same where the index is in the database that keeps the logs."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(ends, "_SOME", 3)  # Longer logs are taken in parts.
        patch.setattr(refreshing, "_AT_ONCE", 5)
        place = sql_places.place_of(kind, Path(folder))

        def opened() -> Any:
            return stack.enter_context(sql_places.open_sql(place))

        check(opened(), steps, opened, Path(folder))
