"""Stores with one fault each. None of them is a joke: each fault is, or was, in a store that people used."""

from __future__ import annotations

import json
import os
import time
import unicodedata
from typing import Any

from ledger.errors import RecordInvalid, StoreConflict
from ledger.records import codec, ids
from ledger.stores.base import Erased, Position, Records
from ledger.stores.blobs import MemoryBlobs
from ledger.stores.memory import MemoryStore, _Log
from tests.testing.simple_stores import LinesStore, SimpleStore

GIVE_WAY_S = 0.0005
"""Long enough for another thread to come between."""


# -- who comes first -------------------------------------------------------------------------------


class ChecksThenInserts(SimpleStore):
    """Compares `expect` first, and takes the lock for writing after."""

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> Position:
        self.check_expect(conversation, expect, self.position(self.key(conversation)))
        time.sleep(GIVE_WAY_S)
        return super().append(conversation, records)


class ReadsThenWrites(SimpleStore):
    """Reads the whole conversation, adds to it, writes it back: what came between is lost."""

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> Position:
        key = self.key(conversation)
        self.check_expect(conversation, expect, self.position(key))
        before = list(self.kept.get(key, []))
        time.sleep(GIVE_WAY_S)
        if before:
            self.kept[key] = before
        return super().append(conversation, records)


class IgnoresExpect(SimpleStore):
    """Appends whatever is expected."""

    def check_expect(self, conversation: str, expect: int | None, found: Position) -> None:
        pass


class ExpectsAtLeast(SimpleStore):
    """Takes a count that was right once for right."""

    def check_expect(self, conversation: str, expect: int | None, found: Position) -> None:
        if expect is not None and expect > found:
            self.conflict(conversation, expect, found)


class ExpectsOneMore(SimpleStore):
    """Is off by one: takes the place of the next record for the count, too."""

    def check_expect(self, conversation: str, expect: int | None, found: Position) -> None:
        if expect != found + 1:
            super().check_expect(conversation, expect, found)


class ExpectsNothingAsNone(SimpleStore):
    """Takes `expect=0` for `expect=None`, since both are false."""

    def check_expect(self, conversation: str, expect: int | None, found: Position) -> None:
        super().check_expect(conversation, expect or None, found)


class _Conflict(Exception):
    code = "store-conflict"


class ConflictsWithoutFields(SimpleStore):
    """Says that there is a conflict, and not which."""

    def conflict(self, conversation: str, expect: int, found: int) -> None:
        raise _Conflict


class ConflictsTheWrongWayRound(SimpleStore):
    """Says what it found as what was expected."""

    def conflict(self, conversation: str, expect: int, found: int) -> None:
        raise StoreConflict(conversation=conversation, expected=int(found), found=int(expect))


class ConflictsOnNothing(SimpleStore):
    """Does not compare `expect` when there is nothing to append."""

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> Position:
        if not records:
            return self.position(self.key(conversation))
        return super().append(conversation, records, expect=expect)


class AppendsAfterAConflict(SimpleStore):
    """Stores the batch, then says that there was a conflict: the retry adds it again."""

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> Position:
        before = self.position(self.key(conversation))
        count = super().append(conversation, records)
        self.check_expect(conversation, expect, before)
        return count


# -- all of it, once, in order ---------------------------------------------------------------------


class ShowsPartsOfBatches(SimpleStore):
    """Adds records one by one, and frees the lock between them."""

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> Position:
        key = self.key(conversation)
        given = [self.encode(record) for record in records]
        with self.changed:
            self.check_expect(conversation, expect, self.position(key))
        for text in given:
            with self.changed:
                self.add(key, [text])
                self.changed.notify_all()
            time.sleep(GIVE_WAY_S)
        return self.position(key)


class KeepsWhatCameBeforeABadRecord(SimpleStore):
    """Encodes each record when its turn comes."""

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> Position:
        key = self.key(conversation)
        with self.changed:
            self.check_expect(conversation, expect, self.position(key))
            for record in records:
                self.add(key, [self.encode(record)])
            self.changed.notify_all()
            return self.position(key)


class ReversesBatches(SimpleStore):
    """Writes the last record of a batch first."""

    def add(self, key: str, given: list[str]) -> None:
        super().add(key, given[::-1])


class CountsFromZero(SimpleStore):
    """Gives the first record the place 0."""

    def decode(self, text: str, seq: int) -> dict[str, Any]:
        return super().decode(text, seq - 1)


class CountsFromTheRead(SimpleStore):
    """Numbers what it hands out from 1, wherever the reading began."""

    def hand_out(self, key: str, after: int) -> Any:
        found = super().hand_out(key, after)
        for seq, record in enumerate(found, 1):
            record["seq"] = seq
        return found


class SkipsOneMore(SimpleStore):
    """Reads from the place itself where it should read after it."""

    def hand_out(self, key: str, after: int) -> Any:
        return super().hand_out(key, max(0, after - 1))


class DropsDuplicates(SimpleStore):
    """Leaves out a record that is the same as the last one: surely a retry."""

    def add(self, key: str, given: list[str]) -> None:
        fresh = [text for text in given if text not in self.kept.get(key, [])[-1:]]
        super().add(key, fresh)


class TellsHowManyWereAdded(SimpleStore):
    """Returns how many records it added in place of how many there are."""

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> Position:
        count = super().append(conversation, records, expect=expect)
        return Position(len(records), count.incarnation)


class ReadsNothingBeyondTheEnd(SimpleStore):
    """Takes a place that is not there for the end."""

    def check_after(self, conversation: str, after: int, found: Position) -> None:
        if after <= found:
            super().check_after(conversation, after, found)


# -- values ----------------------------------------------------------------------------------------


class KeepsReferences(SimpleStore):
    """Keeps the records that it was given, and hands them out, as they are."""

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> Position:
        self.originals = getattr(self, "originals", {})
        for record in records:
            self.originals[self.encode(record)] = record
        return super().append(conversation, records, expect=expect)

    def decode(self, text: str, seq: int) -> dict[str, Any]:
        copy = json.loads(json.dumps(self.originals[text]))
        copy.pop("ledger", None)
        return {**copy, "seq": seq}


class HandsOutTheSame(SimpleStore):
    """Hands out the same dict to everybody who reads."""

    def decode(self, text: str, seq: int) -> dict[str, Any]:
        self.decoded = getattr(self, "decoded", {})
        found: dict[str, Any] = self.decoded.setdefault((text, seq), super().decode(text, seq))
        return found


class NumbersTheCallersRecords(SimpleStore):
    """Writes `seq` into the dicts that it was given."""

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> Position:
        count = super().append(conversation, records, expect=expect)
        for seq, record in enumerate(records, int(count) - len(records) + 1):
            record["seq"] = seq
        return count


class _Lenient(SimpleStore):
    """Encodes values as the fault says, and what is left as it should."""

    def replaced(self, value: Any) -> Any:
        return value

    def encode(self, record: Any) -> str:
        return super().encode(self.walked(record))

    def walked(self, value: Any) -> Any:
        value = self.replaced(value)
        if type(value) is dict and len(value) < 50:
            return {self.walked(key): self.walked(inner) for key, inner in value.items()}
        if (
            type(value) is list
            and len(value) < 50
            and value not in ([], [[]])
            and value[0] is not value
        ):
            return [self.walked(inner) for inner in value]
        return value


class TakesNaN(SimpleStore):
    """Uses the standard library's JSON as it comes, which writes NaN."""

    def encode(self, record: Any) -> str:
        try:
            return super().encode(record)
        except RecordInvalid as error:
            if "is not a JSON number" not in str(error):
                raise
            return json.dumps(record)


class TurnsTuplesIntoLists(_Lenient):
    """Writes a tuple as a list."""

    def replaced(self, value: Any) -> Any:
        return list(value) if type(value) is tuple else value


class ReplacesSurrogates(_Lenient):
    """Writes a question mark for what is no text."""

    def replaced(self, value: Any) -> Any:
        return value.encode(errors="replace").decode() if type(value) is str else value


class TurnsKeysIntoText(_Lenient):
    """Writes a key that is a number as text."""

    def replaced(self, value: Any) -> Any:
        if type(value) is dict and all(type(key) in (str, int) for key in value):
            return {str(key): inner for key, inner in value.items()}
        return value


class WritesBytesAsText(_Lenient):
    """Writes bytes as the text they may be."""

    def replaced(self, value: Any) -> Any:
        return value.decode("latin-1") if type(value) is bytes else value


class DropsNUL(_Lenient):
    """Takes NUL out, since its database would refuse it."""

    def replaced(self, value: Any) -> Any:
        return value.replace("\x00", "") if type(value) is str else value


class ComposesText(_Lenient):
    """Normalises text."""

    def replaced(self, value: Any) -> Any:
        return unicodedata.normalize("NFC", value) if type(value) is str else value


class SortsKeys(SimpleStore):
    """Sorts keys, as databases with a JSON type of their own do."""

    def encode(self, record: Any) -> str:
        return json.dumps(json.loads(super().encode(record)), sort_keys=True)


class RoundsNumbers(SimpleStore):
    """Writes 1.0 as 1."""

    def decode(self, text: str, seq: int) -> dict[str, Any]:
        def whole(number: str) -> float:
            return int(float(number)) if float(number) == int(float(number)) else float(number)

        return {**json.loads(text, parse_float=whole), "seq": seq}


class DropsUnknownKeys(SimpleStore):
    """Keeps the keys that it has columns for."""

    def encode(self, record: Any) -> str:
        known = ("functai_conversation", "kind", "at", "plugin", "entry", "data")
        super().encode(record)
        return super().encode({key: record[key] for key in known if key in record})


class RefusesUnknownKinds(SimpleStore):
    """Keeps the kinds that it has tables for."""

    def encode(self, record: Any) -> str:
        text = super().encode(record)
        if record["kind"] != "entry":
            raise RecordInvalid(path="kind", reason="is not known here")
        return text


class TakesAnySize(SimpleStore):
    """Has no limit."""

    def encode(self, record: Any) -> str:
        try:
            return super().encode(record)
        except Exception as error:
            if getattr(error, "code", "") != "record-too-large":
                raise
            return json.dumps(record)


class TakesAnyDict(SimpleStore):
    """Does not ask whether a dict is a record."""

    def encode(self, record: Any) -> str:
        try:
            return super().encode(record)
        except RecordInvalid as error:
            if error.path not in ("functai_conversation", "kind", "at"):
                raise
            return json.dumps(record)


class SaysContent(SimpleStore):
    """Shows the record that it refuses."""

    def encode(self, record: Any) -> str:
        try:
            return super().encode(record)
        except RecordInvalid as error:
            raise RecordInvalid(path=error.path, reason=f"cannot be kept: {record!r}") from None


class ShowsItself(SimpleStore):
    """Has a repr made of all its fields."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({vars(self)!r})"


# -- which conversation ----------------------------------------------------------------------------


class FoldsCase(SimpleStore):
    """Takes `A` for `a`, as some file systems and collations do."""

    def key(self, conversation: Any) -> str:
        return super().key(conversation).casefold()


class CutsIds(SimpleStore):
    """Has a column of 100 characters."""

    def key(self, conversation: Any) -> str:
        return super().key(conversation)[:100]


class ComparesIdsAsNumbers(SimpleStore):
    """Has a column that takes `01` for 1."""

    def key(self, conversation: Any) -> str:
        key = super().key(conversation)
        return str(int(key)) if key.isdigit() else key


class FollowsPaths(SimpleStore):
    """Joins an id to its folder as it is."""

    def key(self, conversation: Any) -> str:
        return os.path.normpath(os.path.join("store", str(conversation)))


class ChecksIdsWhenWriting(SimpleStore):
    """Lets any id be asked for."""

    writing = False

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> Position:
        ids.check_conversation(conversation)
        return super().append(conversation, records, expect=expect)

    def key(self, conversation: Any) -> str:
        return str(conversation)


class DeletesTheNameOnly(SimpleStore):
    """Takes a conversation off its list, and has its records again with the next append."""

    def __init__(self, place: Any = None) -> None:
        super().__init__(place)
        self.removed: dict[str, list[str]] = {}

    def delete(self, conversation: str) -> bool:
        self.removed[conversation] = self.kept.get(conversation, [])
        return super().delete(conversation)

    def add(self, key: str, given: list[str]) -> None:
        super().add(key, self.removed.pop(key, []) + given)


class CountsOnAfterADelete(SimpleStore):
    """Numbers the records of a conversation made anew from where the deleted one ended."""

    def __init__(self, place: Any = None) -> None:
        super().__init__(place)
        self.gone: dict[str, int] = {}

    def delete(self, conversation: str) -> bool:
        self.gone[conversation] = len(self.kept.get(conversation, []))
        return super().delete(conversation)

    def position(self, key: str) -> Position:
        found = super().position(key)
        return Position(found + (self.gone.get(key, 0) if found else 0), found.incarnation)


class SaysItDeleted(SimpleStore):
    """Says that it deleted what was not there."""

    def delete(self, conversation: str) -> bool:
        super().delete(conversation)
        return True


class IgnoresIncarnations(SimpleStore):
    """Compares counts only."""

    def agrees(self, given: int, found: Position) -> bool:
        return given == found

    def check_after(self, conversation: str, after: int, found: Position) -> None:
        super().check_after(conversation, int(after), found)


class MakesIncarnationsOfIds(SimpleStore):
    """Gives a conversation made anew the incarnation of the one before."""

    def position(self, key: str) -> Position:
        found = super().position(key)
        return Position(found, ("", key) if found else None)


class ReadsOldPositions(SimpleStore):
    """Compares the incarnation when appending, and not when reading."""

    def check_after(self, conversation: str, after: int, found: Position) -> None:
        super().check_after(conversation, int(after), found)


class ListsEmptyOnes(SimpleStore):
    """Lists what was only asked for."""

    def read(self, conversation: str, after: int = 0) -> Any:
        self.kept.setdefault(self.key(conversation), [])
        return super().read(conversation, after)


class ListsInOrderOfMaking(SimpleStore):
    """Does not sort."""

    def conversations(self) -> list[str]:
        return list(self.kept)


# -- waiting ---------------------------------------------------------------------------------------


class NeverWakes(SimpleStore):
    """Looks once, and then sleeps out its time."""

    def wait(self, conversation: str, after: int, timeout: float) -> bool:
        if super().wait(conversation, after, 0):
            return True
        time.sleep(timeout)
        return False


class WaitsForNothing(SimpleStore):
    """Looks once, and says so."""

    def wait(self, conversation: str, after: int, timeout: float) -> bool:
        return super().wait(conversation, after, 0)


class AlwaysSaysChanged(SimpleStore):
    """Says at once that there is something."""

    def wait(self, conversation: str, after: int, timeout: float) -> bool:
        super().wait(conversation, after, 0)
        return True


class WakesForAnybody(SimpleStore):
    """Takes an append to another conversation for one to this."""

    def wait(self, conversation: str, after: int, timeout: float) -> bool:
        if super().wait(conversation, after, 0):
            return True
        with self.changed:
            return self.changed.wait(timeout)


class WakesOne(SimpleStore):
    """Wakes one of those who wait."""

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> Position:
        key = self.key(conversation)
        given = [self.encode(record) for record in records]
        with self.changed:
            self.check_expect(conversation, expect, self.position(key))
            self.add(key, given)
            self.changed.notify()
            return self.position(key)


class WaitsForMore(SimpleStore):
    """Asks whether there is more, not whether the conversation is elsewhere."""

    def wait(self, conversation: str, after: int, timeout: float) -> bool:
        key = self.key(conversation)
        with self.changed:
            return self.changed.wait_for(lambda: self.position(key) > after, timeout)


# -- files -----------------------------------------------------------------------------------------


class GluesTornTails(LinesStore):
    """Appends behind whatever is there."""

    def write(self, file: Any, whole: bytes, bodies: list[bytes]) -> None:
        file.write(b"[" + b",".join(bodies) + b"]\n")
        file.flush()

    def records(self, data: bytes) -> list[Any]:
        records: list[Any] = []
        for line in data.split(b"\n")[:-1]:
            try:
                records += json.loads(line)
            except ValueError:
                continue
        return records


class StopsAtTornTails(LinesStore):
    """Cannot be opened after a crash."""

    def whole(self, file: Any) -> bytes:
        file.seek(0)
        data: bytes = file.read()
        json.loads(data[data.rfind(b"\n", 0, -1) + 1 :] or b"[]")
        return data


class SplitsAtEveryLineEnd(LinesStore):
    """Takes U+2028 and its like for the end of a line, having written them as they are."""

    def records(self, data: bytes) -> list[Any]:
        return [record for line in data.decode().splitlines() for record in json.loads(line)]

    def write(self, file: Any, whole: bytes, bodies: list[bytes]) -> None:
        raw = b",".join(bodies).replace(b"\\u2028", "\u2028".encode())
        super().write(file, whole, [raw])


class WritesTheLastWithTheNext(LinesStore):
    """Keeps the last append back until the next one: acknowledged, and not there."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.back: dict[str, bytes] = {}

    def whole(self, file: Any) -> bytes:
        return super().whole(file) + self.back.get(file.name, b"")

    def write(self, file: Any, whole: bytes, bodies: list[bytes]) -> None:
        file.write(self.back.get(file.name, b""))
        file.flush()
        self.back[file.name] = b"[" + b",".join(bodies) + b"]\n"


class RemembersWhatItRead(LinesStore):
    """Reads a conversation once."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.remembered: dict[str, list[dict[str, Any]]] = {}

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> int:
        count = super().append(conversation, records, expect=expect)
        self.remembered.pop(conversation, None)
        return count

    def read(self, conversation: str, after: int = 0) -> list[dict[str, Any]]:
        if after:
            return super().read(conversation, after)
        if conversation not in self.remembered:
            self.remembered[conversation] = super().read(conversation)
        copy: list[dict[str, Any]] = json.loads(json.dumps(self.remembered[conversation]))
        return copy


class LocksNobodyOut(LinesStore):
    """Locks within its process only, by a lock object of each store."""

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> int:
        path = self.path(conversation)
        bodies = [codec.body(record) for record in records]
        os.makedirs(self.folder, exist_ok=True)
        with open(path, "a+b") as file:
            whole = self.whole(file)
            count = len(self.records(whole))
            if expect is not None and expect != count:
                raise StoreConflict(conversation=conversation, expected=expect, found=count)
            if bodies:
                self.write(file, whole, bodies)
            return count + len(bodies)


class MakesTheFolderOnce(LinesStore):
    """Looks whether the folder is there, then makes it, which fails for the second."""

    def path(self, conversation: Any) -> str:
        path = super().path(conversation)
        if not os.path.isdir(self.folder):
            time.sleep(GIVE_WAY_S)
            os.mkdir(self.folder)
        return path


class WritesRecordByRecord(LinesStore):
    """Writes each record of a batch as a line of its own: killed between two, it leaves a part."""

    def write(self, file: Any, whole: bytes, bodies: list[bytes]) -> None:
        file.truncate(len(whole))
        for body in bodies:
            file.write(b"[" + body + b"]\n")
            file.flush()
            time.sleep(GIVE_WAY_S * 10 if len(bodies) == 3 else 0)


# -- sealed bytes ----------------------------------------------------------------------------------


class SealsEachAlone(MemoryStore):
    """Seals each record of a batch as a batch of its own."""

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> Position:
        count = super().append(conversation, [], expect=expect)
        for record in records:
            codec.body(record)
        for record in records:
            count = super().append(conversation, [record])
        return count


class ReusesSalts(MemoryStore):
    """Seals every line with the same salt: a position cannot tell one making from another."""

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> Position:
        with self._bell.lock:
            before = self.raw(conversation)
            super().append(conversation, records, expect=expect)
            scanner = codec.Scanner(codec.first_chain(conversation))
            scanner.feed(before)
            bodies = [codec.body(record) for record in records]
            added, _ = codec.seal(
                bodies, scanner.count, scanner.covered, [b"\x00" * 16 for _ in bodies]
            )
            if bodies:
                self._logs[conversation] = _Log(conversation, before + added)
            return self._log(conversation).position


class TrustsEveryByte(MemoryStore):
    """Hands out what reads, whether or not its seal checks."""

    def read(self, conversation: str, after: int = 0) -> Records[dict[str, Any]]:
        found = super().read(conversation, after)
        lines = [line for line in self.raw(conversation).split(b"\n") if not codec.is_blank(line)]
        for place, record in enumerate(found):
            again = codec.decode_plain(lines[record["seq"] - 1])
            if again is not None:
                found[place] = {**again, "seq": record["seq"]}
        return found


class AdoptsOverAnother(MemoryStore):
    """Puts a copy in the place of what is there."""

    def adopt(self, conversation: str, data: bytes) -> Position:
        if data:
            self.delete(conversation)
        return super().adopt(conversation, data)


class ErasesFromSight(MemoryStore):
    """Hides an erased turn from readers, and keeps its bytes."""

    def erase(self, conversation: str, turn: str, *, expect: int | None = None) -> Erased:
        data = self.raw(conversation)
        done = super().erase(conversation, turn, expect=expect)
        self.hidden = {**getattr(self, "hidden", {}), conversation: data} if done else {}
        return done

    def bytes_kept(self, conversation: str) -> bytes:
        return self.raw(conversation) + getattr(self, "hidden", {}).get(conversation, b"")


class LeavesAttachments(MemoryStore):
    """Removes a conversation, and leaves its attachments for ever."""

    def _sweep(self, gone: bytes) -> tuple[list[str], list[str]]:
        return [], []


class _NoBytes(MemoryBlobs):
    def get(self, sha256: str) -> bytes:
        return super().get(sha256) if self.has(sha256) else b""


class HasEmptyAttachments(MemoryStore):
    """Gives no bytes for an attachment that is not there."""

    def __init__(self) -> None:
        super().__init__()
        self.blobs = _NoBytes()


class StaysLockedInAFork(MemoryStore):
    """Leaves its lock in a fork as another thread held it."""

    def append(self, conversation: str, records: Any, *, expect: int | None = None) -> Position:
        with self._bell.lock:
            time.sleep(GIVE_WAY_S)
            return super().append(conversation, records, expect=expect)

    def before_fork(self) -> None:
        pass

    def after_fork(self, *, child: bool) -> None:
        pass
