"""Zips that people were mailed: which files in them to read, and which zips to refuse whole.

A zip is read in place: nothing is unpacked to disk. One that could be an attack (paths that lead
outside, links, sizes that explode) or is encrypted is refused before any of it is read.
"""

from __future__ import annotations

import re
import stat
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

from ledger.errors import ImportInvalid

START = (b"PK\x03\x04", b"PK\x05\x06")
ENTRY_LIMIT_BYTES = 16 << 30
"""No file of a zip may be larger than this."""
RATIO_LIMIT = 200
"""How many times its size a file may unpack to; text reaches ten, a bomb a thousand."""
RATIO_FREE_BYTES = 16 << 20
"""Files that unpack to no more than this may have any ratio."""
COUNT_LIMIT = 200_000
_ENCRYPTED = 0x1

Choose = Callable[[Iterable[str]], list[str]]


def entries(path: Path, choose: Choose) -> tuple[list[str], list[str]]:
    """Return the names of the files to read, of those that a zip lists, and all that may be read.

    Args: choose: says which of all names are wanted.
    Raises: import-invalid: the zip is refused; zipfile.BadZipFile, OSError: it cannot be read.
    """
    with zipfile.ZipFile(path) as archive:
        listed = archive.infolist()
    if len(listed) > COUNT_LIMIT:
        raise _refusal(path, f"it lists {len(listed):,} files")
    for info in listed:
        if reason := _danger(info):
            raise _refusal(path, f"{info.filename!r} {reason}")
    by_name = {info.filename: info for info in listed if not info.is_dir()}
    wanted = choose(by_name)
    for name in wanted:
        if reason := _explodes(by_name[name]):
            raise _refusal(path, f"{name!r} {reason}")
    return wanted, [name for name, info in by_name.items() if not _explodes(info)]


def opener(path: Path, name: str) -> Callable[[], IO[bytes]]:
    """Return what opens one file of a zip."""

    def opened() -> IO[bytes]:
        with zipfile.ZipFile(path) as archive:  # what is opened in it outlives it
            return archive.open(name)

    return opened


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
