"""The commands by name: in which module each is, and what it does in a line.

A command's module, and what that needs, is imported when the command is called. Its line stands here, so that the
help and the shell's completion list all commands without importing any.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

_LINES = {
    "finding": {
        "list": "List the conversations: id, turns, heads, last activity, title, labels; the newest first.",
        "search": "Search everything that was ever asked and answered, and titles and labels; the best first.",
        "usage": "Sum what turns used, in tokens: each turn once, however often it was copied or imported.",
    },
    "reading": {
        "tree": "Draw a conversation: every turn of every branch, states, models, merges, ratings, labels, the head.",
        "log": "Print a branch in full, from its first turn to the head.",
        "show": "Print all that is known of one turn.",
        "lineage": "Explain what a turn's answer rests on, and what it influenced.",
        "heads": "List the ends of the branches, newest first.",
        "verify": "Check the seals of logs, line by line, and all attachments; name what is not as it was written.",
        "doctor": "Try whether a file system keeps what a store relies on: locks, flushes, shared appends.",
    },
    "comparing": {
        "diff": "Compare two turns word by word: what was asked and answered, models, settings, what each saw.",
    },
    "attaching": {
        "attachment": "Write the bytes of an attachment out, or list the attachments of a conversation.",
    },
    "exporting": {
        "export": "Write conversations out: whole as JSON, to read, for another program, or for training.",
        "rated": "Write every rated turn of the store with what it rests on: inputs, outputs, ratings, what it saw.",
    },
    "writing": {
        "import": "Import conversations: a file, zip or folder of a known program, or our own JSON.",
        "add": "Record a turn made elsewhere; a new id begins a new conversation.",
        "merge": "Make one turn from several competing answers: keep one, give the text, or put them together.",
        "head": "Show the head of a conversation, or move it.",
        "repair": "Mend a damaged log, as far as it can be proven; what it replaced is kept.",
    },
    "noting": {
        "rate": "Rate a turn. Of several ratings by the same the last counts.",
        "label": "Put a label on a turn or on a conversation, or take it off.",
        "title": "Show the title of a conversation, or give it one.",
    },
    "copying": {
        "copy": "Copy conversations to another store, byte for byte, with their attachments.",
    },
    "running": {
        "watch": "Follow a turn, live, from any process: what it says, its tools, how it ends.",
        "stop": "Stop a turn, wherever it runs; says what became of it.",
        "abandon": "End a turn that nobody goes on with: one that waits for a person, or whose process died.",
    },
    "asking": {
        "approve": "Say yes to what a waiting turn asks: the tool call may run, exactly as it is shown.",
        "deny": "Say no to what a waiting turn asks: the tool call is not made, and the program is told so.",
    },
    "resuming": {
        "resume": "Go on with a turn whose process died, or that waited and has its answers. Shows it like `watch`.",
    },
    "removing": {
        "forget": "Take out what a turn said, for good; its place in the tree stays.",
        "delete": "Remove a conversation with all its turns, and the attachments that only it names.",
        "sweep": "Remove attachments that no conversation names: what refused sends and processes that died left.",
    },
}


class Commands(TyperGroup):
    """The commands as help and completion list them; one that is called is loaded first."""

    def __init__(self, **given: Any):
        listed = {
            name: TyperCommand(name, help=line)
            for lines in _LINES.values()
            for name, line in lines.items()
        }
        super().__init__(**given | {"commands": listed})

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command that is called, loaded, and the arguments for it."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed and loaded(str(name)), rest

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each command with the whole of its line."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.help) for name, each in self.commands.items()])


def loaded(name: str) -> TyperCommand:
    """Return a command, its module imported."""
    module = next(module for module, lines in _LINES.items() if name in lines)
    part = typer.Typer(rich_markup_mode=None)
    import_module(f"ledger.cli.{module}").add_to(part)
    command = get_group(part).commands[name]
    assert isinstance(command, TyperCommand)
    # The example is a paragraph of its own, in one line, so that it can be copied.
    command.help = (command.help or "").replace("\nExample: ", "\n\n\b\nExample: ")
    return command
