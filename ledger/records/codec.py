"""The bytes of a log: sealing lines, checking seals, telling torn, void and damaged apart.

Theory. A log is lines; a line ends at byte 0x0A and nowhere else. Our lines end in

    ,"seq":N,"ledger":["i/n","<salt>","<chain>"]}

where i/n is the line's place in its append and the chain hashes the chain written before it, every
raw byte after the line feed of the sealed line before it, and its own bytes up to the quote that
opens the chain. So one seal also covers the lines that other writers put before it, checking needs
no JSON, and a few lines at the end can be checked alone.

`body` and `seal` make lines; `Scanner` reads them. It goes on from the chain as written, so damage
costs the lines it hit and no more. What depends on what follows (is an unfinished batch void? are
unsealed lines altered?) is settled when the next lines, or the end, are known.

Must stay in step: `_SEAL` and `seal`; `Scanner._close` and the contract's rule for void batches.
"""

from __future__ import annotations

import binascii
import functools
import hashlib
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from ledger.errors import RecordInvalid, RecordTooLarge
from ledger.records import kinds, runs, times, values
from ledger.records.verdicts import Found, Line, Stretch, Verdict, each

_SEAL = re.compile(
    rb',"seq":([1-9][0-9]{0,15}),"ledger":\["([1-9][0-9]{0,8})/([1-9][0-9]{0,8})",'
    rb'(?:"([A-Za-z0-9_-]{22})"|null),"([A-Za-z0-9_-]{22})"\]\}\Z'
)
_FROM_QUOTE = len('"') + 22 + len('"]}')
_SEAL_START = b',"seq":'
_BLANK = b" \t\r\v\f"
_TRAILING = b" \t\r"
_RUN = 1024
"""How many lines are checked at once at most."""
_SEQ = attrgetter("seq")
_KIND = re.compile(r"[a-z][a-z0-9_]*")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_ESCAPED = (
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
    (b"\xc2\x85", b"\\u0085"),
)

_encoder = msgspec.json.Encoder()
_struct_decoder: msgspec.json.Decoder[kinds.Recorded] = msgspec.json.Decoder(kinds.KnownKind)
_plain_decoder = msgspec.json.Decoder()


# -- writing ---------------------------------------------------------------------------------------


def first_chain(conversation: str) -> bytes:
    """Return the chain value before line 1: it holds the id, so swapped files are noticed."""
    return _text(hashlib.sha256(conversation.encode("ascii")).digest()[:16])


def salt_text(salt: bytes) -> bytes:
    """Write 16 random bytes as a line's salt."""
    if len(salt) != 16:
        raise ValueError("a salt is 16 bytes")
    return _text(salt)


def body(record: Mapping[str, Any]) -> bytes:
    """Return a checked record as compact JSON without a place or a seal.

    Raises: record-invalid, record-too-large. `seq` and `ledger` that are given are ignored.
    """
    if not isinstance(record, Mapping):
        raise RecordInvalid(path="", reason=f"a record is a dict, not {type(record).__name__}")
    plain = dict(record)
    plain.pop("seq", None)
    plain.pop("ledger", None)
    _check_record(plain)
    if not values.is_plain(plain):
        values.check(plain)
    buffer = bytearray()
    try:
        # Out of memory, `encode` of msgspec 0.23 ends the process.
        _encoder.encode_into(plain, buffer)
    except UnicodeEncodeError:
        values.check(plain)  # Says where.
        raise
    text = escaped(bytes(buffer))
    del buffer
    if len(text) > values.SIZE_LIMIT_BYTES:
        raise RecordTooLarge(size_bytes=len(text), limit_bytes=values.SIZE_LIMIT_BYTES)
    return text


def escaped(text: bytes) -> bytes:
    """Return JSON with the characters spelled out at which some readers end a line."""
    if text.isascii():
        return text
    for raw, spelled in _ESCAPED:
        if raw in text:
            text = text.replace(raw, spelled)
    return text


def _check_record(record: dict[Any, Any]) -> None:
    number = record.get("functai_conversation")
    if type(number) is not int or number != kinds.FORMAT:
        # Behind a record of a newer one nothing could be appended any more: see `lines.is_newer`.
        reason = f"a record names its format, {kinds.FORMAT}; no other is written"
        raise RecordInvalid(path="functai_conversation", reason=reason)
    kind = record.get("kind")
    if type(kind) is not str or not _is_kind(kind):
        raise RecordInvalid(path="kind", reason="a kind is a lower-case word")
    at = record.get("at")
    if type(at) is not str or not _is_time(at):
        raise RecordInvalid(
            path="at", reason="a time is RFC 3339 UTC with six fraction digits and Z"
        )


@functools.lru_cache(maxsize=64)
def _is_kind(text: str) -> bool:
    return bool(_KIND.fullmatch(text)) and text != "unreadable"


@functools.lru_cache(maxsize=4)  # The records of one append have the same.
def _is_time(text: str) -> bool:
    return bool(_TIME.fullmatch(text)) and times.from_text(text) is not None


def seal(
    bodies: Sequence[bytes], count: int, covered: hashlib._Hash, salts: Iterable[bytes]
) -> tuple[bytes, bytes]:
    """Return the lines of one append, and the chain value of the last.

    Args: count: how many records stand before. covered: a hash fed with the chain before and every
    byte after the line feed of the last sealed line (`Scanner.covered`). salts: 16 bytes per line.
    """
    pieces: list[bytes | memoryview] = []  # Joined once: a body may be large.
    chain = b""
    total = len(bodies)
    for i, (text, salt) in enumerate(zip(bodies, salts, strict=True), 1):
        begun = memoryview(text)[:-1]
        place = b',"seq":%d,"ledger":["%d/%d","%b",' % (count + i, i, total, salt_text(salt))
        covered = covered.copy() if i == 1 else hashlib.sha256(chain)
        covered.update(begun)
        covered.update(place)
        chain = _text(covered.digest()[:16])
        pieces += (begun, place, b'"', chain, b'"]}\n')
    return b"".join(pieces), chain


def _text(sixteen: bytes) -> bytes:
    return binascii.b2a_base64(sixteen, newline=False).translate(runs.URL_SAFE)[:22]


# -- reading ---------------------------------------------------------------------------------------


class Seal(msgspec.Struct, frozen=True, gc=False):
    """What stands at the end of a sealed line."""

    seq: int
    i: int
    n: int
    salt: str | None
    """None: the line is a tombstone."""
    chain: bytes
    quote_at: int
    """Offset in the line of the quote that opens the chain: what lies before it is covered."""


def judged(line: Line, text: bytes) -> Verdict:
    """Return the verdict of a line, given its bytes: one that no seal vouches for and that is no record is
    `unreadable`. That is a tombstone, which has no salt, or a line whose seal covers one; scanning does not ask.
    """
    if line.verdict in ("erased", "unprovable") and decode_plain(text) is None:
        return "unreadable"
    return line.verdict


def find_seal(line: bytes) -> Seal | None:
    """Return the seal at the end of a line (given without its line feed), or None."""
    if not line.endswith(b"}"):
        line = line.rstrip(_TRAILING)
    start = line.rfind(_SEAL_START, max(0, len(line) - runs.SEAL_LENGTH))
    found = _SEAL.match(line, start) if start >= 0 else None
    if found is None:
        return None
    seq, i, n, salt, chain = found.groups()
    place, total = int(i), int(n)
    if place > total:
        return None
    return Seal(
        int(seq),
        place,
        total,
        salt.decode() if salt is not None else None,
        chain,
        len(line) - _FROM_QUOTE,
    )


def is_blank(line: bytes) -> bool:
    """Say whether a line holds white space only: covered by seals, not counted."""
    return not line.strip(_BLANK)


class Scanner:
    """Reads a log line by line from a place where a sealed line ended, or from the start.

    Feed it whole lines in order; take what is settled with `take` or `settled`. Lines are handed over in
    order, each once; where later lines show that a verdict taken at the end was early (another
    writer's line turns out altered, a batch goes on), the same `Line` is corrected. Offsets are those
    of the file: the scanner counts what it was fed. It may start in the middle of a batch, after a
    line of it that checks; the lines before it are then taken to be there.

    Args: chain: the chain as written by the last sealed line before (`first_chain` at the start).
    offset, count: bytes and records before. erasing: an erase plan is open, so a seal that does not
    check proves nothing. after: the seal of the line before, if known; without it, a first line from
    inside a batch is taken to go on with that batch.
    """

    def __init__(
        self,
        chain: bytes,
        *,
        offset: int = 0,
        count: int = 0,
        erasing: bool = False,
        after: Seal | None = None,
    ) -> None:
        self.offset = offset
        self.count = count
        self.chain = chain
        self._since: hashlib._Hash | None = None
        """Fed with the chain and the bytes since; None: there were none."""
        self._end: str | None = None
        """What `end` is, where blank lines stand last."""
        self._erasing = erasing
        self._covers_tombstone = False
        self._unsealed: list[Line] = []
        """The lines of other writers since the last seal: the next seal says if they are altered."""
        self._batch: list[tuple[Line, Verdict]] = []
        """The lines of a batch that has not ended, each with its verdict apart from the batch."""
        self._last: Seal | None = None
        """The seal of the last of them. To be read only while there are any."""
        self._overtaken = False
        """Another writer's record stands where the batch should go on: void, if it is unaltered."""
        self._waiting: list[Found] = []
        self._after = after
        self._may_be_mid_batch = count > 0
        self._unended = False
        self.strange = False
        """Whether a line was fed that does not begin as ours of this format do."""

    @property
    def covered(self) -> hashlib._Hash:
        """What the next line's seal covers first: the chain before, and the bytes since."""
        return hashlib.sha256(self.chain) if self._since is None else self._since

    @property
    def end(self) -> str:
        """What tells the bytes up to the last line, but for blank ones, from others: its chain, or a hash of the chain
        before and what follows that."""
        if self._end is not None:
            return self._end
        return (self.chain if self._since is None else _text(self._since.digest()[:16])).decode()

    @property
    def is_sealed(self) -> bool:
        """Whether a sealed line stands last."""
        return self._since is None

    @property
    def batch_open(self) -> bool:
        """Whether the lines so far end in an unfinished batch."""
        return bool(self._batch) and not self._overtaken

    def feed(self, data: bytes | memoryview, end: int | None = None) -> None:
        """Read whole lines: data, up to `end`, ends with a line feed.

        Raises: RecursionError: a line of another writer is fine, but the caller stands too deep in
        its own stack. The lines before it are taken in: go on from `offset`, on a fresh stack.
        ValueError: after `feed_unended`, what follows is not its line feed; scan the log anew.
        """
        data = bytes(data)
        size = len(data) if end is None else end
        start = self._end_unended(data) if self._unended else 0
        starts, find = [start], data.index
        while start < size:
            start = find(b"\n", start, size) + 1
            starts.append(start)
        at, width = 0, _RUN
        while at < len(starts) - 1:
            run = starts[at : at + width + 1]
            if self._good_lines(data, run):
                at += len(run) - 1
                width = min(2 * width, _RUN)
            elif len(run) > 2:
                width = max(1, width // 8)
            else:
                self._line(data[run[0] : run[1] - 1], b"\n")
                at += 1

    def feed_unended(self, line: bytes) -> bool:
        """Read a last line that lacks its line feed, if it is sealed and checks. Says whether.

        The line feed belongs to it: no seal covers it, whoever writes it later.
        """
        found = find_seal(line)
        if found is None or not self._checks(line, found):
            return False
        self._line(line, b"")
        self._unended = True
        return True

    def settled(self, *, at_end: bool = False, in_flight: bool = False) -> list[Line]:
        """Take the lines whose verdict is known, as `take` does, each by itself."""
        return each(self.take(at_end=at_end, in_flight=in_flight))

    def take(self, *, at_end: bool = False, in_flight: bool = False) -> list[Found]:
        """Take the lines whose verdict is known.

        Args: at_end: nothing follows for now: unsealed lines are handed out, and an unfinished
        batch is void. in_flight: the same, but the unfinished batch may still be being written: its
        lines are not taken.
        """
        held: list[Line] = []
        if in_flight and self.batch_open:
            held = [self._batch[0][0]]
        elif at_end or in_flight:
            self._judge_batch(void=True)
        else:
            held = [line for line, _ in self._batch[:1]] + self._unsealed[:1]
        first_held = min((line.seq for line in held), default=self.count + 1)
        many = bisect_left(self._waiting, first_held, key=_SEQ)
        taken = self._waiting[:many]
        del self._waiting[:many]
        return taken

    def onward(self) -> Scanner:
        """Return a scanner that goes on from here, for lines that come later.

        What was taken stays as it was taken: an unfinished batch is closed, unsealed lines were
        handed out. Not to be used after `feed_unended`: the line feed is still to come.
        """
        other = Scanner(self.chain, offset=self.offset, count=self.count, erasing=self._erasing)
        other._since = self._since.copy() if self._since is not None else None
        other._end = self._end
        other._covers_tombstone = self._covers_tombstone
        other._may_be_mid_batch = False
        return other

    # -- many lines

    def _good_lines(self, data: bytes, bounds: list[int]) -> bool:
        """Read lines if all of them are what nearly all are, and say whether; if not, none is read.

        What is found is what `_line` finds, in a fraction of the time.
        Args: bounds: where each begins, and the place behind the last.
        """
        if self._since is not None or self._covers_tombstone or self._overtaken or self._unsealed:
            return False
        i, n = (self._last.i, self._last.n) if self._batch and self._last is not None else (0, 0)
        starts, ends = bounds[:-1], [bound - 1 for bound in bounds[1:]]
        run = runs.run_of(data, starts, ends, self.chain, self.count, i, n)
        if run is None:
            return False
        if run.first_open >= 0 or run.i == run.n:
            self._judge_batch(void=False)
            self._batch = []
        seq, base = self.count + 1, self.offset - bounds[0]
        many = max(0, run.first_open) if run.i < run.n else len(ends)
        if many:
            self._waiting.append(Stretch(seq, base, bounds[: many + 1]))
        if many < len(ends):
            opened = each([Stretch(seq + many, base, bounds[many:])])
            self._waiting += opened
            self._batch += [(line, line.verdict) for line in opened]
        self.count, self.chain, self.offset = seq + len(ends) - 1, run.chain, base + bounds[-1]
        self._may_be_mid_batch = False
        self._last = Seal(self.count, run.i, run.n, "", run.chain, 0)
        return True

    # -- one line

    def _line(self, line: bytes, ending: bytes) -> None:
        self.strange = self.strange or not line.startswith(runs.FORMAT_1)
        found = find_seal(line)
        if found is not None:
            self._sealed_line(line, found)
        else:
            if is_blank(line):
                self._end = self.end
            else:
                self._unsealed_line(line)
                self._end = None
            self._since = self.covered
            self._since.update(line + ending)
        self.offset += len(line) + len(ending)

    def _end_unended(self, data: bytes) -> int:
        end = data.index(b"\n")
        if data[:end].strip(_TRAILING):
            raise ValueError("what follows an unended line is not its line feed")
        self._unended = False
        self.offset += end + 1
        return end + 1

    def _unsealed_line(self, line: bytes) -> None:
        value = _decode(_plain_decoder, line)  # Before anything is changed: it may raise.
        readable = kinds.is_record(value)
        kept = self._add(len(line), "unsealed" if readable else "unreadable", None)
        self._unsealed.append(kept)
        self._may_be_mid_batch = False
        if line[-1:] == b" ":
            self._covers_tombstone = True
        if self._batch and not self._overtaken:
            if readable and not _was_next(value, self._last):
                self._overtaken = True
            else:
                self._close(void=False)

    def _sealed_line(self, line: bytes, found: Seal) -> None:
        if found.salt is None:
            verdict: Verdict = "erased"
        elif self._checks(line, found):
            verdict = "sealed"
        elif self._covers_tombstone or self._erasing:
            verdict = "unprovable"
        else:
            verdict = "suspect"
            for covered in self._unsealed:
                covered.verdict = "suspect"
        kept = self._add(len(line), verdict, found)
        self.chain = found.chain
        self._since = self._end = None
        if self._unsealed:
            self._unsealed = []
        self._covers_tombstone = False
        self._batch_line(kept, found)

    # -- batches

    def _batch_line(self, line: Line, found: Seal) -> None:
        mid_batch, self._may_be_mid_batch = self._may_be_mid_batch, False
        last, self._last = (self._last if self._batch else None), found
        if line.verdict == "suspect":
            # Nor are the unsealed lines that it covers readable records now.
            self._close(void=False)
        elif found.i == 1:
            self._close(void=True)
            self._open(line, found)
        elif last is None:
            if mid_batch and (self._after is None or _is_next(self._after, found)):
                self._open(line, found)
        elif self._overtaken:
            self._close(void=not _same_batch(last, found))
        elif _is_next(last, found) and found.i < found.n:
            self._batch.append((line, line.verdict))
        else:
            self._close(void=False)

    def _open(self, line: Line, found: Seal) -> None:
        if found.i < found.n:
            self._batch = [(line, line.verdict)]

    def _close(self, *, void: bool) -> None:
        """End the open batch: void when it was never finished, else its lines count."""
        if self._batch:
            self._judge_batch(void=void)
            self._batch = []
        self._overtaken = False

    def _judge_batch(self, *, void: bool) -> None:
        for line, apart in self._batch:
            line.verdict = "void" if void else apart

    def _add(self, length: int, verdict: Verdict, found: Seal | None) -> Line:
        self.count += 1
        start = self.offset
        line = Line(start, start + length, self.count, verdict, found.seq if found else None)
        self._waiting.append(line)
        return line

    def _checks(self, line: bytes, found: Seal) -> bool:
        if self._since is None and len(line) < runs.LARGE:
            digest = hashlib.sha256(self.chain + line[: found.quote_at])
        else:
            digest = self.covered.copy()
            digest.update(memoryview(line)[: found.quote_at])
        return _text(digest.digest()[:16]) == found.chain


def _is_next(before: Seal, found: Seal) -> bool:
    """Say whether a seal is of the line after `before` in its batch."""
    return (before.i + 1, before.n) == (found.i, found.n)


def _same_batch(before: Seal, found: Seal) -> bool:
    """Say whether a seal is of a later line of the batch that `before` is of."""
    apart = found.i - before.i
    return found.n == before.n and apart > 0 and found.seq - before.seq == apart


def _was_next(record: dict[str, Any], last: Seal | None) -> bool:
    """Say whether an unsealed record was the line after `last` before its seal was damaged.

    Other writers know no `ledger`; and where its name is hit, the place in the batch still stands.
    """
    place = [f"{last.i + 1}/{last.n}"] if last else []
    return "ledger" in record or any(
        type(value) is list and value[:1] == place for value in record.values()
    )


# -- decoding --------------------------------------------------------------------------------------


def decode_plain(line: bytes) -> dict[str, Any] | None:
    """Return a line's record as a dict without `ledger`, or None when it is no record."""
    value = _decode(_plain_decoder, line)
    if not kinds.is_record(value):
        return None
    value.pop("ledger", None)
    record: dict[str, Any] = value
    return record


def decode_struct(line: bytes, seq: int) -> kinds.Recorded:
    """Return a line's record with its payloads undecoded; `Unreadable` when it is no record."""
    found = _decode(_struct_decoder, line)
    if found is None:
        plain = _decode(_plain_decoder, line)
        return kinds.of(plain, seq) if isinstance(plain, dict) else kinds.Unreadable(seq=seq)
    record: kinds.Recorded = found
    record.seq = seq
    return record


def decode_again(line: bytes | memoryview, seq: int) -> kinds.Recorded:
    """Return the record of a line that was decoded before, as `decode_struct` does.

    Raises: RecursionError: the caller stands too deep in its own stack.
    """
    try:
        found = _struct_decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return decode_struct(bytes(line), seq)
    found.seq = seq
    return found


def structs_of(records: Sequence[Mapping[str, Any]], count: int) -> list[kinds.Recorded]:
    """Return records that a store took as it would read them. Args: count: how many stood before them."""
    return [
        decode_struct(_encoder.encode(record), seq) for seq, record in enumerate(records, count + 1)
    ]


def decode_structs(
    data: bytes | memoryview, first_seq: int, count: int
) -> list[kinds.Recorded] | None:
    """Decode many good lines at once; None when they must be decoded one by one.

    `decode_lines` is not line-based (two objects on one line give two), so its result is used only
    when there are exactly `count` records with the places expected.
    """
    try:
        records = _struct_decoder.decode_lines(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if len(records) != count:
        return None
    if list(map(_SEQ, records)) != list(range(first_seq, first_seq + count)):
        return None
    return records


def _decode(decoder: msgspec.json.Decoder[Any], line: bytes) -> Any:
    """Decode a line, or None when it does not read or is nested deeper than a record may be.

    Raises: RecursionError: the line is fine, but the caller stands too deep in its own stack; read
    it again from a fresh one (the stores do).
    """
    if values.too_deep(line):
        return None
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
