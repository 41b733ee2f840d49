"""Records that contradict each other: everything may be asked of them, and the answer is no crash."""

from __future__ import annotations

import io
import json
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import ledger
from ledger import merging
from ledger.cli import main
from ledger.errors import LedgerError
from ledger.sources.exporting import export_json, export_markdown
from ledger.stores.folder import FolderStore
from tests.hostile.contradictions import CASES
from tests.stores.support import Unflushed

COMMANDS = [
    *(["list"], ["tree", "c"], ["log", "c"], ["show", "c", "1"], ["heads", "c"], ["head", "c"]),
    *(["lineage", "c", "1"], ["verify"]),
]


def written(folder: Path, case: str) -> FolderStore:
    """Write a case's records as another implementation may, whatever we would refuse."""
    place = folder / "conversations"
    place.mkdir(parents=True, mode=0o700)
    lines = [json.dumps({**record, "seq": i}) for i, record in enumerate(CASES[case], 1)]
    (place / "c.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return FolderStore(folder, calls=Unflushed())


def code_of(work: Callable[[], object]) -> str | None:
    """Do something; return the code of the error it ends with, or None."""
    try:
        work()
    except LedgerError as error:
        return error.code
    return None


ASKED = """ordinal parent children request_id source inputs outputs result messages error state model
usage started ended seconds saw reads made_by""".split()  # noqa: SIM905


@pytest.mark.parametrize("case", CASES)
def test_a_conversation_of_contradictions_can_be_asked_anything(tmp_path, case):
    """Whatever its records say, each question about a turn is answered, or names a code."""
    chat = ledger.open("c", store=written(tmp_path, case))
    for turn in chat.all_turns():
        for name in ASKED:
            assert code_of(partial(getattr, turn, name)) in (None, "store-corrupt"), name
        assert repr(turn)
        assert isinstance(chat.continue_from(turn).turns, list)
        lineage = chat.lineage(turn)
        for ask in (lineage.explain, lineage.to_dict):
            assert code_of(ask) in (None, "store-corrupt")


@pytest.mark.parametrize("case", CASES)
def test_a_conversation_of_contradictions_is_drawn_and_exported(tmp_path, case):
    """Whatever its records say, a conversation is drawn, and its export holds it byte for byte."""
    store = written(tmp_path / "s", case)
    chat = ledger.open("c", store=store)

    assert str(chat.tree()).startswith("c")
    assert isinstance(chat.heads(), list)
    assert chat.title is None or chat.title
    assert export_markdown(chat)
    (tmp_path / "c.json").write_bytes(export_json(chat))
    ledger.import_conversations(tmp_path / "c.json", store=tmp_path / "copy")
    assert FolderStore(tmp_path / "copy").raw("c") == store.raw("c")


@pytest.mark.parametrize("case", CASES)
def test_a_conversation_of_contradictions_goes_on(tmp_path, case):
    """Whatever stands before, a new turn is recorded after it, and reads back as it was given."""
    store = written(tmp_path, case)
    chat = ledger.open("c", store=store, sends="branch")

    made = chat.record("a new question", "a new answer")

    again = ledger.open("c", store=FolderStore(tmp_path)).turn(made.id)
    assert (again.inputs, again.result) == ({"message": "a new question"}, "a new answer")
    assert not store.verify("c").damaged


@pytest.mark.parametrize("case", CASES)
def test_the_command_line_shows_contradictions_and_steers_nothing(
    tmp_path, case, monkeypatch, capsys
):
    """Every reading command answers, or ends with a code; no control character reaches the terminal."""
    written(tmp_path, case)
    monkeypatch.setenv("TURN_LEDGER_STORE", str(tmp_path))
    for command in [*COMMANDS, *([*command, "--json"] for command in COMMANDS)]:
        monkeypatch.setattr(sys, "argv", ["turn-ledger", *command])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        with warnings.catch_warnings():
            try:
                main()
                code: object = 0
            except SystemExit as ending:
                code = ending.code or 0
        printed = capsys.readouterr()
        assert code in (0, 3, 5), (command, printed.err)
        if code == 0 and "--json" in command:
            json.loads(printed.out)
        shown = (printed.out + printed.err).translate({0x0A: None, 0x09: None})
        assert all(c.isprintable() for c in shown), (command, shown)


@pytest.mark.parametrize("case", CASES)
def test_contradictions_can_be_merged(tmp_path, case):
    """Turns that are done are merged, whatever their records say, or a code says why not."""
    chat = ledger.open("c", store=written(tmp_path, case), sends="branch")
    done = [turn for turn in chat.all_turns() if turn.state == "done"][:10]
    if not done:
        return

    code = code_of(lambda: chat.merge(done, merging.text("one answer")))

    assert code in (None, "record-invalid")
    if code is None:
        assert (chat.head.result, chat.head.reads) == ("one answer", done)


@pytest.mark.parametrize("case", CASES)
def test_a_program_goes_on_after_contradictions(tmp_path, case):
    """A program is called with what can be read of the turns before, or a code says why not."""
    shown = []

    def answer(message: str) -> str:
        shown.append(ledger.current().earlier())
        return f"{message}!"

    chat = ledger.open("c", answer, store=written(tmp_path, case), sends="branch")

    code = code_of(lambda: chat("a new question"))

    assert code in (None, "conversation-signature", "store-corrupt")
    if code is None:
        assert (chat.head.result, len(shown)) == ("a new question!", 1)
