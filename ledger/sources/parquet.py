"""Rows as Parquet, with pyarrow (`turn-ledger[parquet]`), which is imported when it is first needed.

A column is text, a number or a list of text where rows of `ledger.rated` have that; any other holds each value
as JSON text, exactly: inputs and outputs have another shape in each program, and Parquet has one for a column.
The names of those columns are in the schema's metadata, under `json`.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from ledger.sources.new_file import new_file
from ledger.views.rated import KEYS, Row

ROWS_AT_ONCE = 1000
_TEXT = ("conversation", "group", "turn", "parent", "state", "model", "program", "version")
_PLAIN = {*_TEXT, "rating", "labels"}
"""The columns that are not JSON text."""


def write_parquet(rows: Iterable[Row], path: str | os.PathLike[str]) -> int:
    """Write rows as a new Parquet file; it is there whole or not at all. Returns: how many.

    The columns are the keys of the first row, in its order; without a row, those of `ledger.rated`.
    `rating` is a float, `labels` a list of text, what names something (`conversation`, `turn`, `model`, ...)
    text; any other column is JSON text, which keeps every value exactly. A thousand rows are held at once.
    Raises: ValueError: a row has other keys than the first, or another type under one of those names.
    FileExistsError: there is something under the path. OSError. ModuleNotFoundError: pyarrow is not installed.
    """
    arrow, parquet = _imported("pyarrow"), _imported("pyarrow.parquet")
    given = iter(rows)
    first = next(given, None)
    schema = _schema(arrow, list(KEYS if first is None else first))
    count = 0
    with (
        new_file(path) as file,
        parquet.ParquetWriter(file, schema, compression="zstd") as writer,
    ):
        for batch in _batches(itertools.chain([] if first is None else [first], given)):
            writer.write_table(_table(arrow, schema, batch))
            count += len(batch)
    return count


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        reason = "Parquet is written with pyarrow: install turn-ledger[parquet]"
        raise ModuleNotFoundError(reason, name=error.name) from error


def _schema(arrow: Any, names: Sequence[str]) -> Any:
    types = {"rating": arrow.float64(), "labels": arrow.list_(arrow.string())}
    fields = [arrow.field(name, types.get(name, arrow.string())) for name in names]
    in_json = [name for name in names if name not in _PLAIN]
    return arrow.schema(fields, metadata={"json": json.dumps(in_json)})


def _table(arrow: Any, schema: Any, rows: list[Row]) -> Any:
    for row in rows:
        if other := sorted(row.keys() ^ set(schema.names)):
            raise ValueError(f"a row has other keys than the first one: {', '.join(other)}")
    columns = {name: [_value(row[name], name) for row in rows] for name in schema.names}
    try:
        return arrow.table(columns, schema=schema)
    except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
        raise ValueError(f"a row has a value that its column does not hold: {error}") from error


def _value(value: Any, name: str) -> Any:
    return value if name in _PLAIN else msgspec.json.encode(value).decode()


def _batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while batch := list(itertools.islice(rows, ROWS_AT_ONCE)):
        yield batch
