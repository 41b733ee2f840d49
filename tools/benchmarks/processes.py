"""Work that is measured in other processes: what they say of themselves is printed by them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent

LOADED = """
import ledger
ledger.FolderStore
loaded = ledger.open(program=lambda message: message, store=ledger.MemoryStore())
loaded.record("all that is", "imported late")
list(loaded.send("as well").events())
"""
"""Loads what is imported late, so that it is not counted."""

RACE = """
import json
ended, waits = [], []
print("ready", flush=True)
sys.stdin.readline()
begun = time.monotonic()
for _ in range(int(sys.argv[-1])):
    at = time.monotonic()
    append()
    ended.append(time.monotonic())
    waits.append(ended[-1] - at)
print(json.dumps({"begun": begun, "ended": ended, "waits": waits}))
"""
"""Calls `append` as often as the last argument says, from when it is told."""

PEAK = """
def peak():
    try:
        for line in open("/proc/self/status"):
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    import resource
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
"""
"""Defines `peak`: the most memory that the process had, in bytes. (What `ru_maxrss` tells on Linux begins with what
the parent had.)"""


class Failed(Exception):
    """A process that was measured failed; what it said stands on stderr."""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a script in a process that imports this checkout; it talks by its pipes."""
    return subprocess.Popen(
        [sys.executable, "-c", "import sys, time\n" + code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def said(code: str, *arguments: object) -> str:
    """Return the last line that a script printed. Raises: Failed."""
    process = start(code, *arguments)
    out, _ = process.communicate()
    if process.returncode:
        raise Failed(f"exit code {process.returncode}")
    return out.splitlines()[-1]


def number(code: str, *arguments: object) -> float:
    """Return the number that a script printed last."""
    return float(said(code, *arguments))


def told(code: str, *arguments: object) -> dict[str, Any]:
    """Return the object that a script printed last, as JSON."""
    found: dict[str, Any] = json.loads(said(code, *arguments))
    return found


def race(code: str, runners: int, *arguments: object) -> list[dict[str, Any]]:
    """Run a script that defines `append` in several processes from one moment on; return what each tells."""
    processes = [start(code + RACE, *arguments) for _ in range(runners)]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outs = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        raise Failed("one of several processes")
    return [json.loads(out.splitlines()[-1]) for out in outs]
