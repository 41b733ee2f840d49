"""The table: for people, for programs, and for the page of the documentation."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.benchmarks.rows import FLOOR, OURS, Result, Unit

BEGIN, END = "<!-- tools/bench --write: begin -->", "<!-- tools/bench --write: end -->"

POINTS = {
    1: "append to an open store",
    2: "add a turn in a new process",
    3: "the last turns, a request id",
    4: "read everything",
    5: "branch",
    6: "several at once",
    7: "a thousand turns on one loop",
    8: "watch from another process",
    9: "imports",
    10: "import an export",
    11: "a second of work, long to short",
    0: "beside others, without a target",
}
NAMED = (
    "msgspec",
    "eventsourcing",
    "functai",
    "langgraph",
    "langgraph-checkpoint-sqlite",
    "openai-agents",
)


def figure(value: float | None, unit: Unit) -> str:
    """Return a figure as it is shown."""
    if value is None:
        return ""
    if unit == "ms":
        value *= 1e3
    elif unit == "MiB":
        value /= 1 << 20
    if unit in ("bytes", "count"):
        return f"{value:,.0f}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def target(result: Result) -> str:
    """Return a target as it is shown: times the floor, or a figure."""
    if result.target is None:
        return ""
    if FLOOR in result.medians:
        return f"{result.target:g}×"
    shown = figure(result.target, result.unit)
    return {"ms": f"{shown} ms"}.get(result.unit, shown)


def said(result: Result) -> str:
    """Return what became of a target."""
    return {None: "", True: "met", False: "**missed**"}[result.is_met]


def cells(result: Result) -> list[str]:
    """Return a row's cells."""
    unit = "" if result.unit in ("share", "times", "count") else f", {result.unit}"
    ratio = "" if result.ratio is None else f"{result.ratio:.2f}×"
    others = [
        f"{name} {figure(value, result.unit)}"
        + (f" ({value / result.floor:.1f}×)" if result.floor else "")
        for name, value in result.medians.items()
        if name not in (OURS, FLOOR)
    ]
    return [
        result.name + unit,
        figure(result.ours, result.unit),
        figure(result.floor, result.unit),
        ratio,
        target(result),
        said(result),
        ", ".join(others),
    ]


HEAD = ["", "ours", "floor", "ratio", "target", "", "beside it"]


def as_text(results: Sequence[Result]) -> str:
    """Return the table for a terminal."""
    rows = [HEAD]
    for result in results:
        rows.append([f"{result.point or '-':>2} {cells(result)[0]}", *cells(result)[1:]])
    rows = [[cell.replace("**", "").replace("`", "") for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    lines = []
    for row in rows:
        first, *rest = row
        shown = [cell.rjust(width) for cell, width in zip(rest[:-1], widths[1:], strict=False)]
        lines.append("  ".join([first.ljust(widths[0]), *shown, rest[-1]]).rstrip())
    return "\n".join(lines)


def as_markdown(results: Sequence[Result], machine: str) -> str:
    """Return the table for the page, a heading row for each point."""
    lines = [
        machine,
        "",
        "| " + " | ".join(HEAD) + " |",
        "| --- | ---: | ---: | ---: | ---: | --- | --- |",
    ]
    for point, what in POINTS.items():
        of_point = [result for result in results if result.point == point]
        if of_point:
            name = f"**{point}. {what}**" if point else f"**{what}**"
            lines.append(f"| {name} | | | | | | |")
        lines += ["| " + " | ".join(cells(result)) + " |" for result in of_point]
    return "\n".join(lines)


def as_json(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return the results as JSON has them, times in seconds."""
    return [
        {
            "point": result.point,
            "name": result.name,
            "unit": "s" if result.unit == "ms" else result.unit,
            **({"unit": "bytes"} if result.unit == "MiB" else {}),
            "medians": result.medians,
            "ratio": result.ratio,
            "target": result.target,
            "met": result.is_met,
        }
        for result in results
    ]


def counted(results: Sequence[Result]) -> str:
    """Return how many targets were met."""
    judged = [result.is_met for result in results if result.is_met is not None]
    return f"{sum(judged)} of {len(judged)} targets met"


def machine(folder: Path, repetitions: int) -> str:
    """Return on what was measured, in a sentence."""
    versions = [f"{name} {version(name)}" for name in NAMED if version(name)]
    system = f"{platform.system()} {platform.release().split('-')[0]}, {platform.machine()}"
    return (
        f"{os.cpu_count()} cores, {system}, {kind_of_disk(folder)}; Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}, {', '.join(versions)}. Medians of {repetitions} interleaved repetitions."
    )


def version(name: str) -> str:
    """Return the version of a package; empty: it is not here."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def kind_of_disk(folder: Path) -> str:
    """Return the kind of file system that a folder is on, where the system tells."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "disk unknown"
    found = ("", "disk unknown")
    for line in mounts.read_text("utf-8").splitlines():
        _, place, kind, *_ = line.split()
        if folder.resolve().is_relative_to(place) and len(place) >= len(found[0]):
            found = (place, kind)
    return found[1]


def write(page: Path, table: str) -> None:
    """Put a table between the marks of a page. Raises: ValueError: it has no marks."""
    text = page.read_text("utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page}: the marks of the table are not there: {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", "utf-8")
