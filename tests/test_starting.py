"""What starting loads: counted in modules, since time differs from machine to machine."""

import subprocess
import sys
from functools import cache
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).resolve().parent.parent
SLOW = {
    "asyncio",
    "concurrent",
    "difflib",
    "email",
    "http",
    "logging",
    "multiprocessing",
    "sqlite3",
    "ssl",
    "urllib",
}
"""Of the standard library, what takes long to load."""


def loaded(code: str, after: str = "msgspec") -> set[str]:
    """The modules that a script loads in a new process, beside those that other imports load before."""
    script = (
        f"import sys, {after}\nbefore = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_ledger_loads_nothing_else():
    """The public names are loaded when they are asked for."""
    assert loaded("import ledger") == {"ledger", "ledger._version"}


def test_a_folder_store_loads_no_meaning():
    """A folder store needs the records and the stores; what turns mean, and what is slow, is not loaded."""
    found = loaded("import ledger; ledger.FolderStore('nowhere')", "msgspec, portalocker, filelock")

    assert {".".join(name.split(".")[:2]) for name in found if name.startswith("ledger.")} == {
        "ledger._version",
        "ledger.errors",
        "ledger.records",
        "ledger.stack",
        "ledger.stores",
    }
    assert not SLOW & found
    assert len(found) < 56


@cache
def conversation() -> set[str]:
    """The modules that opening the first conversation loads."""
    return loaded("import ledger; ledger.open('a', store='nowhere')")


@pytest.mark.parametrize(
    "name", ["catalog", "cli", "formats.chatgpt", "formats.base", "sources", "stores.sql"]
)
def test_a_conversation_loads_no_neighbour(name):
    """Opening a conversation loads what it records and shows; not what imports, lists or prints."""
    assert f"ledger.{name}" not in conversation()


@pytest.mark.parametrize("name", ["asyncio", "sqlite3"])
def test_a_conversation_loads_neither_loops_nor_databases(name):
    """SQLite is loaded with the first catalog or database, asyncio with the first program that is async."""
    assert name not in conversation()


def test_who_blocks_needs_no_loop():
    """A turn of a program that is not async is made, followed and read without asyncio."""
    code = """
    chat = ledger.open(program=lambda message: message, store=ledger.MemoryStore())
    assert chat("hi") == "hi"
    assert list(chat.stream("hi")) or True
    assert [turn.result for turn in chat.turns] == ["hi", "hi"]
    """

    assert "asyncio" not in loaded("import ledger" + dedent(code))


def test_a_loop_is_there_when_it_is_needed():
    """An async program runs for a caller who blocks, in a process that had not loaded asyncio."""
    code = """
    async def answer(message):
        return message
    chat = ledger.open(program=answer, store=ledger.MemoryStore())
    assert chat("hi") == "hi"
    """

    assert "asyncio" in loaded("import ledger" + dedent(code))
