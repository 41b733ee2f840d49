"""What was under way when a conversation was deleted does not make it anew; what begins afterwards may."""

import asyncio
import threading
from dataclasses import dataclass

import pytest

import ledger
from ledger import aio, errors, merging
from ledger.stores.base import Position
from ledger.turns.log import Begun


@pytest.fixture(params=["memory", "folder", "sql"])
def store(request, tmp_path):
    """A store of each kind that comes with the package."""
    if request.param == "memory":
        return ledger.MemoryStore()
    if request.param == "folder":
        return ledger.FolderStore(tmp_path)
    return ledger.SQLStore(f"sqlite:///{tmp_path / 'chats.db'}")


class Scene:
    """A conversation whose program runs until it is told to go on, and what waits for it."""

    def __init__(self, store):
        self.store = store
        self.runs, self.go = threading.Event(), threading.Event()
        self.threads = []

    def program(self, message):
        """Say that it runs, and wait."""
        self.runs.set()
        self.go.wait(20)
        return "fine"

    def open(self, **how):
        """Open the conversation, as each request does."""
        return ledger.open("alex", self.program, store=self.store, **how)

    def begin(self, call):
        """Do something in a thread. Returns: where what it raises or gives is put."""
        found = []

        def work():
            try:
                found.append(call())
            except Exception as error:
                found.append(error)

        self.threads.append(threading.Thread(target=work))
        self.threads[-1].start()
        return found

    def end(self):
        """Let all end."""
        self.go.set()
        for thread in self.threads:
            thread.join(20)

    def left(self):
        """What the store has of the conversation."""
        return self.store.read("alex")


@pytest.fixture
def scene(store):
    """A conversation with a turn that runs, when the test begins."""
    scene = Scene(store)
    ledger.open("alex", store=store).record("old", "x")
    scene.first = scene.begin(lambda: scene.open().send("first"))
    assert scene.runs.wait(20)
    yield scene
    scene.end()


def wait_until_waiting(monkeypatch, scene, count=1):
    """Return what blocks until so many others wait for the log to go on."""
    waiting = threading.Semaphore(0)
    wait = scene.store.wait

    def told(*args, **kwargs):
        if threading.current_thread() in scene.threads[1:]:
            waiting.release()
        return wait(*args, **kwargs)

    monkeypatch.setattr(scene.store, "wait", told)

    def block():
        for _ in range(count):
            assert waiting.acquire(timeout=20)

    return block


SECRET = [
    {"role": role, "parts": [{"type": "text", "content": "secret"}]}
    for role in ("user", "assistant")
]

VERBS = {
    "send": lambda scene: scene.open().send("secret"),
    "stream": lambda scene: scene.open().stream("secret"),
    "record": lambda scene: scene.open().record("secret", "x"),
    "tries": lambda scene: scene.open().tries("secret", settings=[{"lm": "a"}, {"lm": "b"}]),
    "append": lambda scene: ledger.memory(scene.store).append("alex", SECRET),
    "turn": lambda scene: ledger.memory(scene.store).turn("alex").__enter__(),
}


@pytest.mark.parametrize("verb", VERBS)
def test_what_waits_when_it_is_deleted_is_refused(scene, monkeypatch, verb):
    """A verb that waits behind a running turn is refused `store-gone`, and the running one `lease-lost`."""
    until_it_waits = wait_until_waiting(monkeypatch, scene)
    found = scene.begin(lambda: VERBS[verb](scene))
    until_it_waits()

    scene.store.delete("alex")
    scene.end()

    assert [error.code for error in (*found, *scene.first)] == ["store-gone", "lease-lost"]
    assert scene.left() == []


def test_so_it_is_when_others_made_it_anew_meanwhile(scene, monkeypatch):
    """The one that waited goes into no other conversation of the same id; who began afterwards does."""
    until_it_waits = wait_until_waiting(monkeypatch, scene)
    found = scene.begin(lambda: scene.open().send("secret"))
    until_it_waits()

    scene.store.delete("alex")
    for i in range(9):
        ledger.open("alex", store=scene.store).record(f"new {i}", "x")
    scene.end()

    assert [error.code for error in found] == ["store-gone"]
    turns = ledger.open("alex", store=scene.store).all_turns()
    assert [turn.inputs["message"] for turn in turns] == [f"new {i}" for i in range(9)]


def test_what_begins_afterwards_makes_it_anew(scene):
    """A verb that began after the deletion begins a conversation, also of an object that was open before."""
    chat = ledger.open("alex", store=scene.store)
    assert len(chat.turns) > 0
    scene.store.delete("alex")

    chat.record("new", "x")

    assert [turn.inputs["message"] for turn in chat.all_turns()] == ["new"]


def test_a_merge_that_was_under_way_is_refused(store):
    """A merge whose turns are deleted while its program works is refused, and records nothing."""
    chat = ledger.open("alex", store=store)
    turns = [chat.continue_from(None).record(text, "x") for text in "ab"]

    def by(answers):
        store.delete("alex")
        return "both"

    with pytest.raises(errors.StoreGone):
        chat.merge(turns, by, onto=None)
    with pytest.raises(errors.StoreGone):
        remade(chat, store)
    assert [turn.inputs["message"] for turn in chat.all_turns()] == ["new"]


def remade(chat, store):
    """Merge turns while the conversation is deleted and made anew."""
    turns = [chat.continue_from(None).record(text, "x") for text in "ab"]

    def by(answers):
        store.delete("alex")
        ledger.open("alex", store=store).record("new", "x")
        return merging.pick(turns[0])(answers)

    chat.merge(turns, by, onto=None)


def test_a_send_is_refused_whose_summary_was_being_made(store):
    """A conversation that is deleted while a summary of it is made stays deleted."""
    chat = ledger.open("alex", store=store)
    for i in range(4):
        chat.record(f"{i}", "x")

    def summary(so_far, rows):
        store.delete("alex")
        return "all of it"

    context = ledger.compacted(summary, keep_last=1, every=2)
    with pytest.raises(errors.StoreGone):
        ledger.open("alex", lambda message: "x", store=store, context=context).send("secret")
    assert store.read("alex") == []


def test_an_answer_is_not_written_again_in_a_conversation_that_was_made_anew(store):
    """What is asked again is read first: a first turn, deleted in between, does not begin a conversation."""

    @dataclass
    class Asked:
        text: str

        def __post_init__(self):
            if read_back:
                store.delete("alex")

    def program(asked: Asked) -> str:
        return asked.text

    read_back = []
    chat = ledger.open("alex", program, store=store)
    first = chat.send(Asked("secret"))
    read_back.append(True)
    with pytest.raises(errors.StoreGone):
        chat.regenerate(first)
    assert store.read("alex") == []


def test_a_turn_of_ones_own_is_refused(store):
    """A turn of an agent's own loop, `memory.turn`, is not recorded when it was deleted meanwhile."""
    memory = ledger.memory(store)
    memory.append("alex", SECRET)

    def own():
        with memory.turn("alex") as turn:
            turn.messages += SECRET
            store.delete("alex")

    with pytest.raises(errors.StoreGone):
        own()

    assert store.read("alex") == []
    assert memory.append("alex", SECRET)  # It began afterwards.


def test_a_note_with_an_attachment_is_refused(store, monkeypatch):
    """Keeping an attachment may take long; the note that names it goes into no other conversation."""
    chat = ledger.open("alex", store=store)
    chat.record("old", "x")
    put = store.blobs.put

    def slow(*args, **kwargs):
        store.delete("alex")
        return put(*args, **kwargs)

    monkeypatch.setattr(store.blobs, "put", slow)
    with pytest.raises(errors.StoreGone):
        chat.keep_entry("mine", "picture", ledger.Attachment(b"secret", media_type="text/plain"))
    chat.record("again", "x")
    with pytest.raises(errors.StoreGone):
        chat.record({"message": ledger.Attachment(b"other", media_type="text/plain")}, "x")
    assert store.read("alex") == []


NAMING = {
    "rate": lambda chat, turn: turn.rate(1),
    "label": lambda chat, turn: turn.label("good"),
    "note": lambda chat, turn: chat.keep_entry("mine", "note", 1, turn=turn),
    "head": lambda chat, turn: chat.set_head(turn),
    "forget": lambda chat, turn: chat.forget(turn),
    "stop": lambda chat, turn: chat.stop(turn),
}


@pytest.mark.parametrize("verb", NAMING)
def test_what_names_a_turn_of_it_is_refused(store, verb):
    """A turn that went with its conversation can be rated, labelled and made the head no more."""
    chat = ledger.open("alex", store=store)
    turn = chat.record("old", "x")
    store.delete("alex")

    with pytest.raises(errors.TurnUnknown):
        NAMING[verb](chat, turn)
    assert store.read("alex") == []


STARTING = {
    "stop": (lambda chat: chat.stop(2), "turn-unknown"),
    "title": (lambda chat: chat.set_title("secret"), "store-gone"),
    "label": (lambda chat: chat.label("secret"), "store-gone"),
}


@pytest.mark.parametrize("verb", STARTING)
def test_what_was_decided_before_it_was_deleted_is_refused(scene, monkeypatch, verb):
    """A stop, a title or a label that is appended just behind the deletion makes no conversation of its own."""
    chat, append = ledger.open("alex", store=scene.store), scene.store.append
    call, code = STARTING[verb]

    def deleted(*args, **kwargs):
        monkeypatch.setattr(scene.store, "append", append)
        scene.store.delete("alex")
        return append(*args, **kwargs)

    monkeypatch.setattr(scene.store, "append", deleted)
    with pytest.raises(errors.LedgerError) as refused:
        call(chat)

    assert refused.value.code == code
    scene.end()
    assert scene.left() == []


def test_awaited_it_is_the_same(store):
    """The awaiting face refuses what waited, and an agent's own turn."""

    async def scenario():
        runs, go = asyncio.Event(), asyncio.Event()

        async def program(message):
            runs.set()
            await go.wait()
            return "fine"

        def opened():
            return aio.open("alex", program, store=store)

        first = asyncio.create_task(opened().send("first"))
        await runs.wait()
        waiting, wait = asyncio.Event(), store.wait
        loop = asyncio.get_running_loop()

        def told(*args, **kwargs):
            loop.call_soon_threadsafe(waiting.set)
            return wait(*args, **kwargs)

        store.wait = told
        second = asyncio.create_task(opened().send("secret"))
        await waiting.wait()
        memory = aio.memory(store)

        async def own():
            async with memory.turn("other") as turn:
                turn.messages += SECRET
                await asyncio.to_thread(store.delete, "other")

        await asyncio.to_thread(ledger.open("other", store=store).record, "x", "x")
        with pytest.raises(errors.StoreGone):
            await own()
        assert store.read("other") == []
        await asyncio.to_thread(store.delete, "alex")
        go.set()
        return await asyncio.gather(first, second, return_exceptions=True)

    assert [error.code for error in asyncio.run(scenario())] == ["lease-lost", "store-gone"]
    assert store.read("alex") == []


def test_erasing_its_first_record_is_no_deletion(tmp_path):
    """Who waits while the turn of record 1 is forgotten goes on."""
    begun = Begun()
    begun.go_on("alex", Position(3, ("then", "salt")))
    begun.go_on("alex", Position(3, ("then", None)))
    begun.go_on("alex", Position(4, ("", None)))
    begun.go_on("alex", Position(5, ("then", None)))
    with pytest.raises(errors.StoreGone):
        begun.go_on("alex", Position(9, ("later", "salt")))
    with pytest.raises(errors.StoreGone) as caught:  # It stays so, however often it asks.
        begun.go_on("alex", Position(9, ("later", "salt")))
    assert (caught.value.after, caught.value.found) == (5, 9)


def test_of_bare_counts_the_length_tells():
    """Of a store that gives bare counts, a log that is shorter is another one."""
    begun = Begun()
    for count in (0, 1, 1, 5):
        begun.go_on("alex", count)
    for count in (0, 4):
        with pytest.raises(errors.StoreGone):
            begun.go_on("alex", count)


def test_a_send_looks_at_the_log_before_it_does_anything_else(store, monkeypatch):
    """To say that this process lives may take a while, the first time: which log it goes into is known by then."""
    chat = ledger.open("alex", lambda message: "x", store=store)
    chat.record("old", "x")
    hold = store.hold

    def held(holder):
        hold(holder)
        store.delete("alex")

    monkeypatch.setattr(store, "hold", held)
    with pytest.raises(errors.StoreGone):
        chat.send("secret")
    assert store.read("alex") == []
