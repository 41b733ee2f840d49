"""What a running turn has said so far: read by its stream, in this process, while it is being said."""

from __future__ import annotations

from collections.abc import Callable

from ledger.bells import Bell


class Pieces:
    """Pieces of text in order, added by the program, read by any number of readers from any place.

    Args: redacted: whether what is kept of them is redacted. Then only a whole text can be kept.
    """

    def __init__(self, *, redacted: bool = False) -> None:
        self.redacted = redacted
        self._said: list[str] = []
        self._closed = False
        self._bell = Bell()
        self._listeners: tuple[Callable[[], None], ...] = ()

    def add(self, text: str) -> None:
        """Add a piece; once closed, what a program still says is nobody's."""
        with self._bell.lock:
            if self._closed:
                return
            self._said.append(text)
            waited_for, listeners = self._bell.is_waited_for, self._listeners
        if waited_for:
            self._bell.ring()
        for callback in listeners:
            callback()

    def close(self) -> None:
        """Say that nothing more comes."""
        with self._bell.lock:
            self._closed = True
            listeners = self._listeners
        self._bell.ring()
        for callback in listeners:
            callback()

    def after(self, place: int) -> tuple[list[str], bool]:
        """Return the pieces from a place on, and whether no more will come after them."""
        with self._bell.lock:
            return self._said[place:], self._closed

    def wait(self, place: int) -> None:
        """Block until there is a piece at a place, or none will come."""
        self._bell.wait_for(lambda: self._closed or len(self._said) > place)

    def listen(self, callback: Callable[[], None]) -> None:
        """Call back after each change, in the thread that makes it. It must not block or raise."""
        with self._bell.lock:
            self._listeners = (*self._listeners, callback)

    def unlisten(self, callback: Callable[[], None]) -> None:
        """Call back no more."""
        with self._bell.lock:
            left = list(self._listeners)
            left.remove(callback)
            self._listeners = tuple(left)

    @property
    def text(self) -> str:
        """All of it, joined."""
        with self._bell.lock:
            return "".join(self._said)

    @property
    def broken_off(self) -> str:
        """What may be kept of it where it did not come to its end.

        Where it is redacted, that is all up to the last white space: nobody knows what a part of a word is part of.
        """
        text = self.text
        if not self.redacted:
            return text
        end = next((i for i in range(len(text), 0, -1) if text[i - 1].isspace()), 0)
        return text[:end]
