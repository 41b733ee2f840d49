"""Long conversations kept short: summaries made once, reused, never in the way of going back or of forgetting."""

import asyncio
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import ledger
from ledger import errors
from ledger.conversation import Conversation
from ledger.records import kinds
from ledger.views import summaries


class Summarizer:
    """Makes summaries that say which turns they were made of; remembers how it was called."""

    def __init__(self) -> None:
        self.__qualname__ = "Summarizer"
        self.calls: list[tuple[str, list[dict[str, Any]]]] = []

    def __call__(self, earlier: str, rows: list[dict[str, Any]]) -> str:
        """Add the messages of some rows to a summary."""
        self.calls.append((earlier, rows))
        return " ".join([*([earlier] if earlier else []), *(row["message"] for row in rows)])


def said(message: str) -> str:
    """Answer with what is shown: the summary in brackets, then the messages."""
    rows = ledger.current().earlier()
    shown = [f"[{r['summary']}]" if "summary" in r else r["message"] for r in rows]
    return " ".join(shown)


def mute(message: str) -> str:
    """Answer nothing that was said."""
    return " ".join("summary" if "summary" in r else "turn" for r in ledger.current().earlier())


@pytest.fixture
def by():
    """A summarizer."""
    return Summarizer()


@pytest.fixture(params=["memory", "folder"])
def store(request, tmp_path):
    """A store of each kind."""
    return ledger.MemoryStore() if request.param == "memory" else ledger.FolderStore(tmp_path)


def opened(store: Any, by: Any, program: Any = said, **how: Any) -> Conversation:
    """A conversation that keeps at least two turns whole and summarizes two or more at once."""
    rule = ledger.compacted(by, keep_last=2, every=2)
    return ledger.open("alex", program, store=store, context=rule, **how)


def sent(chat: Conversation, *messages: Any) -> list[str]:
    """Send messages one after the other."""
    return [chat(str(message)) for message in messages]


def entries(store: Any) -> list[dict[str, Any]]:
    """The summaries in the log."""
    return [
        record
        for record in store.read("alex")
        if record["kind"] == "entry" and record["entry"] == "summary"
    ]


# -- made once, and reused -------------------------------------------------------------------------


def test_the_first_turns_become_a_summary(store, by):
    """Once enough turns are there a summary stands for the first ones, made once and used again."""
    chat = opened(store, by)

    assert sent(chat, *"abcdefg") == [
        "",
        "a",
        "a b",
        "a b c",
        "[a b] c d",
        "[a b] c d e",
        "[a b c d] e f",
    ]
    assert [(earlier, [row["message"] for row in rows]) for earlier, rows in by.calls] == [
        ("", ["a", "b"]),
        ("a b", ["c", "d"]),
    ]


def test_a_hundred_turns_stay_readable(store, by):
    """With a window of three, all hundred turns are there; each summary lists what it stands for, in order."""
    rule = ledger.compacted(by, keep_last=3)
    chat = ledger.open("alex", said, store=store, context=rule)
    sent(chat, *range(100))

    assert [turn.inputs["message"] for turn in chat.turns] == [str(i) for i in range(100)]
    ids = [turn.id for turn in chat.turns]
    kept = entries(store)
    assert len(kept) == len(by.calls)
    for record in kept:
        turns = record["data"]["turns"]
        assert turns == ids[: len(turns)]
        assert record["turn"] == turns[-1]
        assert record["data"]["text"] == " ".join(map(str, range(len(turns))))
        assert (record["plugin"], record["data"]["made_by"]["name"]) == ("ledger", by.__qualname__)
        assert record["data"]["made_by"]["version"].startswith("sha256:")
    assert [len(turn.saw) for turn in chat.turns[6:]] == [3, 4, 5] * 31 + [3]
    whole = ledger.open("alex", said, store=store, context=ledger.all_turns())
    assert whole("all").split() == [str(i) for i in range(100)]


def test_what_was_shown_is_recorded(store, by):
    """`saw` names the turns shown whole, `shown_entries` the summary, in the turn's record and its end."""
    chat = opened(store, by)
    sent(chat, *"abcde")
    turn = chat.turns[-1]

    assert [seen.ordinal for seen in turn.saw] == [3, 4]
    assert turn.saw_summary == "a b"
    assert chat.turns[0].saw_summary is None
    place = entries(store)[0]["seq"]
    mine = [r for r in store.read("alex") if r.get("turn") == turn.id and "saw" in r]
    assert [(r["kind"], r["shown_entries"]) for r in mine] == [
        ("turn", [place]),
        ("ended", [place]),
    ]


def test_records_stay_short_between_summaries(store, by):
    """A turn that saw what its parent saw, and it, says so in two entries, under a summary as well."""
    chat = ledger.open(
        "alex", said, store=store, context=ledger.compacted(by, keep_last=5, every=20)
    )
    sent(chat, *range(40))
    saws = [r["saw"] for r in store.read("alex") if r["kind"] == "turn"]

    assert all(len(saw) <= 2 for saw in saws[:25])
    assert len(saws[25]) == 5
    assert all(len(saw) == 2 for saw in saws[26:])


def test_another_process_uses_the_summary(store, by):
    """Opened again, the conversation goes on with the summary that is there."""
    sent(opened(store, by), *"abcde")
    another = Summarizer()

    assert sent(opened(store, another), "f") == ["[a b] c d e"]
    assert another.calls == []


def test_another_summarizer_makes_its_own(store, by):
    """A summary of another function, by its name, is not taken for its own."""
    sent(opened(store, by), *"abcde")
    other = Summarizer()
    other.__qualname__ = "Other"

    assert sent(opened(store, other), "f") == ["[a b c] d e"]


def test_branches_share_the_summary(store, by):
    """Branches that have the summarized turns in common are shown the same one; no copy is made."""
    chat = opened(store, by)
    sent(chat, *"abcde")
    beside = chat.continue_from(4)

    assert sent(beside, "x") == ["[a b] c d"]
    assert (len(by.calls), len(entries(store))) == (1, 1)


def test_going_back_before_a_summary_works(store, by):
    """From before its end a branch is shown the turns, or an earlier summary, never what came later."""
    chat = opened(store, by)
    sent(chat, *"abcdefg")

    assert sent(chat.continue_from(1), "x") == ["a"]
    assert sent(chat.continue_from(3), "y") == ["a b c"]
    assert sent(chat.continue_from(4), "z") == ["[a b] c d"]
    assert len(by.calls) == 2


def test_a_turn_that_waits_is_shown_the_same_after_the_next_summary(store, by):
    """Going on with a turn shows exactly what was recorded, whatever was summarized since."""

    def pays(message: str) -> str:
        before = said(message)
        if message == "pay":
            ledger.current().tool("pay", {}, lambda: "paid", effects="changes")
        return before

    chat = opened(store, by, pays, approve="all")
    sent(chat, *"abcd")
    with pytest.raises(errors.TurnWaiting):
        chat("pay")
    turn = chat.head
    assert turn is not None
    sent(chat.continue_from(4), *"efgh")
    turn.approve()

    assert turn.resume() == "[a b] c d"
    assert turn.saw_summary == "a b"
    assert len(by.calls) > 1


# -- before it is sent -----------------------------------------------------------------------------


def test_render_shows_a_summary_that_is_there(store, by):
    """`render` gives exactly the rows, entries and summary of the next turn."""
    chat = opened(store, by)
    sent(chat, *"abcde")
    rendered = chat.render("f")
    turn = chat.send("f")

    assert rendered.summary == turn.saw_summary == "a b"
    assert rendered.rows[0] == {"summary": "a b"}
    assert [row["message"] for row in rendered.rows[1:]] == ["c", "d", "e"]
    (record,) = [r for r in store.read("alex") if r["kind"] == "turn" and r["turn"] == turn.id]
    assert (rendered.saw, rendered.shown_entries) == (record["saw"], record["shown_entries"])
    assert rendered.to_summarize == []


def test_render_foresees_a_summary_without_making_it(store, by):
    """What is to be summarized first is named; the summarizer is not called and nothing is recorded."""
    chat = opened(store, by)
    sent(chat, *"abcd")
    before = len(store.read("alex"))
    rendered = chat.render("e")

    assert (by.calls, len(store.read("alex"))) == ([], before)
    assert rendered.to_summarize == [turn.id for turn in chat.turns[:2]]
    assert rendered.rows[0] == {"summary": None}
    assert str(rendered).startswith("first a summary is made of 2 turns")
    turn = chat.send("e")
    assert rendered.saw == [{"call": seen.id} for seen in turn.saw]


def test_a_summary_and_a_budget(store, by):
    """A budget after `compacted` counts the summary, and trims the turns shown whole."""

    def count(row: dict[str, Any]) -> int:
        return len(row.get("summary") or row.get("message", ""))

    rule = ledger.pipeline(
        ledger.compacted(by, keep_last=2, every=2), ledger.within(tokens=4, count=count)
    )
    chat = ledger.open("alex", said, store=store, context=rule)

    assert sent(chat, *"abcdef") == ["", "a", "a b", "a b c", "[a b] d", "[a b] e"]


def test_turns_behind_a_summary_do_not_refuse_a_program(store, by):
    """A program with other fields may go on when only the summary tells of the turns that had others."""
    sent(opened(store, by), *"abcd")

    def asked(question: str) -> str:
        return str(len(ledger.current().earlier()))

    with pytest.raises(errors.SignatureChanged):
        opened(store, by, asked)("e")
    assert by.calls == []
    rule = ledger.compacted(by, keep_last=0, every=2)
    assert ledger.open("alex", asked, store=store, context=rule)("e") == "1"


def test_recording_makes_no_summary(store, by):
    """A turn made elsewhere is recorded with the summary that is there; none is made for it."""
    chat = opened(store, by)
    for letter in "abcde":
        chat.record(letter, "")
    assert by.calls == []
    assert sent(chat, "f") == ["[a b c] d e"]
    assert chat.record("g", "").saw_summary == "a b c"


def test_recorded_turns_are_summarized_by_the_next_send(store, by):
    """However many turns came at once, an import say, one summary stands for all but the last."""
    silent = ledger.open("alex", store=store)
    for number in range(30):
        silent.record(str(number), "")

    assert opened(store, by)("next") == f"[{' '.join(map(str, range(28)))}] 28 29"
    assert len(by.calls) == 1


# -- what goes wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize("gives", [ValueError("secret"), 7, None, "\ud800"])
def test_a_summarizer_that_fails_fails_the_send(store, gives):
    """The send is refused with what failed, no turn and no summary is recorded; mended, it goes on."""

    def by(earlier: str, rows: list[dict[str, Any]]) -> Any:
        if isinstance(gives, Exception):
            raise gives
        return gives

    chat = opened(store, by)
    sent(chat, *"abcd")
    before = store.read("alex")
    with pytest.raises(errors.SummaryFailed) as caught:
        chat("e")

    assert store.read("alex") == before
    assert "secret" not in str(caught.value)
    if isinstance(gives, Exception):
        assert caught.value.__cause__ is gives
    assert sent(opened(store, Summarizer()), "e") == ["[a b] c d"]


def test_interrupted_while_it_is_summarized_nothing_is_recorded(store):
    """Ctrl-C in the summarizer is Ctrl-C of the send."""

    def by(earlier: str, rows: list[dict[str, Any]]) -> str:
        raise KeyboardInterrupt

    chat = opened(store, by)
    sent(chat, *"abcd")
    before = store.read("alex")
    with pytest.raises(KeyboardInterrupt):
        chat("e")
    assert store.read("alex") == before


def test_two_at_once_keep_one_summary(store):
    """Two sends that summarize the same turns at once both go on with the one that was kept first."""
    both = threading.Barrier(2)
    called: list[str] = []

    def by(earlier: str, rows: list[dict[str, Any]]) -> str:
        both.wait(20)
        called.append(threading.current_thread().name)
        return f"by {threading.current_thread().name}"

    sent(opened(store, by), *"abcd")
    answers: list[str] = []

    def send() -> None:
        chat = opened(store, by, sends="branch").continue_from(4)
        answers.append(chat(threading.current_thread().name))

    threads = [threading.Thread(target=send, name=name) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    (kept,) = entries(store)
    assert sorted(called) == ["one", "two"]
    assert answers == [f"[{kept['data']['text']}] c d"] * 2


SENDER = """
import sys, time
from pathlib import Path
import ledger

folder, me, other = Path(sys.argv[1]), *sys.argv[2:]

def by(earlier, rows):
    (folder / f"{me}.in").touch()
    while not (folder / f"{other}.in").exists():
        time.sleep(0.01)
    return f"by {me}"

def said(message):
    return " ".join(row.get("summary", row.get("message")) for row in ledger.current().earlier())

rule = ledger.compacted(by, keep_last=2, every=2)
chat = ledger.open("alex", said, store=folder / "chats", context=rule).continue_from(4)
print(chat("e"))
"""
"""Sends a turn whose summary is made when another process makes one as well."""


def sender(folder: Path, me: str, other: str) -> subprocess.Popen[str]:
    """A process that sends a turn."""
    command = [sys.executable, "-c", SENDER, str(folder), me, other]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_two_processes_at_once_keep_one_summary(tmp_path):
    """Two processes that summarize the same turns at once both go on with the one that was kept first."""
    sent(opened(tmp_path / "chats", Summarizer()), *"abcd")
    both = [sender(tmp_path, "one", "two"), sender(tmp_path, "two", "one")]
    answers = [process.communicate(timeout=60)[0].strip() for process in both]

    (kept,) = entries(ledger.FolderStore(tmp_path / "chats"))
    assert answers == [f"{kept['data']['text']} c d"] * 2


def test_a_process_killed_while_it_summarizes_leaves_nothing(tmp_path):
    """Its send never was: no turn and no summary is recorded, and the next process goes on."""
    store = ledger.FolderStore(tmp_path / "chats")
    sent(opened(store, Summarizer()), *"abcd")
    before = store.read("alex")
    process = sender(tmp_path, "one", "nobody")
    deadline = time.monotonic() + 60
    while not (tmp_path / "one.in").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.communicate(timeout=60)

    assert store.read("alex") == before
    assert sent(opened(store, Summarizer()), "e") == ["[a b] c d"]


def test_a_log_that_grows_meanwhile_is_no_second_summary(store):
    """What is appended while a summary is made makes the send decide again, and pays for none twice."""
    calls = []

    def by(earlier: str, rows: list[dict[str, Any]]) -> str:
        calls.append(len(rows))
        ledger.open("alex", store=store).title = f"title {len(calls)}"
        return "sum"

    chat = opened(store, by)
    sent(chat, *"abcd")
    assert sent(chat, "e") == ["[sum] c d"]
    assert calls == [2]


def test_a_rule_that_changes_its_mind_pays_once(store, by):
    """A function before `compacted` that picks at random costs one summary a send, and loses no turn."""
    flips: list[int] = []

    def fickle(turns: list[Any]) -> list[Any]:
        flips.append(0)
        return turns[len(flips) % 2 :]

    rule = ledger.pipeline(fickle, ledger.compacted(by, keep_last=1, every=1))
    chat = ledger.open("alex", said, store=store, context=rule)
    for sends, letter in enumerate("abcdef", 1):
        chat(letter)
        assert len(by.calls) <= sends


# -- forgetting ------------------------------------------------------------------------------------


def test_forgetting_a_turn_takes_its_summaries(store, by):
    """Every summary that stands for a forgotten turn goes; the next send has a new one made without it."""
    chat = opened(store, by, mute)
    sent(chat, "a", "canary", *"cdefg")
    receipt = chat.forget(2)

    assert receipt.summaries == ["ledger/summary"] * 2
    assert entries(store) == []
    assert "canary" not in str(store.read("alex"))
    assert chat.send("h").saw_summary == "a c d e"
    assert chat.turn(7).saw_summary is None


def test_a_summary_that_does_not_tell_of_the_forgotten_turn_stays(store, by):
    """Forgetting a later turn leaves the summaries of earlier ones."""
    chat = opened(store, by)
    sent(chat, *"abcdefg")
    chat.forget(4)

    assert [record["data"]["text"] for record in entries(store)] == ["a b"]
    assert sent(chat, "h") == ["[a b c e] f g"]


def test_a_turn_forgotten_while_it_is_summarized_is_not_kept(store):
    """A summary made of what was forgotten meanwhile is dropped."""

    def by(earlier: str, rows: list[dict[str, Any]]) -> str:
        if any("canary" in row["message"] for row in rows):
            ledger.open("alex", store=store).forget(1)
        return " ".join(row["message"] for row in rows)

    chat = opened(store, by, mute)
    sent(chat, "canary", *"bcd")

    assert sent(chat, "e") == ["turn turn turn"]
    assert entries(store) == []
    assert "canary" not in str(store.read("alex"))


def test_a_turn_forgotten_just_before_its_summary_is_kept(tmp_path):
    """Forgetting that comes between the last look and the append takes the summary as well."""

    class Late(ledger.FolderStore):
        """A store in which a turn is forgotten just before a summary comes."""

        def append(self, conversation: str, records: Any, **how: Any) -> Any:
            if any(record["kind"] == "entry" for record in records):
                ledger.open("alex", store=tmp_path).forget(1)
            return super().append(conversation, records, **how)

    chat = opened(Late(tmp_path), Summarizer(), mute)
    sent(chat, "canary", *"bcd")

    assert chat.send("e").saw_summary is None
    assert "canary" not in str(chat.store.read("alex"))


# -- where answers come from -----------------------------------------------------------------------


def test_lineage_tells_of_summaries(store, by):
    """An answer rests on the turns of a summary that was shown, and these influenced it."""
    chat = opened(store, by)
    sent(chat, *"abcde")
    line = chat.lineage(5)

    assert line.summaries == [entries(store)[0]["seq"]]
    assert [(chat.turn(rest.turn).ordinal, rest.how) for rest in line.rests_on] == [
        (1, "summary"),
        (2, "summary"),
        (3, "saw"),
        (4, "saw"),
    ]
    assert "was shown a summary of turns 1 to 2" in str(line)
    assert line.to_dict()["summaries"] == line.summaries
    assert chat.turn(5).id in chat.lineage(1).influenced


def test_lineage_through_a_summary_goes_on(store, by):
    """What rests on a turn that was shown a summary rests on the summarized turns as well."""
    chat = opened(store, by)
    sent(chat, *"abcde")
    last = ledger.open("alex", said, store=store, context=ledger.last_turns(1)).send("last")

    hows = {rest.turn: rest.how for rest in chat.lineage(last).rests_on}
    assert hows[chat.turn(1).id] == "through"
    assert last.id in chat.lineage(1).influenced


# -- awaited ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_awaiting_callers_have_summaries_made(tmp_path, kind):
    """The awaitable face makes the same summaries; an async summarizer runs on the caller's loop."""
    loops: list[Any] = []

    async def on_loop(earlier: str, rows: list[dict[str, Any]]) -> str:
        loops.append(asyncio.get_running_loop())
        return " ".join(row["message"] for row in rows)

    by = Summarizer() if kind == "plain" else on_loop

    async def main() -> list[str]:
        rule = ledger.compacted(by, keep_last=2, every=2)
        chat = ledger.aio.open("alex", said, store=tmp_path, context=rule)
        answers = [await chat(letter) for letter in "abcdef"]
        if kind == "async":
            assert loops == [asyncio.get_running_loop()]
        return answers

    assert asyncio.run(main())[4:] == ["[a b] c d", "[a b] c d e"]


def test_a_blocking_caller_may_have_an_async_summarizer(store):
    """An async summarizer is run to its end where nobody awaits."""

    async def by(earlier: str, rows: list[dict[str, Any]]) -> str:
        await asyncio.sleep(0)
        return "sum"

    assert sent(opened(store, by), *"abcde")[-1] == "[sum] c d"


def test_cancelled_while_it_is_summarized_nothing_is_recorded(tmp_path):
    """A task that is cancelled while its summary is made leaves no turn."""

    async def main() -> None:
        begun = asyncio.Event()

        async def by(earlier: str, rows: list[dict[str, Any]]) -> str:
            begun.set()
            await asyncio.sleep(600)
            return ""

        rule = ledger.compacted(by, keep_last=2, every=2)
        chat = ledger.aio.open("alex", said, store=tmp_path, context=rule)
        for letter in "abcd":
            await chat(letter)
        task = asyncio.create_task(chat.send("e"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(await chat.all_turns()) == 4

    asyncio.run(main())


# -- odd data --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        None,
        "text",
        {"turns": [], "text": "x"},
        {"turns": [1], "text": "x"},
        {"turns": "abc", "text": "x"},
        {"text": "x"},
        {"turns": ["t"], "text": 7},
    ],
)
def test_entries_that_are_no_summaries_are_passed_over(data):
    """What somebody else kept under the same name is not shown as a summary."""
    record = kinds.new("entry", "", plugin="ledger", entry="summary", turn="t", data=data)
    entry = kinds.of(record, 1)

    assert isinstance(entry, kinds.Entry)
    assert summaries.read(entry, 1) is None


def test_a_summary_of_other_turns_is_not_shown(store, by):
    """An entry at a turn whose list is not the beginning of this branch stands for nothing here."""
    chat = opened(store, by)
    sent(chat, *"abcd")
    ids = [turn.id for turn in chat.turns]
    for turns in ([ids[1], ids[0]], [ids[1]], [*ids[:2], ids[3]]):
        made_by = {"name": by.__qualname__}
        data = {"turns": turns, "text": "lie", "made_by": made_by}
        chat.keep_entry("ledger", "summary", data, turn=ids[1])

    assert sent(chat, "e") == ["[a b] c d"]
