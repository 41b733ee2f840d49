"""Runs the code blocks of one Markdown file as a reader would: in order, in one namespace, in one directory.

    python tests/docs_runner.py FILE [SETUP]

runs them in the current directory. The first SETUP `sh` blocks are the commands that set everything up: they are not
run, only held to one line. The rules for blocks are written in CONTRIBUTING.md, "Documentation that runs"; change both
together.
"""

import contextlib
import io
import json
import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

FENCE = re.compile(r"(?P<indent>\s*)(?P<ticks>`{3,}|~{3,})\s*(?P<language>[^\s`]*)[^`]*")
NOT_RUN = re.compile(r"<!--\s*not run\b:?(?P<reason>.*)-->")
WILDCARD = re.compile(r"<\.\.\.>|\.\.\.")


class DocsFailure(Exception):
    """Raised when a block does not do what the page says. Next: change the block, or the code it shows."""

    def __init__(self, file: str, line: int, message: str) -> None:
        super().__init__(f"{file}:{line}: {message}")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    file: str
    line: int
    """The line in the file on which `text` begins, from 1."""
    language: str
    text: str
    adjacent: bool
    """Whether nothing but blank lines lies between this block and the one before."""
    reason: str | None
    """Why the block is not run; None: it is run."""

    def failure(self, message: str, line: int | None = None) -> DocsFailure:
        """The failure of this block, at a line of the file."""
        return DocsFailure(self.file, line or self.line, message)


def find_blocks(markdown: str, file: str) -> list[Block]:
    """Every fenced block, in order."""
    found: list[Block] = []
    lines = enumerate(markdown.split("\n"), 1)
    above: str | None = ""  # the nearest line above that is not blank; None: it ends a block
    for number, line in lines:
        fence = FENCE.fullmatch(line)
        if fence is None:
            above = line.strip() or above
            continue
        body: list[str] = []
        for _, inner in lines:
            if closes(inner, fence["ticks"]):
                break
            body.append(inner.removeprefix(fence["indent"]) + "\n")
        else:
            raise DocsFailure(file, number, "this block is never closed")
        reason = reason_not_to_run(above or "", file, number)
        found.append(
            Block(file, number + 1, fence["language"], "".join(body), above is None, reason)
        )
        above = None
    return found


def closes(line: str, ticks: str) -> bool:
    """Whether a line closes the block that `ticks` opened."""
    return line.strip().startswith(ticks) and not line.strip().strip(ticks[0])


def reason_not_to_run(above: str, file: str, number: int) -> str | None:
    """The reason in the comment above a block, which must not be empty; None where there is no such comment."""
    comment = NOT_RUN.fullmatch(above)
    if comment is None:
        return None
    if not comment["reason"].strip():
        raise DocsFailure(file, number, "'not run' needs a reason: <!-- not run: reason -->")
    return comment["reason"].strip()


def run_blocks(blocks: list[Block], namespace: dict[str, Any], *, setup: int = 0) -> None:
    """Run or check every block in order; raises DocsFailure at the first that does not do what the page says."""
    printed: str | None = None  # by the block before, if it was run
    for block in blocks:
        if block.reason is not None:
            printed = None
        elif block.language == "text":
            if block.adjacent and printed is not None:
                compare(block, printed)
            printed = None
        elif block.language == "sh" and setup:
            setup -= 1
            check_setup(block)
            printed = None
        elif block.language in KINDS:
            printed = KINDS[block.language](block, namespace)
        else:
            raise block.failure(
                f"no rule for ```{block.language}; known are text, {', '.join(KINDS)}"
            )
    if setup:
        raise ValueError(f"the page lacks {setup} of its set-up commands")


def check_setup(block: Block) -> None:
    """A set-up command is one line."""
    if len(block.text.splitlines()) != 1 or not block.text.strip():
        raise block.failure("a set-up command must be exactly one line")


def run_python(block: Block, namespace: dict[str, Any]) -> str:
    """Run the block in the namespace; what it printed."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            # The blank lines put the block where it stands in its file, so that tracebacks name the right line.
            code = compile(
                "\n" * (block.line - 1) + block.text, block.file, "exec", dont_inherit=True
            )
            exec(code, namespace)
        except (Exception, SystemExit) as error:
            raise block.failure(
                f"the block raised\n{printed.getvalue()}{story(error)}", line_in(error, block.file)
            ) from error
    return printed.getvalue()


def story(error: BaseException) -> str:
    """The traceback of an error, without the line of this runner that it begins with."""
    own = error.__traceback__
    return "".join(traceback.format_exception(type(error), error, own and own.tb_next))


def line_in(error: BaseException, file: str) -> int | None:
    """The deepest line of the file that the error came through."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == file
    ]
    return lines[-1] if lines else None


def run_sh(block: Block, namespace: dict[str, Any]) -> str:
    """Run the block with bash, which stops at the first failing command; what it printed, errors in their place."""
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", block.text],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    if done.returncode:
        raise block.failure(f"the block ended with exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def check_json(block: Block, namespace: dict[str, Any]) -> None:
    """A `json` block is one JSON value."""
    parse_json(block, block.text, block.line)


def check_jsonl(block: Block, namespace: dict[str, Any]) -> None:
    """Each line of a `jsonl` block is one JSON value."""
    for number, line in enumerate(block.text.removesuffix("\n").split("\n"), block.line):
        parse_json(block, line, number)


def parse_json(block: Block, text: str, first_line: int) -> None:
    """Raises DocsFailure, at the line, where the text is not JSON."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise block.failure(f"not JSON: {error.msg}", first_line + error.lineno - 1) from error


def check_nothing(block: Block, namespace: dict[str, Any]) -> None:
    """A picture in words promises nothing."""


KINDS: dict[str, Callable[[Block, dict[str, Any]], str | None]] = {
    "python": run_python,
    "sh": run_sh,
    "json": check_json,
    "jsonl": check_jsonl,
    "mermaid": check_nothing,
}


def compare(block: Block, printed: str) -> None:
    """Raises DocsFailure unless the `text` block shows what the block before it printed."""
    if not matches(block.text, printed):
        raise block.failure(
            f"the block before printed something else\n--- shown\n{block.text}--- printed\n{printed}"
        )


def matches(shown: str, printed: str) -> bool:
    """Whether the shown text, in which `...` may stand for anything, is the printed text.

    A line of only `...` stands for any number of lines; `...` or `<...>` within a line for any text within that line.
    White space at the ends of lines and blank lines at the end do not count.
    """
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == "..." else line_pattern(line) for line in visible(shown)
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in visible(printed))) is not None


def line_pattern(line: str) -> str:
    """The pattern of one shown line."""
    return ".*".join(re.escape(part) for part in WILDCARD.split(line)) + r"\n"


def visible(text: str) -> list[str]:
    """The lines of a text as a reader sees them."""
    return [line.rstrip() for line in text.rstrip().split("\n")]


def main() -> int:
    """Run the blocks of the named file; 1 and the failure on the error stream if one fails."""
    file, setup = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    page = sys.modules["__main__"] = ModuleType("__main__")
    sys.path[0] = (
        ""  # as in an interactive Python: the current directory, not the one this script lies in
    )
    try:
        run_blocks(
            find_blocks(Path(file).read_text(encoding="utf-8"), file), page.__dict__, setup=setup
        )
    except DocsFailure as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
