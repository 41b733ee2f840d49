"""Records that are kept as the lines they were read as, and decoded when they are asked for.

A Struct and its values take as many bytes again as a short record. So of a log that was read its bytes are kept, as
they were read, and where each line begins; whoever folds it keeps of a record where it stands, once it has taken from
it what it needs at once.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import overload

from ledger.records import codec, kinds

Shallow = Callable[[Callable[[], list[kinds.Recorded]]], list[kinds.Recorded]]


class Lines:
    """Lines of a log that all are records, one behind the other, undecoded.

    Args: data: holds them. bounds: where in it each begins, and the place behind the last line feed. first: the place
    in the log of the first.
    """

    __slots__ = ("bounds", "data", "first")

    def __init__(self, data: bytes, bounds: array[int], first: int) -> None:
        self.data = memoryview(data)
        self.bounds = bounds
        self.first = first

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def text(self, seq: int) -> memoryview:
        """Return the line of a place in the log."""
        at = seq - self.first
        return self.data[self.bounds[at] : self.bounds[at + 1]]

    def again(self, seq: int) -> kinds.Recorded:
        """Return the record of a place in the log, which was made before, anew.

        Raises: RecursionError: the line is fine, but the caller stands too deep in its own stack.
        """
        return codec.decode_again(self.text(seq), seq)

    def record(self, seq: int) -> kinds.Recorded:
        """Return the record of a place in the log. Raises: as `again`."""
        return codec.decode_struct(bytes(self.text(seq)), seq)

    def records(self) -> list[kinds.Recorded]:
        """Return all of them. Raises: as `again`."""
        text = self.data[self.bounds[0] : self.bounds[-1]]
        together = codec.decode_structs(text, self.first, len(self))
        if together is not None:
            return together
        return [self.record(seq) for seq in range(self.first, self.first + len(self))]


Part = Lines | list[kinds.Recorded]
Kept = Lines | kinds.Recorded
"""A record, or the lines that it stands in."""


class Undecoded(Sequence[kinds.Recorded]):
    """Records of a log, one behind the other; those that are kept as lines are made anew whenever they are asked for.

    Args: shallow: does work that may find the stack too deep, on another if need be.
    """

    def __init__(self, parts: Sequence[Part], shallow: Shallow) -> None:
        self._parts = parts
        self._ends = list(accumulate(map(len, parts)))
        self._shallow = shallow

    def runs(self) -> Iterator[tuple[list[kinds.Recorded], Lines | None]]:
        """Yield records, many at once, and the lines that they stand in, if they are kept."""
        for part in self._parts:
            if isinstance(part, Lines):
                yield self._shallow(part.records), part
            else:
                yield part, None

    @property
    def is_damaged(self) -> bool:
        """Whether one of them could not be handed out: a damaged or void line."""
        made = (part for part in self._parts if not isinstance(part, Lines))
        return any(isinstance(record, kinds.Unreadable) for part in made for record in part)

    def __iter__(self) -> Iterator[kinds.Recorded]:
        return (record for records, _ in self.runs() for record in records)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> kinds.Recorded: ...

    @overload
    def __getitem__(self, index: slice) -> list[kinds.Recorded]: ...

    def __getitem__(self, index: int | slice) -> kinds.Recorded | list[kinds.Recorded]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        number = bisect_right(self._ends, at)
        part = self._parts[number]
        within = at - self._ends[number] + len(part)
        if not isinstance(part, Lines):
            return part[within]
        return self._shallow(lambda: [part.record(part.first + within)])[0]

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, (list, Undecoded)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))
