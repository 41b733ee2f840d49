"""The store that a command line names: a folder, or the URL of a database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

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


def store_of(context: typer.Context) -> Any:
    """Return the store that the command line names, a folder's or a database's."""
    return opened_store(context.obj)


def store_told(context: typer.Context) -> str:
    """Return the store as people named it; of a database's URL nothing that is secret."""
    named: Path | str = context.obj
    return place_of(opened_store(named)) if is_url(named) else str(named)


def opened_store(named: Path | str) -> Any:
    """Return the store of a folder or a URL. Raises: typer.BadParameter: it names none."""
    if not is_url(named):
        return FolderStore(named)
    try:
        return store_for(named)
    except (ValueError, ModuleNotFoundError) as error:
        raise typer.BadParameter(str(error)) from None
