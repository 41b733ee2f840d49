"""Makes docs/reference/imports.md: the formats there are, and what is known of real files of each."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HEAD = """\
# Formats that can be imported

A format is found by looking into a file. In a folder, files that lie where a program keeps them are looked at alone;
without any, every file that may hold conversations. How to import, and what becomes a turn, is told in [the
how-to](../how-to/import.md).
"""
SAMPLES = """\
## What real files give

Counted by hand and held by tests, which read the files where they are at hand: they are other people's public
examples and no part of this project. Blank: none. Side lines are the conversations of sub-agents, whose turns are not
counted here; a turn that is cut has no whole answer.
"""


def page() -> str:
    """Return the page."""
    return "\n".join([HEAD, *_formats(), "", SAMPLES, *_samples()]) + "\n"


def _formats() -> list[str]:
    from ledger.sources.files import FORMATS

    lines = ["| format | what it is |", "| --- | --- |"]
    for format in FORMATS:
        told = (inspect.getdoc(format) or "").partition("\n\n")[0].removesuffix(" Pure.")
        lines.append(f"| `{format.name}` | {' '.join(told.split())} |")
    return lines


def _samples() -> list[str]:
    rows: dict[str, dict[str, Any]] = {}
    for path in sorted((ROOT / "tests" / "formats").glob("test_samples*.py")):
        known = getattr(importlib.import_module(f"tests.formats.{path.stem}"), "KNOWN", {})
        for name, counts in known.items():
            rows[name if "/" in name else f"chatgpt/{name}"] = asdict(counts)
    columns = list(dict.fromkeys(key for counts in rows.values() for key in counts))
    lines = [
        "| file | " + " | ".join(name.replace("_", " ") for name in columns) + " |",
        "| --- |" + " --- |" * len(columns),
    ]
    for name in sorted(rows):
        cells = " | ".join(str(rows[name].get(key) or "") for key in columns)
        lines.append(f"| `{name}` | {cells} |")
    return lines
