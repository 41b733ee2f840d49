"""Checking many sealed lines at once: what nearly all lines of a log are, each step done for all of them together.

A run is whole lines, one behind the other, that all are sealed, in their place, each the next of its batch, shorter
than `LARGE`, and that all check. `codec.Scanner` says what any other line is; of these it would say the same, one by
one.
"""

from __future__ import annotations

import binascii
import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat
from operator import add, sub
from typing import NamedTuple

FORMAT_1 = b'{"functai_conversation":1,'
"""How our lines of this format begin."""
LARGE = 1 << 16
"""From this length on a line is not copied to be checked; below, copying is quicker."""
SEAL_LENGTH = 140
"""More than the longest seal has."""
URL_SAFE = bytes.maketrans(b"+/", b"-_")

_END = 22 + len('","') + 22 + len('"]}')
"""How long salt and chain are, and what stands between them and behind: the chain from 25 before the end."""
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_BEGINS = re.compile(rb'"1/([1-9][0-9]{0,8})","')
"""Where the line that begins a batch says so: behind the bracket."""


class Run(NamedTuple):
    """What lines that are good say of what follows them."""

    chain: bytes
    """Of the last."""
    i: int
    n: int
    """Its place in its batch."""
    first_open: int
    """Which line began that batch; below 0: one before them."""


def run_of(
    data: bytes,
    starts: Sequence[int],
    ends: Sequence[int],
    chain: bytes,
    count: int,
    i: int,
    n: int,
) -> Run | None:
    """Say whether lines are good, all of them.

    Args: starts, ends: where they stand in data, without line feeds. chain: as the line before wrote it. count: how
    many lines stand before. i, n: the place in its batch of the line before, where that batch is open; else equal.
    """
    many = len(ends)
    lengths = list(map(sub, ends, starts))
    if min(lengths) < _END or max(lengths) >= LARGE:
        return None
    places: list[bytes] = []
    first_open = -1
    while len(places) < many:
        if i == n:
            first_open = len(places)
            end = ends[first_open] - _END
            seal = data[max(starts[first_open], end - SEAL_LENGTH) : end]
            begins = _BEGINS.fullmatch(seal.rpartition(b"[")[2])
            if begins is None:
                return None
            i, n = 0, int(begins[1])
        taken = min(n - i, many - len(places))
        places += _places(i, taken, n)
        i += taken
    seqs = map(b',"seq":%d'.__mod__, range(count + 1, count + 1 + many))
    salts = [end - _END for end in ends]
    salted = b"".join([data[salt:end] for salt, end in zip(salts, ends, strict=True)])
    if (
        not all(map(data.endswith, map(add, seqs, places), starts, salts))
        or not all(map(data.startswith, repeat(FORMAT_1), starts))
        or any(salted[k::_END] != many * byte for k, byte in _MARKS)
        or salted.translate(None, _BASE64) != many * b'",""]}'
    ):
        return None
    chains = [data[end - 25 : end - 3] for end in ends]
    sha256 = hashlib.sha256
    hashes = [
        sha256(before + data[start : end - 26]).digest()[:16]
        for before, start, end in zip([chain, *chains], starts, ends, strict=False)
    ]
    # Two zeros behind each, so that Base64 spells each by itself: as 22 characters, and `AA`.
    spelled = binascii.b2a_base64(b"\0\0".join([*hashes, b""]), newline=False)
    if spelled.translate(URL_SAFE) != b"AA".join([*chains, b""]):
        return None
    return Run(chains[-1], i, n, first_open)


_MARKS = [(22, b'"'), (23, b","), (24, b'"'), (47, b'"'), (48, b"]"), (49, b"}")]
"""What stands between salt and chain, and behind them."""


@lru_cache(maxsize=64)
def _places(after: int, many: int, n: int) -> list[bytes]:
    """Return how lines spell that they are those behind the place `after` of a batch of n."""
    return [b',"ledger":["%d/%d","' % (i, n) for i in range(after + 1, after + 1 + many)]
