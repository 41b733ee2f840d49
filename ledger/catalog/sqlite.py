"""An index in SQLite, in a file or in memory.

    conversations   a row each: its `ConversationRow`, what is asked of it in columns, and how far it was taken
    turns           a row each: its `TurnRow`, and what is asked of it in columns
    texts           full text: of a turn what was asked, answered, and its labels; of a conversation title and labels

In statements `@` stands for what the names of these tables begin with: nothing in a file of their own.

A turn's key is its conversation's key and its ordinal in one number, a conversation's text has ordinal 0: so
what belongs together lies together, and no key has to be looked up.

Forgetting is for others too (`stores.index_file`), who do not know these tables: what is inserted into
`forgotten`, a conversation and a turn (null: all of it), is taken out by a trigger, and the conversation is read
anew by whoever asks next. The full-text index has to be merged then (`merge`), which takes a while: until then it
only notes what is deleted.

Errors of SQLite are let through: whoever has the index decides what they mean for it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from ledger.catalog import texts
from ledger.catalog.index import Found, Said, Sought, Stale, Used, Wanted, said_in
from ledger.catalog.rows import Changes, ConversationRow, TurnRow, encoded, storable
from ledger.catalog.texts import BEGIN, END, TOKENS
from ledger.stores.index_file import forget, merge

if TYPE_CHECKING:
    from ledger.stores.sql.index_room import Room

SCHEMA = 5
"""Another number in a file: it was made by another version of this package, and is made anew."""
APPLICATION = 0x7475726E
"""What tells our file from another's: `turn`."""

_INDEXED = f'asked, answered, about, tokenize = "{TOKENS}"'
_BITS = 32
_FIRST = f"(c.key << {_BITS})"
_LAST = f"(((c.key + 1) << {_BITS}) - 1)"
"""The keys of all that belongs to a conversation lie between these."""
_TABLES = f"""
CREATE TABLE @conversations(
    key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, look TEXT NOT NULL, mark TEXT NOT NULL,
    position INTEGER NOT NULL, title TEXT NOT NULL, last TEXT NOT NULL, turns INTEGER NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX @by_last ON @conversations(last, id);
CREATE TABLE @turns(
    key INTEGER PRIMARY KEY, turn TEXT NOT NULL, model TEXT, started TEXT, tokens TEXT NOT NULL,
    unended INTEGER NOT NULL, data TEXT NOT NULL
);
CREATE INDEX @by_turn ON @turns(turn, key);
CREATE INDEX @by_model ON @turns(model, key);
CREATE INDEX @by_state ON @turns(key) WHERE unended;
CREATE VIRTUAL TABLE @texts USING fts5({_INDEXED});
CREATE VIEW @forgotten AS SELECT id AS conversation, '' AS turn FROM @conversations;
CREATE TRIGGER @forget INSTEAD OF INSERT ON @forgotten BEGIN
    DELETE FROM @texts WHERE rowid IN (
        SELECT t.key FROM @conversations c JOIN @turns t ON t.key BETWEEN {_FIRST} AND {_LAST}
        WHERE c.id = NEW.conversation AND t.turn = coalesce(NEW.turn, t.turn)
        UNION ALL SELECT {_FIRST} FROM @conversations c WHERE c.id = NEW.conversation);
    DELETE FROM @turns WHERE key IN (
        SELECT t.key FROM @conversations c JOIN @turns t ON t.key BETWEEN {_FIRST} AND {_LAST}
        WHERE c.id = NEW.conversation AND t.turn = coalesce(NEW.turn, t.turn));
    UPDATE @conversations SET look = '', mark = '', position = 0, title = '', data = json_object('id', id)
        WHERE id = NEW.conversation;
    DELETE FROM @conversations WHERE id = NEW.conversation AND NEW.turn IS NULL;
END;
"""
_OWN = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {SCHEMA};
"""
"""What is said of a file of its own."""
_SNIPPET = f"snippet(few, -1, '{BEGIN}', '{END}', '…', 28)"

_LABELLED = "EXISTS (SELECT 1 FROM json_each(c.data, '$.labels') WHERE value = ?)"

_conversation = msgspec.json.Decoder(ConversationRow).decode
_turn = msgspec.json.Decoder(TurnRow).decode
_tokens = msgspec.json.Decoder(dict[str, int]).decode


class Foreign(Exception):
    """Raised when a file is no index of this version. Next: remove it and make it anew."""


class Anew(Exception):
    """Raised when another process made an index anew meanwhile: it is to be asked once more."""


class _Named:
    """A connection in whose statements `@` stands for what the names of tables begin with."""

    def __init__(self, connection: sqlite3.Connection, prefix: str) -> None:
        self._connection = connection
        self._prefix = prefix

    def execute(self, statement: str, given: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self._connection.execute(statement.replace("@", self._prefix), given)

    def executemany(self, statement: str, given: Iterable[Sequence[Any]]) -> sqlite3.Cursor:
        return self._connection.executemany(statement.replace("@", self._prefix), given)


class SQLiteIndex:
    """An index over a connection, which is made ready if it is new. Raises: Foreign; sqlite3.Error.

    Args: prefix: what the names of its tables begin with; empty: it is alone in the file.
    """

    def __init__(self, connection: sqlite3.Connection, prefix: str = "") -> None:
        self._connection = connection
        self._prefix = prefix
        self._db = _Named(connection, prefix)
        self._keys: dict[str, int] = {}
        """Keys of conversations, as far as they were asked for inside one transaction."""
        if not self._is_made():
            with self.writing():
                if not self._is_made():
                    self._make()

    def _is_made(self) -> bool:
        """Say whether the tables are there. Raises: Foreign: they are not ours, or of another version."""
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        (schema,) = self._db.execute("PRAGMA user_version").fetchone()
        if (application, schema) not in ((0, 0), (APPLICATION, SCHEMA)):
            raise Foreign(f"it is of version {schema}, not {SCHEMA}")
        return (application, schema) != (0, 0)

    def _make(self) -> None:
        (there,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if there:
            raise Foreign("it is another program's")
        self._run(_TABLES + _OWN)

    def _run(self, statements: str) -> None:
        statement = ""
        for line in statements.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                self._db.execute(statement)
                statement = ""

    # -- transactions

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write all that is written inside, or none; who else writes is waited for."""
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Have all that is asked inside answered as of one moment."""
        with self._transaction("BEGIN"):
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self._db.execute(begin)
        try:
            with self._keeping_keys():
                yield
            self._db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def _keeping_keys(self) -> Iterator[None]:
        self._keys = {}
        try:
            yield
        finally:
            self._keys = {}

    # -- what is kept

    def stale(self, looks: Callable[[], dict[str, str]]) -> Stale:
        """Return which conversations look otherwise than when they were taken, and which are gone."""
        now, known = looks(), dict(self._db.execute("SELECT id, look FROM @conversations"))
        changed = [name for name, look in now.items() if known.get(name) != look]
        return Stale(sorted(changed), [name for name in known if name not in now])

    def place(self, conversation: str) -> tuple[str, str]:
        """Return the look and the mark to which a conversation was taken; empty ones where it was not."""
        asked = "SELECT look, mark FROM @conversations WHERE id = ?"
        found: tuple[str, str] | None = self._db.execute(asked, (conversation,)).fetchone()
        return found or ("", "")

    def row(self, conversation: str) -> ConversationRow | None:
        """Return a conversation's row."""
        asked = "SELECT data FROM @conversations WHERE id = ?"
        found = self._db.execute(asked, (conversation,)).fetchone()
        return None if found is None else _conversation(found[0])

    def turn(self, conversation: str, turn: str) -> TurnRow | None:
        """Return a turn's row."""
        key = self._key(conversation)
        if key is None:
            return None
        asked = "SELECT data FROM @turns WHERE turn = ? AND key BETWEEN ? AND ?"
        found = self._db.execute(asked, (storable(turn), *_range(key))).fetchone()
        return None if found is None else _turn(found[0])

    def _key(self, conversation: str) -> int | None:
        if conversation not in self._keys:
            asked = "SELECT key FROM @conversations WHERE id = ?"
            found = self._db.execute(asked, (conversation,)).fetchone()
            if found is None:
                return None
            self._keys[conversation] = found[0]
        return self._keys[conversation]

    # -- what changes

    def write(self, changes: Changes, look: str, mark: str, *, whole: bool = False) -> None:
        """Keep what has changed, and to where the log was taken.

        Args: whole: these are all turns there are; what else is kept of the conversation goes, for good.
        """
        row = changes.conversation
        told = row.position, _folded(row.title), row.last or "", row.turns, encoded(row)
        self._db.execute(
            "INSERT INTO @conversations(id, look, mark, position, title, last, turns, data) "
            "VALUES(?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET look = excluded.look, "
            "mark = excluded.mark, position = excluded.position, title = excluded.title, "
            "last = excluded.last, turns = excluded.turns, data = excluded.data",
            (row.id, look, mark, *told),
        )
        first, last = _range(self._key(row.id) or 0)
        turns = {first + turn.ordinal: _columns(turn) for turn in changes.turns.values()}
        said = said_in(changes, lambda ordinal: self._said(first + ordinal))
        said_now = {first + ordinal: columns for ordinal, columns in said.items()}
        stale = self._drop_stale(turns, said_now, first, last) if whole else False
        self._db.executemany(
            "INSERT OR REPLACE INTO @turns(key, turn, model, started, tokens, unended, data) "
            "VALUES(?, ?, ?, ?, ?, ?, ?)",
            ((key, *columns) for key, columns in turns.items()),
        )
        self._db.executemany(
            "INSERT OR REPLACE INTO @texts(rowid, asked, answered, about) VALUES(?, ?, ?, ?)",
            ((key, *columns) for key, columns in said_now.items() if any(columns)),
        )
        removed = [(key,) for key, columns in said_now.items() if not any(columns)]
        self._db.executemany("DELETE FROM @texts WHERE rowid = ?", removed)
        if stale:
            merge(self._connection, prefix=self._prefix)

    def _said(self, key: int) -> Said:
        asked = "SELECT asked, answered, about FROM @texts WHERE rowid = ?"
        found = self._db.execute(asked, (key,)).fetchone()
        return Said(*found) if found is not None else Said()

    def _drop_stale(
        self,
        turns: dict[int, tuple[Any, ...]],
        said: dict[int, Said],
        first: int,
        last: int,
    ) -> bool:
        """Delete what is kept otherwise, or for nothing; what is kept already is left out of what is to be written.

        Returns: whether a text was deleted.
        """
        gone: dict[str, list[int]] = {"turns": [], "texts": []}
        asked = "SELECT key, turn, model, started, tokens, unended, data FROM @turns WHERE key BETWEEN ? AND ?"
        for key, *columns in self._db.execute(asked, (first, last)):
            if turns.get(key) == tuple(columns):
                del turns[key]
            else:
                gone["turns"].append(key)
        asked = "SELECT rowid, asked, answered, about FROM @texts WHERE rowid BETWEEN ? AND ?"
        for key, *columns in self._db.execute(asked, (first, last)):
            if said.get(key) == tuple(columns):
                del said[key]
            else:
                gone["texts"].append(key)
        self._db.executemany("DELETE FROM @turns WHERE key = ?", ((key,) for key in gone["turns"]))
        self._db.executemany(
            "DELETE FROM @texts WHERE rowid = ?", ((key,) for key in gone["texts"])
        )
        return bool(gone["texts"])

    def remove(self, conversations: Iterable[str]) -> None:
        """Remove all that is kept of conversations, for good: no byte of their texts stays in a file."""
        known = [each for each in conversations if self._key(each) is not None]
        for conversation in known:
            forget(self._connection, conversation, None, prefix=self._prefix)
            del self._keys[conversation]
        if known:
            merge(self._connection, prefix=self._prefix)

    # -- what is asked

    def listed(self, wanted: Wanted) -> list[ConversationRow]:
        """Return the conversations that fit, in order; no more than `limit`."""
        where, given = _listing(wanted)
        order = "last DESC, id" if wanted.order == "last" else "id"
        asked = f"SELECT data FROM @conversations c WHERE {' AND '.join(where)} ORDER BY {order} LIMIT ?"
        limit = -1 if wanted.limit is None else wanted.limit
        return [_conversation(data) for (data,) in self._db.execute(asked, (*given, limit))]

    def unended(self, conversations: Collection[str] | None = None) -> list[tuple[str, TurnRow]]:
        """Return the turns that have not ended, with their conversations; None: of all."""
        asked = (
            "SELECT c.id, t.data FROM @turns t JOIN @conversations c ON c.key = t.key >> "
            f"{_BITS} WHERE t.unended"
        )
        if conversations is None:
            found = self._db.execute(f"{asked} ORDER BY c.id, t.key")
        else:
            asked += " AND c.id IN (SELECT value FROM json_each(?)) ORDER BY c.id, t.key"
            found = self._db.execute(asked, (_listed(conversations),))
        return [(id, _turn(data)) for id, data in found]

    def sought(self, sought: Sought) -> list[Found]:
        """Return the texts that fit, the best first."""
        where, given = ["@texts MATCH ?"], [texts.match(sought.query)]
        if sought.conversations is not None:
            where.append("c.id IN (SELECT value FROM json_each(?))")
            given.append(_listed(sought.conversations))
        where += [_LABELLED] * len(sought.labels)
        given += map(storable, sought.labels)
        if sought.models:
            where.append("t.model IN (SELECT value FROM json_each(?))")
            given.append(_listed(sought.models))
        if sought.since is not None:
            where.append("coalesce(t.started, c.last) >= ?")
            given.append(sought.since)
        asked = (
            "SELECT @texts.rowid, c.data, t.data, bm25(@texts, 1.0, 1.0, 4.0) AS fit FROM @texts "
            f"CROSS JOIN @conversations c ON c.key = @texts.rowid >> {_BITS} "
            "LEFT JOIN @turns t ON t.key = @texts.rowid "
            f"WHERE {' AND '.join(where)} ORDER BY fit, @texts.rowid DESC LIMIT ?"
        )
        found = self._db.execute(asked, (*given, sought.limit)).fetchall()
        pieces = self._pieces(given[0], [key for key, *_ in found])
        return [
            Found(_conversation(row), None if turn is None else _turn(turn), pieces[key], -fit)
            for key, row, turn, fit in found
        ]

    def _pieces(self, match: str, keys: list[int]) -> dict[int, str]:
        """Return a part of each text around what fits.

        Asked of the whole index, that would be made of every text that fits, before the best are known; or the
        whole index would be searched for each of those. So it is asked of an index of these few.
        """
        return pieces(self._connection, match, {key: self._said(key) for key in keys})

    def used(
        self, conversations: Collection[str] | None = None, labels: Collection[str] = ()
    ) -> Iterator[Used]:
        """Yield what each turn used, in the order of the conversations' ids.

        Args: conversations: only of these; None: of all. labels: only of those that have all of them.
        """
        where, given = ["1"], list[Any]()
        if conversations is not None:
            where.append("c.id IN (SELECT value FROM json_each(?))")
            given.append(_listed(conversations))
        where += [_LABELLED] * len(labels)
        given += map(storable, labels)
        ids = self._db.execute(
            f"SELECT c.key, c.id, c.data FROM @conversations c WHERE {' AND '.join(where)} ORDER BY c.id",
            given,
        )
        asked = (
            "SELECT turn, started, model, tokens FROM @turns WHERE key BETWEEN ? AND ? ORDER BY key"
        )
        for key, id, data in ids.fetchall():
            put = _conversation(data).labels
            for turn, started, model, tokens in self._db.execute(asked, _range(key)):
                yield Used(turn, id, started, model, _tokens(tokens), put)


class BesideLogs(SQLiteIndex):
    """An index in the file of SQLite that keeps the logs themselves, in tables of its own for each tenant.

    Its version is in a table, since what is said of the whole file is the store's, with a word that no other has.
    """

    def __init__(self, room: Room) -> None:
        self._room = room
        connection: sqlite3.Connection = room.driver
        connection.execute("PRAGMA temp_store = MEMORY")
        super().__init__(connection, room.prefix)
        self._made = self._word()

    def _word(self) -> str:
        return str(self._db.execute("SELECT made FROM @version").fetchone()[0])

    def _is_made(self) -> bool:
        asked = "SELECT count(*) FROM sqlite_master WHERE name = '@version'"
        if not self._db.execute(asked).fetchone()[0]:
            return False
        if self._db.execute("SELECT number FROM @version").fetchone() != (SCHEMA,):
            raise Foreign(f"it is not of version {SCHEMA}")
        return True

    def _make(self) -> None:
        made = "CREATE TABLE @version AS SELECT {} AS number, lower(hex(randomblob(8))) AS made;\n"
        self._run(_TABLES + made.format(SCHEMA))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write all that is written inside, or none; the logs are read in the same transaction."""
        with self._room.writing(), self._keeping_keys():
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Have all that is asked inside answered as of one moment. Raises: Anew."""
        with super().reading():
            if self._word() != self._made:
                raise Anew
            yield

    def stale(self, looks: Callable[[], dict[str, str]]) -> Stale:
        """Return which conversations look otherwise than when they were taken, as the database finds."""
        return Stale(*self._room.stale(f"{self._prefix}conversations"))


def doubt(room: Room) -> None:
    """Have all conversations of a tenant read anew; what is kept of them stands until then."""
    with room.writing():
        room.driver.execute(f"UPDATE {room.prefix}conversations SET look = '', mark = ''")


def discard(room: Room) -> None:
    """Drop all tables of an index that is in the file of the logs."""
    asked = (
        "SELECT type, name FROM sqlite_master WHERE substr(name, 1, ?) = ? AND type IN ('view', 'table') "
        "ORDER BY type DESC, sql LIKE 'CREATE VIRTUAL%' DESC"
    )
    with room.writing():
        connection, prefix = room.driver, room.prefix
        while found := connection.execute(asked, (len(prefix), prefix)).fetchone():
            connection.execute(f"DROP {found[0]} {found[1]}")


def pieces(connection: sqlite3.Connection, match: str, few: dict[int, Said]) -> dict[int, str]:
    """Return a part of each of a few texts around what fits, by their keys."""
    connection.execute(f"CREATE VIRTUAL TABLE temp.few USING fts5({_INDEXED})")
    try:
        connection.executemany(
            "INSERT INTO temp.few(rowid, asked, answered, about) VALUES(?, ?, ?, ?)",
            ((key, *said) for key, said in few.items()),
        )
        asked = f"SELECT rowid, {_SNIPPET} FROM temp.few WHERE few MATCH ?"
        return dict(connection.execute(asked, (match,)))
    finally:
        connection.execute("DROP TABLE temp.few")


def _listing(wanted: Wanted) -> tuple[list[str], list[Any]]:
    """Return the conditions of a listing and what they are given."""
    where, values = ["position > 0", "turns >= ?"], list[Any]([wanted.min_turns])
    if wanted.title:
        where.append("instr(title, ?)")
        values.append(_folded(wanted.title))
    for label in wanted.labels:
        where.append(_LABELLED)
        values.append(storable(label))
    if wanted.states:
        where.append(
            "(id IN (SELECT value FROM json_each(?)) OR EXISTS (SELECT 1 FROM "
            "json_each(data, '$.states') s WHERE s.key IN (SELECT value FROM json_each(?))))"
        )
        values += [_listed(wanted.ids), _listed(wanted.states)]
    if wanted.models:
        where.append(
            f"key IN (SELECT key >> {_BITS} FROM @turns WHERE model IN (SELECT value FROM json_each(?)))"
        )
        values.append(_listed(wanted.models))
    if wanted.since is not None:
        where.append("last >= ?")
        values.append(wanted.since)
    if wanted.until is not None:
        where.append("last != '' AND last <= ?")
        values.append(wanted.until)
    if (after := wanted.after) is not None:
        where.append("id > ?" if wanted.order == "id" else "(last < ? OR (last = ? AND id > ?))")
        values += [after.id] if wanted.order == "id" else [after.last or ""] * 2 + [after.id]
    return where, values


def _columns(turn: TurnRow) -> tuple[Any, ...]:
    """Return the columns of a turn's row, without its key."""
    tokens = msgspec.json.encode(turn.tokens).decode()
    started = None if turn.undated else turn.started
    named = storable(turn.turn), storable(turn.model), started, tokens
    return *named, int(turn.state is None), encoded(turn)


def _range(key: int) -> tuple[int, int]:
    """Return the first and the last key of what belongs to a conversation."""
    return key << _BITS, ((key + 1) << _BITS) - 1


def _folded(title: str | None) -> str:
    return storable((title or "").casefold()) or ""


def _listed(names: Iterable[str]) -> str:
    return msgspec.json.encode([storable(name) for name in names]).decode()
