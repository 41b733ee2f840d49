"""A new file that is there whole or not at all, and never in the place of another."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
"""What a file system says that gives no file a second name."""


@contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Give a file to write; when the block ends it is on the disk under its name, for its owner only.

    Until then it has another name beside that, beginning with a dot, and if the block raises it is
    removed; if the process dies, it stays under that name.
    Raises: FileExistsError: there is something under the name; nothing was written. OSError.
    """
    target = os.path.abspath(os.fspath(path))
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    folder, name = os.path.split(target)
    descriptor, made = tempfile.mkstemp(prefix=f".{name[:100]}.", suffix=".part", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _put(made, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(made)


def _put(made: str, target: str) -> None:
    """Give a file its name, unless something has it by now."""
    try:
        os.link(made, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
        os.rename(made, target)
