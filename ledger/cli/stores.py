"""The store that a command line names: a folder, or the URL of a database."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ledger.cli.ending import StoreMissing
from ledger.sources.copying import place_of
from ledger.stores.folder import FolderStore
from ledger.stores.resolve import default_place, is_url, store_for


def named_path(named: str) -> Path:
    """Return the path that an argument names. Raises: typer.BadParameter: it is empty, as of a variable not set."""
    if not named:
        raise typer.BadParameter("an empty path names nothing; . is the present folder")
    return Path(named)


Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        parser=named_path,
        help="A new file; default: standard output.",
    ),
]


def named_store(named: str) -> Path | str:
    """Return the store that a text names: a folder, or the URL of a database. Raises: typer.BadParameter: none."""
    return named if is_url(named) else named_path(named).expanduser()


def default_store() -> Path | str:
    """Return the store of who names none."""
    return named_store(default_place())


def new_store_of(context: typer.Context) -> Any:
    """Return the store that is meant, a folder's or a database's: what is written makes it, if need be."""
    return opened_store(context.obj)


def store_of(context: typer.Context) -> Any:
    """Return the store that is meant, which has to be there. Raises: StoreMissing."""
    return store_at(context.obj)


def own_store_of(context: typer.Context) -> Any:
    """Return the store that is meant; that of who names none need not be there: nothing was written yet.

    Raises: StoreMissing: one that was named is not there.
    """
    named = context.find_root().params.get("store") or os.environ.get("TURN_LEDGER_STORE")
    return store_of(context) if named else new_store_of(context)


def store_at(named: Path | str) -> Any:
    """Return the store of a folder or a URL, which has to be there.

    Raises: StoreMissing: nothing was ever written there. typer.BadParameter: it names none.
    """
    store = opened_store(named)
    if not store.exists():
        raise StoreMissing(
            f"there is no store in {_told(named, store)}: is the name right (--store, TURN_LEDGER_STORE), "
            "the disk mounted? A new one is made by what is first written to it"
        )
    return store


def store_told(context: typer.Context) -> str:
    """Return the store as people named it; of a database's URL nothing that is secret."""
    return _told(context.obj, new_store_of(context))


def _told(named: Path | str, store: Any) -> str:
    return place_of(store) if is_url(named) else str(named)


def opened_store(named: Path | str) -> Any:
    """Return the store of a folder or a URL. Raises: typer.BadParameter: it names none."""
    if not is_url(named):
        return FolderStore(named)
    try:
        return store_for(named)
    except (ValueError, ModuleNotFoundError) as error:
        raise typer.BadParameter(str(error)) from None
