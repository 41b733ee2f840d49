"""The catalog's answers, on every kind of store: listing, pages, states by now, search, usage."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

import ledger
from ledger.catalog import Catalog
from ledger.catalog.answers import Order
from ledger.catalog.catalog import _kept_of
from ledger.errors import StoreDenied, StoreUnsupported
from tests.stores.support import Unflushed
from tests.testing.sql_places import open_sql, place_of
from tests.views import build
from tests.worlds import START, FakeWorld

DAY = timedelta(days=1)


@pytest.fixture(params=["memory", "folder", "listing", "sqlite", "postgres"])
def store(request, tmp_path):
    """A store of each kind: in memory, in a folder, in databases, and another's that can only list besides."""
    if request.param == "memory":
        yield ledger.MemoryStore()
    elif request.param == "folder":
        yield ledger.FolderStore(tmp_path / "store", calls=Unflushed())
    elif request.param == "listing":
        yield Listing()
    else:
        with open_sql(place_of(request.param, tmp_path)) as found:
            yield found
            assert in_memory(found) is None


def in_memory(store):
    """The index in this process's memory that is used in place of the one in a database; None: there is none."""
    return _kept_of(store)._instead._index


class Listing:
    """The least that a catalog needs of a store."""

    def __init__(self):
        self.inner = ledger.MemoryStore()

    def append(self, conversation, records, *, expect=None):
        return self.inner.append(conversation, records, expect=expect)

    def read(self, conversation, after=0):
        return list(self.inner.read(conversation, after))

    def conversations(self):
        return self.inner.conversations()


class Awaited(Listing):
    """The same with coroutines."""

    async def append(self, conversation, records, *, expect=None):
        return self.inner.append(conversation, records, expect=expect)

    async def read(self, conversation, after=0):
        return list(self.inner.read(conversation, after))

    async def conversations(self):
        return self.inner.conversations()


def put(store, conversation, *records):
    """Append records."""
    store.append(conversation, list(records))


def said(name, text, at=build.AT, **keys):
    """The records of a turn of one sentence and its echo."""
    model, usage = keys.pop("model", "m"), keys.pop("usage", {})
    return [
        {**build.turn(name, inputs={"message": text}, **keys), "at": at},
        {
            **build.ended(name, outputs={"result": f"you said {text}"}, model=model, usage=usage),
            "at": at,
        },
    ]


def at(day: int, hour: int = 12) -> str:
    """A time in January 2026, as records have it."""
    return f"2026-01-{day:02}T{hour:02}:00:00.000000Z"


def ids(found):
    """The ids of what was listed."""
    return [each.id for each in found]


def title(text):
    """The record of a title."""
    return build.new("entry", plugin="ledger", entry="title", data=text)


def label(text, on=True, turn=None):
    """The record of a label."""
    named = {} if turn is None else {"turn": turn}
    return build.new(
        "entry", plugin="ledger", entry="label", data={"label": text, "on": on}, **named
    )


# -- listing ---------------------------------------------------------------------------------------------


def test_a_row_tells_of_a_conversation(store):
    """A row has title, labels, counts, models, times, tokens and the head."""
    put(store, "c", *said("a", "one", at(1), usage={"in": 3}), title("First"), title("Sums"))
    put(store, "c", label("good"), label("bad"), label("bad", on=False), label("x", turn="a"))
    put(store, "c", *said("b", "two", at(2), parent="a", model="n", usage={"in": 4, "out": 1}))
    put(store, "c", *said("d", "three", at(3), parent="a", model="n"))

    (row,) = ledger.catalog.of(store).conversations()
    assert (row.id, row.title, row.labels) == ("c", "Sums", ["good"])
    assert (row.turns, row.heads, row.states) == (3, 2, {"done": 3})
    assert (row.models, row.usage, row.head) == (["n", "m"], {"in": 7, "out": 1}, "d")
    assert (row.first, row.last) == (
        datetime(2026, 1, 1, 12, tzinfo=UTC),
        datetime(2026, 1, 3, 12, tzinfo=UTC),
    )
    assert row.source is None
    assert row.preview == "one"


def test_what_was_asked_first_stands_for_a_title(store):
    """It is the first that has words, inputs before messages, on one line."""
    image = {"$attachment": {"sha256": "0" * 64, "media_type": "image/png", "size": 1}}
    told = [
        {"role": r, "parts": [{"type": "text", "content": f"{r}s"}]} for r in ("system", "user")
    ]
    put(store, "a", build.turn("1", inputs={"message": "  "}), build.turn("2", inputs={"m": image}))
    put(store, "b", build.turn("1", inputs={"message": ""}, messages=told))
    put(store, "c", build.turn("1", inputs={"q": "what\n\nis", "n": 2, "about": ["it", "all"]}))
    put(store, "d", build.turn("1", inputs={"message": "é" * 99 + "\x1b" + "é" * 99}))

    assert {row.id: row.preview for row in ledger.catalog.of(store).conversations()} == {
        "a": None,
        "b": "users",
        "c": "what is 2 it all",
        "d": "é" * 99 + "…",
    }


def test_filters_hold_together(store):
    """Each filter leaves out what does not fit it, and all have to fit."""
    put(store, "a", *said("1", "x", at(1)), title("The Parcel"), label("post"))
    put(store, "b", *said("2", "x", at(2), model="n"), *said("3", "y", at(2)), title("parcels"))
    put(store, "c", *said("4", "x", at(3), model="n"), label("post"), label("late"))
    put(store, "d", build.turn("5"), build.ended("5", "failed"))
    catalog = ledger.catalog.of(store)

    assert ids(catalog.conversations("PARCEL")) == ["b", "a"]
    assert ids(catalog.conversations(labels=["post"])) == ["c", "a"]
    assert ids(catalog.conversations(labels=["post", "late"])) == ["c"]
    assert ids(catalog.conversations(models=["n"])) == ["c", "b"]
    assert ids(catalog.conversations(models=["n", "m"], min_turns=2)) == ["b"]
    assert ids(catalog.conversations(states=["failed"])) == ["d"]
    assert ids(catalog.conversations(since=datetime(2026, 1, 2, 12, tzinfo=UTC))) == ["c", "b"]
    assert ids(catalog.conversations(until=datetime(2026, 1, 1, 12, tzinfo=UTC))) == ["a", "d"]
    assert ids(catalog.conversations("parcel", models=["n"])) == ["b"]
    assert ids(catalog.conversations("%")) == []
    assert ids(catalog.conversations(order="id")) == ["a", "b", "c", "d"]


def test_pages_go_on_while_others_write(store):
    """Pages by id miss nothing and repeat nothing, whatever is written between them; by time nothing is repeated."""
    for number in range(7):
        put(store, f"c{number}", *said("t", "x", at(number + 1)))
    catalog = ledger.catalog.of(store)
    by: list[tuple[Order, list[str] | None]] = [("id", [f"c{n}" for n in range(7)]), ("last", None)]
    for order, expected in by:
        found, after, pages = [], None, 0
        while pages == 0 or after is not None:
            page = catalog.conversations(order=order, limit=2, after=after)
            found += ids(page)
            after, pages = page.after, pages + 1
            put(store, f"c{pages}", *said(f"{order}{pages}", "y", at(20 + pages)))
        assert len(found) == len(set(found))
        assert expected is None or found == expected
    assert catalog.conversations(limit=7).after is None


def test_a_cursor_is_of_its_order():
    """A cursor of another order, or none at all, is refused by name."""
    store = ledger.MemoryStore()
    for name in "ab":
        put(store, name, *said("t", "x"))
    catalog = ledger.catalog.of(store)
    after = catalog.conversations(limit=1).after
    with pytest.raises(ValueError, match="by 'last', not by 'id'"):
        catalog.conversations(order="id", after=after)
    for wrong in ("", "x", "é", after[:-3]):
        with pytest.raises(ValueError, match="no `after`"):
            catalog.conversations(after=wrong)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"states": ["asleep"]}, ValueError),
        ({"states": "done"}, TypeError),
        ({"models": "m"}, TypeError),
        ({"limit": 0}, ValueError),
        ({"order": "size"}, ValueError),
        ({"since": datetime(2026, 1, 1)}, ValueError),  # noqa: DTZ001
        ({"since": "7d"}, TypeError),
        ({"until": 5}, TypeError),
        ({"title": 5}, TypeError),
        ({"min_turns": "3"}, ValueError),
        ({"min_turns": -1}, ValueError),
    ],
)
def test_wrong_filters_are_refused(wrong, error):
    """A filter that can hold for nothing is an error that names it, not an empty list."""
    [name] = wrong
    with pytest.raises(error, match={"states": "state", "models": "models"}.get(name, name)):
        ledger.catalog.of(ledger.MemoryStore()).conversations(**wrong)


def test_a_date_stands_for_its_day(store):
    """`since` a date begins with it, `until` a date ends with it: the days of UTC, for usage of its zone."""
    put(store, "a", *said("t", "x", at(1), usage={"in": 1}))
    put(store, "b", *said("u", "x", at(2), usage={"in": 2}))
    catalog = ledger.catalog.of(store)
    one, two = (datetime.fromisoformat(at(day)).date() for day in (1, 2))

    def found(**asked):
        return [row.id for row in catalog.conversations(order="id", **asked)]

    assert found(since=one, until=two) == ["a", "b"]
    assert (found(since=two), found(until=one)) == (["b"], ["a"])
    assert [hit.conversation for hit in catalog.search("x", since=two)] == ["b"]
    assert [each.tokens for each in catalog.usage(until=one)] == [{"in": 1}]


# -- states ----------------------------------------------------------------------------------------------


class Undertaker(ledger.MemoryStore):
    """A memory that knows who is dead."""

    dead: frozenset[str] = frozenset()
    last_words: tuple = ()

    def is_dead(self, holder):
        if holder in self.dead and self.last_words:
            words, self.last_words = self.last_words, ()
            self.append("c", list(words))
        return holder in self.dead


def lease(until_s: float, **keys):
    """A lease that lasts some seconds from the start."""
    until = (START + timedelta(seconds=until_s)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {**build.lease("t", until, holder="h:1:x"), **keys}


def test_states_are_those_of_now():
    """A turn runs until its lease ran out, and is interrupted then, though nothing was written."""
    store, world = ledger.MemoryStore(), FakeWorld()
    put(store, "c", build.turn("t"), lease(30))
    catalog = Catalog(store, world=world)

    assert catalog.conversations()[0].states == {"running": 1}
    assert ids(catalog.conversations(states=["running"])) == ["c"]
    world.pass_time(31)
    assert catalog.conversations()[0].states == {"interrupted": 1}
    assert ids(catalog.conversations(states=["running"])) == []
    assert ids(catalog.conversations(states=["interrupted", "failed"])) == ["c"]


def test_a_dead_holder_is_seen_at_once():
    """A turn whose holder is known dead is interrupted though its lease lasts; elsewhere booted, it is not."""
    store, world = Undertaker(), FakeWorld()
    put(store, "c", build.turn("t"), lease(30, boot="boot-1"))
    put(store, "d", build.turn("t"), lease(30, boot="another"))
    catalog = Catalog(store, world=world)
    assert ids(catalog.conversations(states=["running"])) == ["c", "d"]

    store.dead = frozenset({"h:1:x"})
    assert ids(catalog.conversations(states=["running"])) == ["d"]


def test_what_a_holder_wrote_before_it_died_counts():
    """Who is dead may have ended its turn just before it was asked about: then the turn is done."""
    store, world = Undertaker(), FakeWorld()
    put(store, "c", build.turn("t"), lease(30, boot="boot-1"))
    store.dead, store.last_words = frozenset({"h:1:x"}), (build.ended("t"),)

    assert Catalog(store, world=world).conversations()[0].states == {"done": 1}


def test_a_lease_of_a_wrong_clock_ends_by_ours():
    """A lease that reaches far ahead is over a lease's length after it was first seen, by the monotonic clock."""
    store, world = ledger.MemoryStore(), FakeWorld()
    put(store, "c", build.turn("t"), lease(100_000))
    catalog = Catalog(store, world=world)
    assert catalog.conversations()[0].states == {"running": 1}
    world.pass_time(31)
    assert catalog.conversations()[0].states == {"interrupted": 1}


def test_who_waits_is_found_with_what_is_asked(store):
    """Turns that wait are listed with their open questions, the longest waiting first; answered ones are not asked."""
    two = (
        build.question("p#1", 1, id="q1"),
        build.question("p#1", 2, name="refund", path="p/refund"),
    )
    put(
        store,
        "b",
        build.turn("t"),
        build.lease("t"),
        {**build.waiting("t", two), "at": at(2)},
        title("B"),
    )
    put(store, "a", build.turn("t"), {**build.waiting("t", two), "at": at(1)})
    put(store, "a", build.approval("t", "p#1", 1))
    put(store, "c", build.turn("t"), build.waiting("t", two), build.lease("t", build.AHEAD))
    put(store, "d", build.turn("t"), build.waiting("t", two), build.ended("t"))
    catalog = ledger.catalog.of(store)

    first, second = catalog.waiting()
    assert (first.conversation, first.turn, first.ordinal, first.title) == ("a", "t", 1, None)
    assert [q["name"] for q in first.questions] == ["refund"]
    assert (second.conversation, second.title, second.since) == (
        "b",
        "B",
        START + DAY * 1 + DAY / 2,
    )
    assert [(q["name"], q["key"]) for q in second.questions] == [
        ("pay", "p#1:1"),
        ("refund", "p#1:2"),
    ]
    assert ids(catalog.conversations(states=["waiting"])) == ["a", "b"]


# -- search ----------------------------------------------------------------------------------------------


def test_words_are_found_where_they_were_said(store):
    """A hit names conversation, turn and ordinal, and shows what was found; a title is found as well."""
    put(store, "a", *said("t", "nothing"), *said("u", "Where is my parcel?", model="n"))
    put(store, "b", *said("t", "hello"), title("The lost parcel"))
    catalog = ledger.catalog.of(store)

    hits = {(hit.conversation, hit.ordinal): hit for hit in catalog.search("parcel")}
    assert set(hits) == {("a", 2), ("b", None)}
    hit = hits["a", 2]
    assert (hit.turn, hit.model, hit.marked()) == ("u", "n", "Where is my [parcel]?")
    assert hits["b", None].marked("<", ">") == "The lost <parcel>"
    assert hits["b", None].turn is None
    ranks = [hit.rank for hit in catalog.search("parcel")]
    assert ranks == sorted(ranks, reverse=True)


def test_search_filters(store):
    """Hits are of one conversation, of models, and of a time, and no more than asked for."""
    for number in range(5):
        put(store, f"c{number}", *said("t", "parcel", at(number + 1), model=f"m{number % 2}"))
    catalog = ledger.catalog.of(store)
    since = datetime(2026, 1, 4, tzinfo=UTC)
    assert {hit.conversation for hit in catalog.search("parcel", since=since)} == {"c3", "c4"}
    assert {hit.conversation for hit in catalog.search("parcel", models=["m1"])} == {"c1", "c3"}
    assert [hit.conversation for hit in catalog.search("parcel", conversation="c2")] == ["c2"]
    assert len(catalog.search("parcel", limit=2)) == 2


def test_a_search_is_of_labels_and_of_several_conversations(store):
    """Hits of others are no hits, so a limit cuts none of those that are asked for."""
    for number in range(30):
        put(store, f"ann.{number}", *said("t", "common", at(1)), label("user:ann"))
    put(store, "bob.1", *said("t", "common", at(1)), label("user:bob"), label("work"))
    put(store, "bob.2", *said("t", "common", at(1)), label("user:bob"))
    catalog = ledger.catalog.of(store)

    def found(**how):
        return {hit.conversation for hit in catalog.search("common", limit=20, **how)}

    assert found(labels=["user:bob"]) == {"bob.1", "bob.2"}
    assert found(labels=["user:bob", "work"]) == {"bob.1"}
    assert (
        found(labels=["user:bo"])
        == found(conversation=[])
        == found(conversation="b\u00f6b")
        == found(conversation="b\0b")
        == set()
    )
    assert found(conversation=["bob.2", "ann.3", "nobody"]) == {"bob.2", "ann.3"}
    assert found(conversation=["bob.2", "ann.3"], labels=["user:ann"]) == {"ann.3"}
    with pytest.raises(TypeError, match="labels is a list"):
        found(labels="user:bob")
    with pytest.raises(TypeError, match="conversation is text"):
        found(conversation=[7])


def test_labels_and_messages_are_searched(store):
    """Labels of turns and of conversations, messages and what a stopped turn had said are found."""
    put(store, "a", *said("t", "x"), label("urgent", turn="t"), label("invoices"))
    messages = [{"role": "user", "parts": [{"type": "text", "content": "walrus"}]}]
    put(
        store,
        "b",
        build.turn("t", messages=messages),
        build.ended("t", "stopped", partial="half a zebra"),
    )
    catalog = ledger.catalog.of(store)
    found = {
        word: [(h.conversation, h.ordinal) for h in catalog.search(word)]
        for word in ("urgent", "invoices", "walrus", "zebra")
    }
    assert found == {
        "urgent": [("a", 1)],
        "invoices": [("a", None)],
        "walrus": [("b", 1)],
        "zebra": [("b", 1)],
    }
    put(store, "a", label("urgent", on=False, turn="t"), label("invoices", on=False))
    assert catalog.search("urgent") == catalog.search("invoices") == []
    assert len(catalog.search("x")) == 1


def test_hostile_text_is_kept_and_found(store):
    """Control characters, marks of ours and odd Unicode break neither the index nor the snippet."""
    put(
        store,
        "a",
        *said("t", "\x02a\x03\x1b[2J parcel\x1f \u202e\ufeff 𝔘 \x00 end"),
        title("\x07bell"),
    )
    catalog = ledger.catalog.of(store)
    (hit,) = catalog.search("parcel")
    assert "[parcel]" in hit.marked()
    assert "\x02" not in hit.snippet
    assert catalog.conversations("BELL")[0].title == "\x07bell"


# -- usage -----------------------------------------------------------------------------------------------


def test_usage_is_summed_once_per_turn(store):
    """A turn that is in several conversations counts once in the store; tokens are summed by kind."""
    copied = said("t", "x", at(1), usage={"in": 5, "out": 1})
    put(store, "a", *copied, *said("u", "y", at(2), model="n", usage={"in": 1}))
    put(store, "b", *copied, *said("v", "z", at(2), usage={"in": 2}))
    put(store, "c", build.turn("w"), build.ended("w", "failed"))
    catalog = ledger.catalog.of(store)

    def told(found):
        return [(each.key, each.turns, each.tokens) for each in found]

    assert told(catalog.usage()) == [
        ("m", 2, {"in": 7, "out": 1}),
        ("n", 1, {"in": 1}),
        (None, 1, {}),
    ]
    assert told(catalog.usage("conversation")) == [
        ("a", 2, {"in": 6, "out": 1}),
        ("b", 1, {"in": 2}),
        ("c", 1, {}),
    ]
    assert told(catalog.usage("conversation", conversation="b")) == [("b", 2, {"in": 7, "out": 1})]
    since = datetime(2026, 1, 2, tzinfo=UTC)
    assert told(catalog.usage(since=since)) == [("m", 1, {"in": 2}), ("n", 1, {"in": 1})]
    assert told(catalog.usage("month")) == [("2026-01", 4, {"in": 8, "out": 1})]
    with pytest.raises(ValueError, match="not by 'colour'"):
        catalog.usage("colour")  # type: ignore[arg-type]


def test_usage_is_of_labels_and_summed_by_them(store):
    """A turn counts for each label of its conversation; those of no label are together."""
    put(store, "a", *said("t", "x", at(1), usage={"in": 1}), label("ann"), label("work"))
    put(store, "b", *said("u", "x", at(1), usage={"in": 2}), label("bob"), label("work"))
    put(store, "c", *said("v", "x", at(1), usage={"in": 4}))
    catalog = ledger.catalog.of(store)

    def told(by="conversation", **how):
        return {each.key: each.tokens["in"] for each in catalog.usage(by, **how)}

    assert told(labels=["work"]) == {"a": 1, "b": 2}
    assert told(labels=["work", "ann"]) == {"a": 1}
    assert told(conversation=["a", "c"]) == {"a": 1, "c": 4}
    assert told(conversation=["a", "c"], labels=["work"]) == {"a": 1}
    assert told("label") == {"ann": 1, "bob": 2, "work": 3, None: 4}


def test_imports_without_times_are_of_no_day(store):
    """What a source does not date is not of the day of the import, but has been used."""
    dated = {"format": "f", "created": "2025-05-01T00:00:00Z"}
    for name, source in (("t", {"format": "f"}), ("u", dated), ("v", {})):
        told = [build.turn(name, source=source), build.ended(name, usage={"in": 1})]
        put(store, name, *[{**record, "at": at(2)} for record in told])
    catalog = ledger.catalog.of(store)

    assert {each.key: each.turns for each in catalog.usage("month")} == {
        None: 1,
        "2025-05": 1,
        "2026-01": 1,
    }
    assert catalog.usage("day")[0].key is None
    long_ago = datetime(2000, 1, 1, tzinfo=UTC)
    assert sum(each.turns for each in catalog.usage(since=long_ago)) == 2
    assert sum(each.turns for each in catalog.usage()) == 3


def test_of_copies_the_one_that_says_counts(store):
    """Of copies of a turn the first that says what it used counts, for its model and conversation."""
    put(store, "a", build.turn("t"), build.ended("t", usage={"in": 0}))
    put(store, "b", *said("t", "x", usage={"in": 5}))
    put(store, "c", *said("t", "x", model="n", usage={"in": 7}))
    (only,) = ledger.catalog.of(store).usage("conversation")
    assert (only.key, only.turns, only.tokens) == ("b", 1, {"in": 5})


def test_days_are_those_of_a_zone(store):
    """Days are UTC's unless a zone is given; both sides of a change of clocks."""
    put(store, "a", *said("t", "x", "2026-03-28T23:30:00.000000Z", usage={"in": 1}))
    put(store, "a", *said("u", "x", "2026-03-29T22:30:00.000000Z", usage={"in": 2}))
    catalog = ledger.catalog.of(store)
    berlin = ZoneInfo("Europe/Berlin")
    assert [each.key for each in catalog.usage("day")] == ["2026-03-28", "2026-03-29"]
    assert [each.key for each in catalog.usage("day", timezone=berlin)] == [
        "2026-03-29",
        "2026-03-30",
    ]


def test_what_a_turn_without_an_end_used_counts(store):
    """Replies and tools of a turn that has not ended count, each once; its end then says all."""
    put(
        store,
        "a",
        build.turn("t"),
        build.new("reply", turn="t", key="k", response={}, usage={"in": 2}),
    )
    put(
        store,
        "a",
        build.tool("t", "started", usage={"in": 9}),
        build.tool("t", "done", usage={"in": 3}),
    )
    catalog = ledger.catalog.of(store)
    assert catalog.usage()[0].tokens == {"in": 5}
    put(store, "a", build.ended("t", usage={"in": 4}))
    assert catalog.usage()[0].tokens == {"in": 4}


# -- which stores ----------------------------------------------------------------------------------------


def test_a_store_with_coroutines_is_asked_as_well():
    """A store whose methods are coroutines is catalogued."""
    store = Awaited()
    put(store.inner, "c", *said("t", "parcel"))
    catalog = ledger.catalog.of(store)
    assert ids(catalog.conversations()) == ["c"]
    put(store.inner, "c", *said("u", "parcel"))
    assert len(catalog.search("parcel")) == 2


def test_a_store_that_cannot_list_is_refused():
    """A store with nothing but append and read has no catalog, and the error says what is lacking."""

    class Bare:
        def append(self, conversation, records, *, expect=None):
            return 0

        def read(self, conversation, after=0):
            return []

    with pytest.raises(StoreUnsupported, match="conversations"):
        ledger.catalog.of(Bare())


def test_what_cannot_be_read_is_named_and_hides_no_other():
    """A conversation that cannot be read is among `failed`, and nothing of it among what is found."""

    class Locked(Listing):
        broken = False

        def read(self, conversation, after=0):
            if self.broken and conversation == "a":
                raise StoreDenied(where="a", reason="it belongs to another user")
            return super().read(conversation, after)

    store = Locked()
    for name in "ab":
        put(store, name, *said("t", "parcel"))
    catalog = ledger.catalog.of(store)
    assert len(catalog.search("parcel")) == 2
    store.broken = True
    found = catalog.search("parcel")
    assert [hit.conversation for hit in found] == ["b"]
    assert found.failed["a"].code == "store-denied"


def test_a_zone_may_be_named():
    """Its name gives the zone, and the days of dates; one that is not known is refused."""
    store = ledger.MemoryStore()
    put(store, "a", *said("t", "x", "2026-01-01T23:30:00.000000Z", usage={"in": 1}))
    catalog = ledger.catalog.of(store)

    for zone in ("Europe/Berlin", ZoneInfo("Europe/Berlin")):
        assert [each.key for each in catalog.usage("day", timezone=zone)] == ["2026-01-02"]
        assert len(catalog.usage(since=date(2026, 1, 2), timezone=zone)) == 1
        assert catalog.usage(until=date(2026, 1, 1), timezone=zone) == []
    for wrong in ("Nowhere/City", "", "../x"):
        with pytest.raises(ValueError, match="no time zone"):
            catalog.usage(timezone=wrong)
    with pytest.raises(TypeError, match="timezone takes"):
        catalog.usage(timezone=1)  # type: ignore[arg-type]


def test_questions_that_make_no_sense_are_refused():
    """A limit that is none, a query that is no text; no conversation has a name that is not ASCII."""
    catalog = ledger.catalog.of(ledger.MemoryStore())
    for limit in (0, 10**30, 1.5, True):
        with pytest.raises(ValueError, match="limit is a whole number"):
            catalog.search("x", limit=limit)  # type: ignore[arg-type]
    for query in (None, 5):
        with pytest.raises(TypeError, match="query is text"):
            catalog.search(query)  # type: ignore[arg-type]
    assert catalog.search("x", conversation="\udc00") == []
