"""Interrupts at any moment: Ctrl-C, at each point at which Python lets a signal's handler run, one after the other.

CPython asks for signals when a function begins, when a loop goes round, and when a function written in C returns. A
handler that raises does so there, in the main thread. (Waiting for a lock is another such point, which only a real
signal reaches.) Here a trace function raises in its place, so that every point is met, and the same one again.
"""

from __future__ import annotations

import dis
import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

_ASKING = {"CALL", "CALL_FUNCTION_EX", "CALL_KW", "JUMP_BACKWARD"}
"""Instructions after which it is asked; after calls of functions that are written in Python it is not."""


class Interrupted(KeyboardInterrupt):
    """The interrupt."""


class _Interrupter:
    def __init__(self, nth: int) -> None:
        self.left = nth
        self.place: str | None = None
        self._last: dict[FrameType, str] = {}

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            if frame.f_back in self._last:
                self._last[frame.f_back] = ""
            self._last[frame] = ""
            self._ask(frame)
        elif event == "opcode":
            before = self._last.get(frame)
            self._last[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if before in _ASKING:
                self._ask(frame)
        elif event == "return":
            self._last.pop(frame, None)
        return self.trace

    def _ask(self, frame: FrameType) -> None:
        self.left -= 1
        if self.left == -1 and not _in_finalizer(frame):
            self.place = f"{frame.f_code.co_qualname}:{frame.f_lineno}"
            raise Interrupted


def _in_finalizer(frame: FrameType | None) -> bool:
    """Say whether a frame serves the end of an object, in which Python itself swallows every exception."""
    while frame is not None:
        if frame.f_code.co_name in ("__del__", "_remove"):
            return True
        frame = frame.f_back
    return False


def interrupted_at(nth: int, work: Callable[[], Any]) -> str | None:
    """Do work with an interrupt at the nth point. Returns: where that was; None: it was over before."""
    interrupter = _Interrupter(nth)
    before = sys.gettrace()
    gc.disable()  # What it throws away, it ends, and see `_in_finalizer`.
    sys.settrace(interrupter.trace)
    try:
        work()
    except Interrupted:
        pass
    finally:
        sys.settrace(before)
        gc.enable()
        interrupter._last.clear()
    return interrupter.place
