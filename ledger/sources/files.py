"""Opens what people have: a file, a zip as it was mailed, or a folder, and finds the formats in it.

A format is found by looking at the first values of a file, never by its name alone; names only say
where to look. Files are read in pieces, zips in place, databases without writing to them: memory
holds one conversation, with the files that tell of it.
"""

from __future__ import annotations

import itertools
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ledger.errors import ImportInvalid
from ledger.formats import (
    agents_sdk,
    chatbot_ui,
    chatgpt,
    claude_ai,
    claude_code,
    clean,
    codex,
    export_json,
    gemini,
    langchain,
    langgraph,
    librechat,
    llm_logs,
    oasst,
    open_webui,
    openai_jsonl,
    opencode,
    pi,
    pydantic_ai_json,
    sharegpt,
    sillytavern,
)
from ledger.formats.base import Broken, Format, Found, Notes, Skipped, Unreadable
from ledger.sources import own, zips
from ledger.sources.media import UNREADABLE, Media
from ledger.sources.opened import Clock, Opened, said
from ledger.turns.world import SYSTEM, World

FORMATS: tuple[Format, ...] = (
    *(export_json, chatgpt, claude_code, codex, gemini, pi, opencode),
    *(claude_ai, open_webui, librechat, chatbot_ui, sillytavern),
    *(openai_jsonl, sharegpt, oasst, langchain, pydantic_ai_json),
    *(llm_logs, agents_sdk, langgraph),
)
"""The first that says a value looks like one of its own is taken."""

LOOK_AT = 200
"""How many values of a file are looked at to find its format."""
_MAY_HOLD = re.compile(r".*\.(json|jsonl|ndjson|zip|db|sqlite3?|(json|jsonl|ndjson)\.gz)", re.I)
_NEXT = (
    "give the zip of a data export, its folder, its conversations.json, the file or folder of a "
    "program's sessions, or a file written by `turn-ledger export`"
)


class Source(NamedTuple):
    """Files that tell of the same conversations."""

    name: str
    """The path of the first; for a file in a zip `<zip>: <path in it>`."""
    format: Format | None
    """None: it was found where conversations were expected and holds none that is known."""
    items: Iterator[Found]
    """What it holds, read as it is asked for."""
    files: Sequence[Opened] = ()
    """None for a source that has no format."""

    @property
    def media(self) -> Media:
        """The files beside it in its zip or folder."""
        return self.files[0].media if self.files else Media()


def find(path: str | os.PathLike[str], world: World = SYSTEM) -> Iterator[Source]:
    """Yield the files at a path that hold conversations, each with its format and what it holds.

    In a folder (to any depth) and in a zip, every file whose name may be one of a format is looked
    at; but where files lie as a program keeps them, only those. The same conversation may come more
    than once. All files are looked at before the first source is given. A store of ours, and a log of one,
    is no source: in a folder it is left out.

    Args: world: whose clock says which files may still be written to.
    Raises: import-invalid: it is not there, is a store or lies in one, or nothing that is known was
    found; the reason says what was looked at and the next step. A file that does not read, beside others
    that do, is a source with a `Skipped`.
    """
    unknown: list[Skipped] = []
    others: list[Skipped] = []
    by_format: dict[int, list[Opened]] = {}
    for file in _files(_there(path), unknown, world.now):
        place, reason = _format(file)
        if place is None:
            (unknown if file.known_by_name else others).append(Skipped(file.name, reason))
        else:
            by_format.setdefault(place, []).append(file)
    if not by_format:
        raise ImportInvalid(source=os.fspath(path), reason=_nothing(unknown + others))
    if others:
        what = f"{len(others):,} other files, {others[0].what} the first"
        unknown.append(Skipped(what if others[1:] else others[0].what, others[0].reason))
    return _sources(by_format, unknown)


def _sources(by_format: dict[int, list[Opened]], unknown: list[Skipped]) -> Iterator[Source]:
    for place, files in by_format.items():
        format = FORMATS[place]
        for group in format.together(files):
            yield Source(group[0].name, format, _items(format, group), group)
    for skipped in unknown:
        yield Source(skipped.what, None, iter([skipped]))


def _items(format: Format, files: Sequence[Opened]) -> Iterator[Found]:
    try:
        yield from format.drafts(files)
    except Unreadable as error:
        yield Skipped(files[0].name, str(error))
    finally:
        for file in files:
            file.close()


def _nothing(unknown: list[Skipped]) -> str:
    if not unknown:
        return f"nothing to import: it has no file that may hold conversations; {_NEXT}"
    shown = [f"{skipped.what} ({skipped.reason})" for skipped in unknown[:5]]
    more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
    told = f"nothing to import: looked at {', '.join(shown)}{more}"
    says_the_next = all(skipped.reason in (own.STORE, own.LINES) for skipped in unknown)
    return told if says_the_next else f"{told}; {_NEXT}"


# -- what a file is --------------------------------------------------------------------------------


def _format(file: Opened) -> tuple[int | None, str]:
    """Return the place in FORMATS of the format of the first value that has one; else why not."""
    try:
        schema = file.schema()
    except Unreadable as error:
        return None, str(error)
    finally:
        file.close()
    if schema is not None and own.is_database(schema):
        return None, own.STORE
    if schema is not None:
        place = _place(schema)
        return place, "" if place is not None else "a database of no known program"
    seen = 0
    for element in itertools.islice(file.elements(), LOOK_AT):
        if isinstance(element, Broken):
            return None, f"{element.reason}, at byte {element.at}"
        seen += 1
        try:
            value = clean.decoded(element.raw, Notes())
        except (ValueError, RecursionError):
            continue
        if own.is_record(value):
            return None, own.LINES
        if (place := _place(value)) is not None:
            return place, ""
    return None, "no conversation of a known format in it" if seen else "an empty list"


def _place(sample: object) -> int | None:
    return next((n for n, format in enumerate(FORMATS) if format.looks_like(sample)), None)


# -- where files are -------------------------------------------------------------------------------


def _there(path: str | os.PathLike[str]) -> Path:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        reason = "there is no such file or folder"
        raise ImportInvalid(source=os.fspath(path), reason=reason) from error
    except (OSError, ValueError):
        pass  # Told when it is opened.
    if (ours := own.why_none(Path(path))) is not None:
        raise ImportInvalid(source=os.fspath(path), reason=ours)
    return Path(path)


def _files(path: Path, unknown: list[Skipped], now: Clock) -> Iterator[Opened]:
    """Yield the files to look at; what is refused is told in `unknown`."""
    if not os.path.isdir(path):
        yield from _opened(path, path.name, unknown, Media(), now, known_by_name=True)
        return
    listed = list(_below(path, unknown))
    media = Media(listed, lambda name: (path / name).open("rb"))
    for inner in _wanted(listed):
        known = _is_known(inner)
        yield from _opened(path / inner, inner, unknown, media, now, known_by_name=known)


def _below(folder: Path, unknown: list[Skipped]) -> Iterator[str]:
    def refused(error: OSError) -> None:
        unknown.append(Skipped(str(error.filename), said(error)))

    for at, folders, names in os.walk(folder, onerror=refused):
        if own.is_store(at):
            unknown.append(Skipped(at, own.STORE))
            names = own.taken_out(folders, names)
        for name in names:
            path = Path(at, name)
            try:
                is_file = stat.S_ISREG(os.stat(path).st_mode)
            except FileNotFoundError:
                continue  # A link to nothing.
            except OSError as error:
                refused(error)
            else:
                if is_file:
                    yield path.relative_to(folder).as_posix()


def _opened(
    path: Path, inner: str, unknown: list[Skipped], media: Media, now: Clock, *, known_by_name: bool
) -> Iterator[Opened]:
    """Yield the file, or when it is a zip those in it. Args: media: the files beside it."""
    try:
        if path.exists() and not path.is_file():
            raise ImportInvalid(source=str(path), reason="it is neither a file nor a folder")
        with path.open("rb") as opened:
            is_zip = opened.read(4) in zips.START
        names, inside = zips.entries(path, _wanted) if is_zip else ([], [])
    except ImportInvalid as error:
        unknown.append(Skipped(str(path), error.reason))
    except UNREADABLE as error:
        unknown.append(Skipped(str(path), said(error)))
    else:
        if not is_zip:
            yield Opened(
                str(path),
                inner,
                lambda: path.open("rb"),
                path,
                media,
                known_by_name=known_by_name,
                now=now,
            )
        own = Media(inside, lambda name: zips.opener(path, name)())
        for name in names:
            yield Opened(
                f"{path}: {name}",
                name.replace("\\", "/"),
                zips.opener(path, name),
                path,
                own,
                in_zip=True,
                known_by_name=_is_known(name),
                now=now,
            )


def _wanted(names: Iterable[str]) -> list[str]:
    """Return the names to look at, in order: all that may hold conversations.

    But in a folder that has files which are named as a program names them, and below it, only those.
    """
    listed = sorted((name for name in names if not _is_shadow(name)), key=_in_order)
    known = {name for name in listed if _is_known(name)}
    taken = {folder for name in known for folder in [*_folders(name)][:1]}
    return [
        name
        for name in listed
        if name in known or (_MAY_HOLD.fullmatch(name) and taken.isdisjoint(_folders(name)))
    ]


def _is_known(name: str) -> bool:
    return any(format.home and format.home.fullmatch(name) for format in FORMATS)


def _folders(name: str) -> Iterator[str]:
    """Yield the folders that a file is in, the inmost first."""
    steps = re.split(r"[/\\]", name)
    return ("/".join(steps[:count]) for count in range(len(steps) - 1, -1, -1))


def _in_order(name: str) -> list[tuple[int, str]]:
    """Return what sorts `-2` before `-10`."""
    pieces = re.split(r"([0-9]+)", name)
    digits = [piece.lstrip("0") for piece in pieces]
    return [(len(digits[i]), digits[i]) if i % 2 else (-1, piece) for i, piece in enumerate(pieces)]


def _is_shadow(name: str) -> bool:
    """Say whether a file only holds what macOS keeps beside another."""
    base = re.split(r"[/\\]", name)[-1]
    return base.startswith("._") or name.startswith("__MACOSX")
