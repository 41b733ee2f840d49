"""A dumb reading of sealed lines, by the letter of the format; it shares nothing with the codec."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import NamedTuple

_SEALED = re.compile(
    rb'(\{.*),"seq":([1-9][0-9]*),"ledger":\["([1-9][0-9]*)/([1-9][0-9]*)",'
    rb'"([A-Za-z0-9_-]{22})","([A-Za-z0-9_-]{22})"\]\}',
    re.DOTALL,
)


class SealedLine(NamedTuple):
    """One line of ours: the record's JSON without its brace, and what its seal says."""

    body: bytes
    seq: int
    i: int
    n: int
    salt: bytes


def sealed_lines(data: bytes, conversation: str) -> list[SealedLine]:
    """Return the lines of a log in which only ours are. Raises: AssertionError: one is not sealed."""
    chain = _text(hashlib.sha256(conversation.encode()).digest()[:16])
    assert data == b"" or data.endswith(b"\n"), "the last line lacks its line feed"
    found = []
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        match = _SEALED.fullmatch(line)
        assert match is not None, f"line {number} is not sealed"
        body, seq, i, n, salt, sealed = match.groups()
        covered = chain + line[: match.start(6) - 1]
        chain = _text(hashlib.sha256(covered).digest()[:16])
        assert sealed == chain, f"the seal of line {number} does not check"
        assert int(seq) == number, f"line {number} says that it is {int(seq)}"
        found.append(SealedLine(body, int(seq), int(i), int(n), salt))
    return found


def _text(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")
