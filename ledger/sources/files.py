"""Opens what people have: a file, a zip as it was mailed, or a folder, and finds the format in it.

A format is found by looking at the first values of a file, never by its name alone; names only say
where to look. Files are read in pieces and zips are read in place: nothing is unpacked to disk, and
memory holds one conversation. A zip that could be an attack (paths that lead outside, links, sizes
that explode) or is encrypted is refused whole, before any of it is read.
"""

from __future__ import annotations

import json
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from ledger.errors import ImportInvalid
from ledger.formats import chatgpt, export_json
from ledger.formats.base import Broken, Element, Format, Found, Skipped
from ledger.formats.elements import split
from ledger.sources.media import UNREADABLE, Media

FORMATS: tuple[Format, ...] = (chatgpt, export_json)

PIECE_BYTES = 1 << 20
ENTRY_LIMIT_BYTES = 16 << 30
"""No file of a zip may be larger than this."""
RATIO_LIMIT = 200
"""How many times its size a file may unpack to; text reaches ten, a bomb a thousand."""
RATIO_FREE_BYTES = 16 << 20
"""Files that unpack to no more than this may have any ratio."""
COUNT_LIMIT = 200_000

_KNOWN_NAME = re.compile(r"conversations([-_ .]?\d+)?\.json", re.IGNORECASE)
_OTHER_NAME = re.compile(r".*\.(json|zip)", re.IGNORECASE)
_ZIP_START = (b"PK\x03\x04", b"PK\x05\x06")
_ENCRYPTED = 0x1
_NEXT = (
    "give the zip of a data export, its folder, its conversations.json, or a file written by "
    "`turn-ledger export`"
)


class Source(NamedTuple):
    """One file that was looked at."""

    name: str
    """Its path; for a file in a zip `<zip>: <path in it>`."""
    format: Format | None
    """None: it was found where conversations were expected and holds none that is known."""
    items: Iterator[Found]
    """What it holds, read as it is asked for."""
    media: Media = Media()
    """The files beside it in its zip or folder."""


@dataclass(slots=True)
class _File:
    name: str
    open: Callable[[], IO[bytes]]
    media: Media


def find(path: str | os.PathLike[str]) -> Iterator[Source]:
    """Yield the files at a path that hold conversations, each with its format and what it holds.

    In a folder (to any depth) and in a zip, files named like ChatGPT's are looked at; when there is
    none, every `.json` and `.zip`. The same conversation may come more than once.

    Raises: import-invalid: nothing that is known was found; the reason says what was looked at and
    the next step. A file that does not read, beside others that do, is a source with a `Skipped`.
    """
    known = False
    unknown: list[Skipped] = []
    for file in _files(Path(path), unknown):
        format, reason = _format(file)
        if format is None:
            unknown.append(Skipped(file.name, reason))
        else:
            known = True
            yield Source(file.name, format, _items(file, format), file.media)
    if not known:
        raise ImportInvalid(source=os.fspath(path), reason=_nothing(unknown))
    for skipped in unknown:
        yield Source(skipped.what, None, iter([skipped]))


def _nothing(unknown: list[Skipped]) -> str:
    if not unknown:
        return f"nothing to import: it has no .json or .zip file; {_NEXT}"
    shown = [f"{skipped.what} ({skipped.reason})" for skipped in unknown[:5]]
    more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
    return f"nothing to import: looked at {', '.join(shown)}{more}; {_NEXT}"


# -- what a file is --------------------------------------------------------------------------------


def _format(file: _File) -> tuple[Format | None, str]:
    """Return the format of the first value that has one; else why there is none."""
    seen = 0
    for element in _elements(file):
        if isinstance(element, Broken):
            return None, f"{element.reason}, at byte {element.at}"
        seen += 1
        try:
            value = json.loads(element.raw.decode(errors="replace"))
        except (ValueError, RecursionError):
            continue
        for format in FORMATS:
            if format.looks_like(value):
                return format, ""
    return None, "no conversation of a known format in it" if seen else "an empty list"


def _items(file: _File, format: Format) -> Iterator[Found]:
    for item in format.drafts(_elements(file)):
        yield (
            Skipped(f"{file.name}: {item.what}", item.reason) if isinstance(item, Skipped) else item
        )


def _elements(file: _File) -> Iterator[Element | Broken]:
    """Yield the values of a file; where the system or the zip refuses to read on, it is broken."""
    read = 0

    def pieces() -> Iterator[bytes]:
        nonlocal read
        with file.open() as opened:
            while piece := opened.read(PIECE_BYTES):
                read += len(piece)
                yield piece

    try:
        yield from split(pieces())
    except UNREADABLE as error:
        yield Broken(read, f"it cannot be read on: {_said(error)}")


def _said(error: BaseException) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or "damaged"


# -- where files are -------------------------------------------------------------------------------


def _files(path: Path, unknown: list[Skipped]) -> Iterator[_File]:
    """Yield the files to look at; what is refused is told in `unknown`."""
    if not path.is_dir():
        yield from _opened(path, unknown, Media())
        return
    names = list(_below(path, unknown))
    media = Media(names, lambda name: (path / name).open("rb"))
    for inner in _wanted(sorted(names, key=_in_order)):
        yield from _opened(path / inner, unknown, media)


def _below(folder: Path, unknown: list[Skipped]) -> Iterator[str]:
    def refused(error: OSError) -> None:
        unknown.append(Skipped(str(error.filename), _said(error)))

    for at, _, names in os.walk(folder, onerror=refused):
        for name in names:
            path = Path(at, name)
            if path.is_file():
                yield str(path.relative_to(folder))


def _opened(path: Path, unknown: list[Skipped], media: Media) -> Iterator[_File]:
    """Yield the file, or when it is a zip those in it. Args: media: the files beside it."""
    try:
        if path.exists() and not path.is_file():
            raise ImportInvalid(source=str(path), reason="it is neither a file nor a folder")
        with path.open("rb") as opened:
            is_zip = opened.read(4) in _ZIP_START
        names, inside = _entries(path) if is_zip else ([], [])
    except ImportInvalid as error:
        unknown.append(Skipped(str(path), error.reason))
    except UNREADABLE as error:
        unknown.append(Skipped(str(path), _said(error)))
    else:
        if not is_zip:
            yield _File(str(path), lambda: path.open("rb"), media)
        own = Media(inside, lambda name: _entry_opener(path, name)())
        for name in names:
            yield _File(f"{path}: {name}", _entry_opener(path, name), own)


def _entry_opener(path: Path, name: str) -> Callable[[], IO[bytes]]:
    def opener() -> IO[bytes]:
        with zipfile.ZipFile(path) as archive:  # what is opened in it outlives it
            return archive.open(name)

    return opener


def _wanted(names: Iterable[str]) -> list[str]:
    """Return the names to look at: those that are known, else all that may hold conversations."""
    listed = [name for name in names if not _is_shadow(name)]
    known = [name for name in listed if _KNOWN_NAME.fullmatch(_base(name))]
    return known or [name for name in listed if _OTHER_NAME.fullmatch(_base(name))]


def _in_order(name: str) -> list[tuple[int, str]]:
    """Return what sorts `-2` before `-10`."""
    pieces = re.split(r"([0-9]+)", name)
    digits = [piece.lstrip("0") for piece in pieces]
    return [(len(digits[i]), digits[i]) if i % 2 else (-1, piece) for i, piece in enumerate(pieces)]


def _base(name: str) -> str:
    return re.split(r"[/\\]", name)[-1]


def _is_shadow(name: str) -> bool:
    """Say whether a file only holds what macOS keeps beside another."""
    return _base(name).startswith("._") or name.startswith("__MACOSX")


# -- zips ------------------------------------------------------------------------------------------


def _entries(path: Path) -> tuple[list[str], list[str]]:
    """Return the entries of a zip to look at, and all that may be read, or refuse it whole."""
    with zipfile.ZipFile(path) as archive:
        listed = archive.infolist()
    if len(listed) > COUNT_LIMIT:
        raise _refusal(path, f"it lists {len(listed):,} files")
    for info in listed:
        if reason := _danger(info):
            raise _refusal(path, f"{info.filename!r} {reason}")
    by_name = {info.filename: info for info in listed if not info.is_dir()}
    wanted = _wanted(sorted(by_name, key=_in_order))
    for name in wanted:
        if reason := _explodes(by_name[name]):
            raise _refusal(path, f"{name!r} {reason}")
    return wanted, [name for name, info in by_name.items() if not _explodes(info)]


def _refusal(path: Path, reason: str) -> ImportInvalid:
    return ImportInvalid(source=str(path), reason=f"the zip is refused: {reason}")


def _danger(info: zipfile.ZipInfo) -> str | None:
    steps = re.split(r"[/\\]", info.filename)
    if ".." in steps:
        return "leads outside the zip"
    if steps[0] == "" or re.match(r"[A-Za-z]:", steps[0]):
        return "is an absolute path"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "is a link"
    if info.flag_bits & _ENCRYPTED:
        return "is encrypted; unpack it with its password and give the folder"
    return None


def _explodes(info: zipfile.ZipInfo) -> str | None:
    ratio_counts = info.file_size > RATIO_FREE_BYTES
    if info.file_size > ENTRY_LIMIT_BYTES or (
        ratio_counts and info.file_size > RATIO_LIMIT * max(1, info.compress_size)
    ):
        return (
            f"would unpack from {info.compress_size:,} to {info.file_size:,} bytes; if that is no "
            "attack, unpack it and give the folder"
        )
    return None
