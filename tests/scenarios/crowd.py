"""Many senders at one conversation: processes, and in each of them threads or tasks. Without pytest."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import Any

import ledger
from ledger.stores.resolve import is_url
from ledger.testing.children import Say, together
from tests.scenarios.support import FACES, Face

LONGEST_S = 600.0
"""How long all of it may take on a busy machine."""


def hesitant(message: str) -> str:
    """Answer after 0 to 20 ms, as a model that is not there."""
    time.sleep(random.random() / 50)
    return f"re {message}"


def send_all(face: Face, store: Any, names: list[str], each: int, barrier: Any = None) -> None:
    """Send from as many threads or tasks as there are names, each one message after another."""
    chats = [face.open("alex", hesitant, store=store) for _ in names]
    if barrier is not None:
        barrier.wait(60)
    sends = [
        face.begin_all(chat.send, [f"{name}-{i}" for i in range(each)])
        for chat, name in zip(chats, names, strict=True)
    ]
    for send in sends:
        send.result(LONGEST_S)


def sender(say: Say, number: int, folder: str, each: int, workers: int) -> None:
    """Be one of the processes: those with even numbers block, the others await."""
    face = list(FACES.values())[number % 2]()
    names = [f"{number}.{worker}" for worker in range(workers)]
    with _store(folder) as store:
        send_all(face, store, names, each)
    face.close()


def _store(place: str) -> Any:
    return ledger.SQLStore(place) if is_url(place) else ledger.FolderStore(place)


def mixed(store: Any, *, workers: int, each: int) -> None:
    """Send from threads and from tasks of one process at once."""
    barrier = threading.Barrier(len(FACES))
    faces = {name: kind() for name, kind in FACES.items()}
    failed: list[BaseException] = []

    def work(name: str) -> None:
        try:
            names = [f"{name}.{worker}" for worker in range(workers)]
            send_all(faces[name], store, names, each, barrier)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in faces]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for face in faces.values():
        face.close()
    if failed:
        raise failed[0]


def check_one_line(store: Any, expected: int) -> None:
    """Raise unless the conversation is one line of done turns, every input once."""
    chat = ledger.open("alex", store=store)
    line, every = chat.turns, chat.all_turns()
    sent = [turn.inputs["message"] for turn in every]
    wrong = {
        f"{len(every)} turns, not {expected}": len(every) != expected,
        f"{len(line)} of {len(every)} in one line": line != every,
        f"parents that are not the turn before: {_apart(every)}": _apart(every),
        "not every input once": len(set(sent)) != expected,
        "a turn that is not done": {turn.state for turn in every} != {"done"},
        "an answer to something else": any(t.result != f"re {t.inputs['message']}" for t in every),
    }
    if any(wrong.values()):
        raise AssertionError("; ".join(what for what, is_wrong in wrong.items() if is_wrong))


def _apart(turns: list[ledger.Turn]) -> list[int]:
    before = [None, *turns[:-1]]
    return [t.ordinal for t, b in zip(turns, before, strict=True) if t.parent != b]


def processes(place: Path | str, *, count: int, each: int, workers: int = 1) -> float:
    """Send from several processes at once and check the line. Returns: turns per second."""
    begun = time.monotonic()
    together(count, LONGEST_S, sender, str(place), each, workers)
    turns = count * each * workers
    seconds = time.monotonic() - begun
    with _store(str(place)) as store:
        check_one_line(store, turns)
    return turns / seconds
