"""Attachments through both faces and both stores: sent, given to programs, kept through crashes, forgotten, large."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import threading
import tracemalloc
from pathlib import Path
from typing import NamedTuple

import pytest

import ledger
from ledger import Attachment, aio, errors, merging
from ledger.records import values
from tests.scenarios.stores import Coroutines, TwoMethods

CAT = b"\x89PNG cat"
MB = 1 << 20


@pytest.fixture(params=["memory", "folder"])
def store(request, tmp_path):
    """A store of each kind."""
    folder = tmp_path / "store"
    return ledger.MemoryStore() if request.param == "memory" else ledger.FolderStore(folder)


def kinds(store, conversation="c"):
    """The kinds of the records of a conversation."""
    return [record["kind"] for record in store.read(conversation)]


def lose(store, attachment):
    """Take the bytes of an attachment away, as somebody who tidies up by hand would."""
    if isinstance(store, ledger.MemoryStore):
        del store.blobs._bytes[attachment.sha256]
    else:
        place = Path(store.folder, "attachments", attachment.sha256[:2], attachment.sha256)
        place.unlink()


# -- sent and given --------------------------------------------------------------------------------


class Described(NamedTuple):
    """What was seen, and a picture of it."""

    seen: str
    drawn: Attachment


def describe(
    question: str, image: Attachment, pages: tuple[str | Attachment, ...] = ()
) -> Described:
    """Say what is there, and draw it."""
    told = f"{question} {image.name} {len(image.read())} {[type(p).__name__ for p in pages]}"
    return Described(told, Attachment(image.read() + b" drawn", name="drawn.png"))


async def describe_on_a_loop(
    question: str, image: Attachment, pages: tuple[str | Attachment, ...] = ()
) -> Described:
    """The same, with a loop."""
    return describe(question, image, pages)


@pytest.mark.parametrize("program", [describe, describe_on_a_loop])
@pytest.mark.parametrize("face", [ledger, aio], ids=["blocking", "aio"])
def test_sent_and_read_back(store, face, program, tmp_path):
    """A file is given to the program, its bytes come back when it is gone, and what the program makes is kept too."""
    path = tmp_path / "cat.png"
    path.write_bytes(CAT)

    async def main():
        chat = face.open("c", program, store=store)
        sent = chat.send("what?", Attachment(path=path), ("a", Attachment(b"1"), "b"))
        turn = await sent if face is aio else sent
        path.unlink()
        return turn

    turn = asyncio.run(main())
    again = ledger.open("c", store=store).turn(1)

    assert turn.seen == "what? cat.png 8 ['str', 'Attachment', 'str']"
    for found in (turn, again):
        assert found.inputs["image"].read() == CAT
        assert found.inputs["image"].media_type == "image/png"
        assert [p if isinstance(p, str) else p.read() for p in found.inputs["pages"]] == [
            "a",
            b"1",
            "b",
        ]
        assert found.outputs["drawn"].read() == found.drawn.read() == CAT + b" drawn"
        assert found.result == found.outputs["drawn"]


def test_what_stands_in_the_log(store):
    """A record has the reference in the place of the bytes, which are kept once, before it."""
    chat = ledger.open("c", store=store)
    one = Attachment(CAT, name="a.png", options={"detail": "low"})
    chat.record({"message": ["look", one]}, {"result": one})

    turn = next(r for r in store.read("c") if r["kind"] == "turn")
    (text, reference) = turn["inputs"]["message"]
    assert text == "look"
    assert reference == {
        "$attachment": {
            "sha256": one.sha256,
            "media_type": "image/png",
            "size": 8,
            "name": "a.png",
            "options": {"detail": "low"},
        }
    }
    assert store.blobs.get(one.sha256) == CAT


def test_shown_to_later_turns_and_programs(store):
    """Earlier turns come with their attachments, in `earlier`, in `render`, to a merging program, and typed."""
    shown = []

    def ask(message: list[str | Attachment]) -> str:
        shown.append(ledger.current().earlier())
        return "ok"

    chat = ledger.open("c", ask, store=store)
    chat(["look", Attachment(CAT)])
    chat(["and now?"])
    (row,) = shown[1]

    assert row["message"][1].read() == CAT
    rendered = chat.render(["next", Attachment(b"new")])
    assert rendered.rows[0] == row
    assert rendered.inputs["message"][1].read() == b"new"
    one, two = (chat.continue_from(2).record({"message": [Attachment(b"x")]}, "y") for _ in "12")

    def both(answers):
        return answers[0]["inputs"]["message"][0].read().decode()

    assert chat.merge([one, two], both).result == "x"
    assert chat.merge([one, two], merging.pick(one)).inputs == one.inputs


def test_beside_the_turns_and_in_messages(store):
    """Entries and recorded messages hold attachments; in a message one stands for its part."""
    chat = ledger.open("c", store=store)
    turn = chat.record(
        "look",
        "a cat",
        messages=[
            {
                "role": "user",
                "parts": [{"type": "text", "content": "look"}, Attachment(CAT, name="a.png")],
            },
            {"role": "assistant", "parts": [{"type": "text", "content": "a cat"}]},
        ],
    )
    chat.keep_entry("mine", "scan", {"page": Attachment(b"page")}, turn=turn)

    part = turn.messages[0]["parts"][1]
    assert (part["type"], part["modality"], part["mime_type"]) == ("blob", "image", "image/png")
    assert chat.attachment(part["content"]).read() == CAT
    assert chat.entries("mine", "scan")[0]["data"]["page"].read() == b"page"


def test_found_by_name_and_hash(store):
    """A conversation tells its attachments, and gives one by name, hash, or the beginning of that."""
    chat = ledger.open("c", store=store)
    assert chat.attachments() == []
    chat.record({"message": [Attachment(b"1", name="a.txt"), Attachment(b"2", name="b.txt")]}, "x")
    chat.record({"message": [Attachment(b"1", name="a.txt"), Attachment(b"3", name="b.txt")]}, "x")
    one, two, three = chat.attachments()

    assert [each.name for each in (one, two, three)] == ["a.txt", "b.txt", "b.txt"]
    assert (
        chat.attachment("a.txt") == chat.attachment(one.sha256) == chat.attachment(one.sha256[:12])
    )
    for unknown, told in (
        ("b.txt", "names 2 attachments"),
        ("zzz", "no attachment"),
        ({}, "no reference"),
    ):
        with pytest.raises(LookupError, match=told):
            chat.attachment(unknown)


# -- the same request, the same step ---------------------------------------------------------------


def test_the_same_bytes_under_a_request_id_are_the_same_turn(store, tmp_path):
    """Sent again under its id, from a file of another name, it is the turn; other bytes are refused."""
    calls = []

    def ask(image: Attachment) -> int:
        calls.append(image)
        return image.size

    (tmp_path / "upload-1.png").write_bytes(CAT)
    (tmp_path / "upload-2").write_bytes(CAT)
    chat = ledger.open("c", ask, store=store)
    first = chat.send(Attachment(path=tmp_path / "upload-1.png"), request_id="r")
    again = chat.send(Attachment(path=tmp_path / "upload-2"), request_id="r")

    assert (again, len(calls)) == (first, 1)
    with pytest.raises(errors.RequestMismatch):
        chat.send(Attachment(b"other"), request_id="r")


class Agent:
    """A program whose process dies once, after a tool and a reply that took and gave attachments."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.dies_at_work = False

    def __call__(self, message: list[str | Attachment]) -> list[str]:
        """Scan, ask, and say what was read."""
        turn = ledger.current()
        page = Attachment(
            b"page", name=f"page-{os.getpid()}.png"
        )  # Its name changes with every run.
        scan = turn.tool("scan", {"page": page}, lambda: self.do("scan"), effects="changes")
        reply = turn.reply(["read", scan], lambda: [self.do("reply"), "b"])
        if not (self.folder / "died").exists():
            (self.folder / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return [
            scan.read().decode(),
            reply[0].read().decode(),
            reply[1],
            message[1].read().decode(),
        ]

    def do(self, what):
        """Do something once, and give a file made of it; or die in it."""
        if self.dies_at_work:
            os.kill(os.getpid(), signal.SIGKILL)
        path = self.folder / what
        path.write_bytes(what.encode())
        path.rename(self.folder / f"{what} by {os.getpid()}")
        return Attachment(path=self.folder / f"{what} by {os.getpid()}")


def test_a_resumed_turn_reads_the_store(tmp_path):
    """After its process died a turn goes on: no step is made again, and all bytes are those of the store."""
    agent, folder = Agent(tmp_path), tmp_path / "store"
    sent = tmp_path / "sent.txt"
    sent.write_bytes(b"sent")

    def work():
        ledger.open("c", agent, store=folder).send(["look", Attachment(path=sent)])

    child = os.fork()
    if not child:
        work()
        os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    for each in [sent, *tmp_path.glob("* by *")]:
        each.write_bytes(b"something else by now")
    chat = ledger.open("c", agent, store=folder)
    (turn,) = chat.resume_all()

    assert turn.result == ["scan", "reply", "b", "sent"]
    assert len(list(tmp_path.glob("* by *"))) == 2


def test_a_person_gives_a_tools_output(tmp_path):
    """What a person says a tool gave may be an attachment too."""
    agent, folder = Agent(tmp_path), tmp_path / "store"

    def work():
        agent.dies_at_work = True
        ledger.open("c", agent, store=folder).send(["look", Attachment(b"sent")])

    child = os.fork()
    if not child:
        work()
        os._exit(1)
    os.waitpid(child, 0)
    (tmp_path / "died").touch()
    turn = ledger.open("c", agent, store=folder).turn(1)

    turn.resume(results={"scan": Attachment(b"by hand")})
    assert turn.result == ["by hand", "reply", "b", "sent"]


def test_a_remembered_helper_is_shown_its_attachments(store):
    """A helper's own earlier calls come back to it with their attachments."""
    seen = []

    @ledger.program
    def reader(page: Attachment) -> Attachment:
        seen.append(ledger.current().earlier())
        return Attachment(page.read() + b" read")

    def work(message: str) -> str:
        return reader(Attachment(message.encode())).read().decode()

    chat = ledger.open("c", work, store=store, remembers={reader: "conversation"})
    assert [chat("one"), chat("two")] == ["one read", "two read"]
    (row,) = seen[1]
    assert (row["page"].read(), row["result"].read()) == (b"one", b"one read")


# -- what is missing or cannot be kept -------------------------------------------------------------


def test_missing_bytes_cost_nothing_else(store, tmp_path):
    """Only reading them raises: the turn, its neighbours, messages, exports and later turns go on."""

    def ask(message: list[str | Attachment]) -> str:
        return f"{len(ledger.current().earlier())} before"

    chat = ledger.open("c", ask, store=store)
    lost = Attachment(b"lost", name="lost.png")
    turn = chat.send(["look", lost])
    chat.send(["and", Attachment(b"there")])
    lose(store, lost)
    chat = ledger.open("c", ask, store=store)

    with pytest.raises(errors.AttachmentMissing) as missing:
        chat.turn(1).inputs["message"][1].read()
    assert missing.value.sha256 == lost.sha256
    assert chat.turn(1).inputs["message"][1].size == 4
    assert chat.turn(2).inputs["message"][1].read() == b"there"
    assert chat.turn(1).messages == turn.messages
    assert "lost.png" in ledger.export_markdown(chat)
    with pytest.warns(errors.LossWarning, match=r"lost\.png left out"):
        assert b"lost.png" in ledger.export_json(chat)
    assert chat(["next"]) == "2 before"
    with pytest.raises(errors.AttachmentMissing):
        chat(["again", chat.turn(1).inputs["message"][1]])
    assert len(chat.all_turns()) == 3


def test_bytes_that_went_bad_are_not_handed_out(tmp_path):
    """Altered bytes are store-corrupt for who reads them, and for nobody else."""
    store = ledger.FolderStore(tmp_path / "store")
    chat = ledger.open("c", store=store)
    turn = chat.record({"message": Attachment(b"good")}, "x")
    found = turn.inputs["message"]
    Path(store.folder, "attachments", found.sha256[:2], found.sha256).write_bytes(b"evil")

    with pytest.raises(errors.StoreCorrupt):
        found.read()
    assert chat.turn(1).result == "x"


@pytest.mark.parametrize("kind", [TwoMethods, Coroutines])
def test_a_store_without_a_place_for_bytes_refuses(kind):
    """Before anything is recorded, naming the store and what to do; a text goes in as always."""
    store = kind()
    chat = ledger.open("c", lambda message: message, store=store)
    making = [
        lambda: chat.send(Attachment(CAT)),
        lambda: chat.record({"message": [Attachment(CAT)]}, "x"),
        lambda: chat.keep_entry("mine", "x", Attachment(CAT)),
    ]
    for make in making:
        with pytest.raises(
            errors.StoreUnsupported, match=f"{kind.__name__} has no place for attachments"
        ):
            make()
    assert chat.all_turns() == []
    assert chat("text") == "text"
    drawing = ledger.open("d", lambda message: Attachment(CAT), store=store)
    with pytest.raises(errors.StoreUnsupported):
        drawing("draw")
    assert drawing.turn(1).error["code"] == "store-unsupported"


@pytest.mark.parametrize("face", [ledger, aio], ids=["blocking", "aio"])
def test_a_file_that_is_not_there_records_nothing(store, face, tmp_path):
    """The error is the system's own, and names the file."""

    async def main():
        chat = face.open("c", lambda message: "x", store=store)
        sent = chat.send(Attachment(path=tmp_path / "none.png"))
        return await sent if face is aio else sent

    with pytest.raises(FileNotFoundError, match=r"none\.png"):
        asyncio.run(main())
    assert kinds(store) == []


def test_an_answer_whose_file_is_not_there_fails(store, tmp_path):
    """The turn ends failed at once, by what was wrong; nothing waits to be tried again."""
    chat = ledger.open("c", lambda message: Attachment(path=tmp_path / "none"), store=store)
    with pytest.raises(FileNotFoundError):
        chat("draw")
    assert chat.turn(1).error["type"] == "FileNotFoundError"


def test_the_bytes_come_before_the_record(tmp_path):
    """Should the append fail, the bytes are there and no record names them; never the other way round."""
    seen = []

    class Watching(ledger.FolderStore):
        def append(self, conversation, records, *, expect=None):
            for sha256 in values.references(list(records)):
                seen.append(self.blobs.has(sha256))
            return super().append(conversation, records, expect=expect)

    def draw(message: Attachment) -> Attachment:
        ledger.current().tool("t", [Attachment(b"1")], lambda: Attachment(b"2"))
        ledger.current().reply([Attachment(b"3")], lambda: Attachment(b"4"))
        return Attachment(b"5")

    chat = ledger.open("c", draw, store=Watching(tmp_path / "store"))
    chat(Attachment(b"0"))
    chat.keep_entry("mine", "x", [Attachment(b"6")])
    chat.record({"message": Attachment(b"7")}, {"result": Attachment(b"8")})

    assert len(seen) >= 9
    assert all(seen)


# -- what is removed -------------------------------------------------------------------------------


def test_what_any_record_names_stays(tmp_path):
    """Forgetting a turn takes its own bytes alone: what a tool, reply, entry, question, branch, or another
    conversation names is kept, and goes with the last of them."""
    store = ledger.FolderStore(tmp_path / "store")
    shared = {
        name: Attachment(name.encode()) for name in ("tool", "reply", "entry", "ask", "import")
    }

    def work(message: Attachment) -> str:
        turn = ledger.current()
        turn.tool("t", {"p": shared["tool"]}, lambda: "x", effects="reads")
        turn.reply(["r", shared["reply"]], lambda: shared["reply"])
        turn.tool("ask", {"p": shared["ask"]}, lambda: "x", effects="changes")
        return "x"

    holder = ledger.open("holder", work, store=store, approve=["ask"])
    with pytest.raises(errors.TurnWaiting):
        holder(shared["tool"])
    holder.keep_entry("mine", "e", shared["entry"])
    holder.continue_from(None).record({"message": shared["import"]}, "x")
    chat = ledger.open("c", store=store)
    own = Attachment(b"own")
    turn = chat.record({"message": [own, *shared.values()]}, "x")

    receipt = chat.forget(turn)

    assert receipt.erased.attachments == [own.sha256]
    for each in shared.values():
        assert store.blobs.get(each.sha256) == each.read()
    removed = store.delete("holder").attachments
    assert sorted(removed) == sorted(each.sha256 for each in shared.values())
    assert not any(store.blobs.has(each.sha256) for each in shared.values())


def test_bytes_put_and_not_yet_named_are_put_again(tmp_path):
    """Between keeping the bytes and recording them somebody forgets the last turn that named them: they are
    put again, and the record names what is there."""
    store, other = (ledger.FolderStore(tmp_path / "store") for _ in "12")
    before = ledger.open("before", store=other)
    named = before.record({"message": Attachment(CAT)}, "x")
    waits = [None]

    class Meddled(ledger.FolderStore):
        def append(self, conversation, records, *, expect=None):
            if waits and conversation == "c":
                waits.pop()
                assert before.forget(named).erased.attachments == [Attachment(CAT).sha256]
            return super().append(conversation, records, expect=expect)

    chat = ledger.open("c", store=Meddled(tmp_path / "store"))
    turn = chat.record({"message": Attachment(CAT)}, "x")

    assert turn.inputs["message"].read() == CAT
    assert store.blobs.has(Attachment(CAT).sha256)


def test_processes_that_keep_and_forget_the_same_bytes(tmp_path):
    """While some send the same file and others forget their turns, no record ever names bytes that are gone."""
    folder = tmp_path / "store"
    children = []
    for number in range(4):
        child = os.fork()
        if not child:
            code = 1
            try:
                keep_and_forget(ledger.FolderStore(folder), number)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    ended = [os.waitpid(child, 0)[1] for child in children]

    assert ended == [0] * 4
    store = ledger.FolderStore(folder)
    for number in range(4):
        kept = ledger.open(f"c{number}", store=store).turns
        assert [turn.inputs["message"].read() for turn in kept if not turn.erased] == [CAT] * 4


def keep_and_forget(store, number):
    """Send the same bytes a dozen times, and forget two of three turns."""
    chat = ledger.open(f"c{number}", lambda message: message.size, store=store)
    for n in range(12):
        turn = chat.send(Attachment(CAT))
        if n % 3:
            chat.forget(turn)


# -- large and many --------------------------------------------------------------------------------


class Endless(io.RawIOBase):
    """A stream of some size that is nowhere in memory."""

    def __init__(self, size):
        self.left = size

    def readable(self):
        """It can be read."""
        return True

    def readinto(self, buffer):
        """Give bytes until the size is reached."""
        count = min(self.left, len(buffer))
        buffer[:count] = bytes(count)
        self.left -= count
        return count


@pytest.mark.parametrize("face", [ledger, aio], ids=["blocking", "aio"])
def test_large_ones_pass_through_in_pieces(face, tmp_path):
    """32 MB from a stream into the store and out again are never in memory at once; on a loop, not on the loop."""
    on_loop = threading.get_ident()
    where = set()

    class Watched(Endless):
        def readinto(self, buffer):
            where.add(threading.get_ident())
            return super().readinto(buffer)

    async def main():
        chat = face.open("c", store=tmp_path / "store")
        made = chat.record({"message": Attachment(Watched(32 * MB), name="film.mp4")}, "x")
        turn = await made if face is aio else made
        found, count = turn.inputs["message"], 0
        if face is aio:
            async for chunk in aio.chunks(found):
                count += len(chunk)
        else:
            with found.open() as stream:
                while chunk := stream.read(MB):
                    count += len(chunk)
        return found.size, count

    tracemalloc.start()
    sizes = asyncio.run(main())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert sizes == (32 * MB, 32 * MB)
    assert peak < 10 * MB
    if face is aio:
        assert on_loop not in where


def test_read_whole_off_the_loop(store):
    """`aio.read` gives the bytes; a missing one raises what the blocking face raises."""

    async def main():
        chat = aio.open("c", store=store)
        turn = await chat.record({"message": Attachment(CAT, name="a.png")}, "x")
        found = turn.inputs["message"]
        assert [each.name for each in await chat.attachments()] == ["a.png"]
        assert await aio.read(await chat.attachment("a.png")) == CAT
        lose(store, found)
        with pytest.raises(errors.AttachmentMissing):
            await aio.read(found)
        with pytest.raises(errors.AttachmentMissing):
            [chunk async for chunk in aio.chunks(found)]

    asyncio.run(main())


def read_bytes():
    """How many bytes this process has read so far, as the system counts; None: it does not."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return None
    return int(dict(line.split(": ") for line in lines)["rchar"])


def test_a_thousand_turns_with_the_same_image_cost_it_once(tmp_path):
    """T22: 1 MB and 1,000 times 1 kB of text: the folder has the image once, and loading does not read it."""
    image, text = os.urandom(MB), "x" * 1000
    folder = tmp_path / "store"
    chat = ledger.open("c", store=folder)
    for _ in range(1000):
        chat.record({"message": [text, Attachment(image, name="a.png")]}, "ok")

    sizes = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
    log = sizes[folder / "conversations" / "c.jsonl"].st_size
    on_disk = sum(found.st_blocks * 512 for found in sizes.values())
    before = read_bytes()
    turns = ledger.open("c", store=folder).turns
    texts = [turn.inputs["message"][0] for turn in turns]
    after = read_bytes()

    assert texts == [text] * 1000
    assert [p.stat().st_size for p in folder.glob("attachments/*/*")] == [MB]
    assert log < 3_000_000
    assert on_disk < MB + 3 * 1_000_000
    if before is not None and after is not None:
        assert after - before < 5_000_000
    assert turns[-1].inputs["message"][1].read() == image
