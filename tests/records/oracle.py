"""Dumb twins of the records layer, written from the contract's words alone.

They look at whole files, share no helper with the code and are as slow as they please. Where the code
and a twin differ, the contract decides which of them is wrong.
"""

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

BLANK = {0x20, 0x09, 0x0D, 0x0B, 0x0C}
SEALED = re.compile(
    rb'.*,"seq":([1-9][0-9]*),"ledger":\["([1-9][0-9]*)/([1-9][0-9]*)",'
    rb'("[A-Za-z0-9_-]{22}"|null),"([A-Za-z0-9_-]{22})"\]\}',
    re.DOTALL,
)


@dataclass
class Judged:
    """One line that is not blank, and what the contract says of it."""

    start: int
    line: bytes
    seq: int
    seal: dict[str, Any] | None
    verdict: str

    def key(self) -> tuple[int, int, int, str]:
        """What a scanner says of the same line."""
        return self.start, self.start + len(self.line), self.seq, self.verdict


def b64(raw: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(raw).decode().replace("=", "")


def first_chain(conversation: str) -> str:
    """The chain before line 1."""
    return b64(hashlib.sha256(conversation.encode()).digest()[:16])


class Log:
    """A log being written: by us, sealed, and by others, unsealed."""

    def __init__(self, conversation: str = "c") -> None:
        """An empty log."""
        self.data = b""
        self.count = 0
        self.chain = first_chain(conversation)
        self.sealed_to = 0

    def ours(self, bodies: list[bytes], salts: list[bytes], upto: int | None = None) -> None:
        """Append a batch, sealed; of an append that failed only the first `upto` lines stay."""
        for i in range(1, (len(bodies) if upto is None else upto) + 1):
            self.count += 1
            start = bodies[i - 1][:-1] + (
                f',"seq":{self.count},"ledger":["{i}/{len(bodies)}","{b64(salts[i - 1])}",'.encode()
            )
            covered = self.chain.encode() + self.data[self.sealed_to :] + start
            self.chain = b64(hashlib.sha256(covered).digest()[:16])
            self.data += start + b'"' + self.chain.encode() + b'"]}' + b"\n"
            self.sealed_to = len(self.data)

    def others(self, line: bytes) -> None:
        """Append a line of another writer, as it is."""
        self.data += line + b"\n"
        self.count += not is_blank(line)


def tombstone(line: bytes) -> bytes:
    """Overwrite one of our lines as erasing does: same length, salt null, chain kept."""
    matched = SEALED.fullmatch(line)
    assert matched is not None
    seq, i, n, _, chain = matched.groups()
    kept = b'{"functai_conversation":1,"kind":"erased","at":"2026-01-01T00:00:00.000000Z"'
    end = b',"erased":true,"seq":%b,"ledger":["%b/%b",null,"%b"]}' % (seq, i, n, chain)
    assert len(kept + end) <= len(line)
    return (kept + end).ljust(len(line), b" ")


def is_blank(line: bytes) -> bool:
    """Holds only space, TAB, CR, VT, FF."""
    return all(byte in BLANK for byte in line)


def readable(line: bytes) -> Any:
    """The record of a line, or None."""
    try:
        value = json.loads(line.decode("utf-8"))
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or depth(value) > 200:
        return None
    number, kind = value.get("functai_conversation"), value.get("kind")
    if isinstance(number, bool) or not isinstance(number, int):
        return None
    return value if isinstance(kind, str) and kind != "unreadable" else None


def depth(value: Any) -> int:
    """How deep the containers of a value go."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (1 if isinstance(value, (dict, list)) else 0) + max(map(depth, inner), default=0)


def find_seal(line: bytes) -> dict[str, Any] | None:
    """The seal at the end of a line, without trailing spaces, tabs and CRs."""
    while line and line[-1] in (0x20, 0x09, 0x0D):
        line = line[:-1]
    matched = SEALED.fullmatch(line)
    if matched is None or int(matched[2]) > int(matched[3]):
        return None
    return {
        "seq": int(matched[1]),
        "i": int(matched[2]),
        "n": int(matched[3]),
        "erased": matched[4] == b"null",
        "chain": matched[5].decode(),
        "covered_to": matched.start(5) - 1,
    }


def judge(data: bytes, conversation: str = "c", *, erasing: bool = False) -> list[Judged]:
    """The verdicts of a whole log that ends in a line feed and that nobody is writing to."""
    lines = _lines(data)
    _judge_seals(data, lines, first_chain(conversation), erasing)
    _judge_batches(lines)
    return lines


def _lines(data: bytes) -> list[Judged]:
    assert not data or data.endswith(b"\n")
    lines: list[Judged] = []
    start = 0
    for line in data.split(b"\n")[:-1]:
        if not is_blank(line):
            seal = find_seal(line)
            unsealed = "unreadable" if readable(line) is None else "unsealed"
            verdict = "?" if seal else unsealed
            lines.append(Judged(start, line, len(lines) + 1, seal, verdict))
        start += len(line) + 1
    return lines


def _judge_seals(data: bytes, lines: list[Judged], chain: str, erasing: bool) -> None:
    since = 0
    for place, line in enumerate(lines):
        if line.seal is None:
            continue
        covered: list[Judged] = []
        while place > len(covered) and lines[place - len(covered) - 1].seal is None:
            covered.append(lines[place - len(covered) - 1])
        hashed = chain.encode() + data[since : line.start + line.seal["covered_to"]]
        if line.seal["erased"]:
            line.verdict = "erased"
        elif b64(hashlib.sha256(hashed).digest()[:16]) == line.seal["chain"]:
            line.verdict = "sealed"
        elif erasing or any(other.line.endswith(b" ") for other in covered):
            line.verdict = "unprovable"
        else:
            for other in [line, *covered]:
                other.verdict = "suspect"
        chain = line.seal["chain"]
        since = line.start + len(line.line) + 1


def _judge_batches(lines: list[Judged]) -> None:
    for place, line in enumerate(lines):
        if not _is_part(line, 1, None):
            continue
        assert line.seal is not None
        n = line.seal["n"]
        k = 1
        while place + k < len(lines) and _is_part(lines[place + k], k + 1, n):
            k += 1
        if k < n and _is_void(lines[place : place + k], lines[place + k :]):
            for part in lines[place : place + k]:
                part.verdict = "void"


def _is_part(line: Judged, i: int, n: int | None) -> bool:
    good = line.seal is not None and line.verdict != "suspect" and line.seal["i"] == i
    return good and (n is None or (line.seal is not None and line.seal["n"] == n))


def _is_void(batch: list[Judged], rest: list[Judged]) -> bool:
    """The end of the log, a sealed line 1/m, or an unsealed readable record follows."""
    if not rest:
        return True
    follows = rest[0]
    if follows.verdict in ("suspect", "unreadable"):
        return False
    if follows.seal is not None:
        return bool(follows.seal["i"] == 1)
    # Another writer's record, unless it is the batch's own next line with its seal damaged, or a later
    # line of the batch follows after all.
    last = batch[-1].seal
    assert last is not None
    record = readable(follows.line)
    if "ledger" in record:
        return False
    for value in record.values():
        if isinstance(value, list) and value and value[0] == f"{last['i'] + 1}/{last['n']}":
            return False
    for line in rest:
        if line.seal is not None:
            later = line.seal["i"] - last["i"]
            same = line.seal["n"] == last["n"] and line.seal["seq"] - last["seq"] == later
            return not (same and later > 0)
    return True
