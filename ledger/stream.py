"""A turn's answer in pieces, as it is being said."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import TracebackType
from typing import Any, Self

from ledger.turn import Turn, outcome_of
from ledger.turns import apart
from ledger.turns.running import Run


class Stream:
    """The answer of one turn in pieces. Made by `Conversation.stream`; read by any number of threads.

    Each iteration begins with the first piece. Pieces joined are the answer where the program says all
    of it; `result` is what the program returned.
    """

    def __init__(self, turn: Turn, run: Run | None) -> None:
        self._turn = turn
        self._run = run

    @property
    def turn(self) -> Turn:
        """The turn: recorded before its program was called."""
        return self._turn

    def __iter__(self) -> Iterator[str]:
        """Yield the pieces, then raise what the program raised, if it did."""
        if self._run is None:
            yield from _texts(self.turn)
            return
        pieces, place = self._run.running.pieces, 0
        closed = False
        while not closed:
            pieces.wait(place)
            more, closed = pieces.after(place)
            place += len(more)
            yield from more
        self._run.result()

    @property
    def repeats(self) -> bool:
        """Whether its request was sent before: then the turn is not this stream's, and closing stops nothing."""
        return self._run is None

    @property
    def result(self) -> Any:
        """The answer, when the turn has ended. Raises: what the program raised; turn-stopped."""
        if self._run is None:
            self.turn.wait()
            return outcome_of(self.turn)
        return self._run.result()

    def close(self) -> None:
        """Stop the turn if it still runs, and wait until that is recorded. Again is no error."""
        if self._run is not None and not self._run.is_over:
            apart.do(partial(_stop, self._run))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Stream of {self.turn!r}>"


def _stop(run: Run) -> None:
    run.stop()
    run.wait()


def _texts(turn: Turn) -> Iterator[str]:
    """Yield the pieces of a turn that runs elsewhere, or did."""
    for event in turn.events():
        if event["kind"] == "text" and event["answer"] and event["call"] == turn.id:
            yield event["text"]
    outcome_of(turn)
