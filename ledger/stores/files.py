"""Files: opened safely, closed by themselves, flushed for good, and the system's errors by name.

Whoever holds a number of an open file loses it with the frame that an exception tears down, and with
it the lock on that file. So a `Descriptor` owns it from the call that made it to the call that closes
it: opening puts the number into the object, and closing takes it out, inside one call into C, where
no KeyboardInterrupt can come between. An object that nobody refers to closes itself. In the child of
a fork every descriptor is closed: the thread that used it is not there.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self
from weakref import ref

from ledger.errors import (
    LedgerError,
    StoreDenied,
    StoreFailure,
    StoreFull,
    StoreIO,
    StoreLink,
    StoreReadOnly,
)
from ledger.stores import forks

SAFE = (
    getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
)
"""Flags of every open: not inherited, no link followed, no waiting for the other end of a fifo."""

_BY_NUMBER: dict[int, type[StoreFailure]] = {
    errno.EROFS: StoreReadOnly,
    errno.EACCES: StoreDenied,
    errno.EPERM: StoreDenied,
    errno.ELOOP: StoreLink,
    errno.EMLINK: StoreLink,
    errno.ENXIO: StoreLink,
    errno.EISDIR: StoreLink,
    errno.ENOTDIR: StoreLink,
    errno.ENOSPC: StoreFull,
    errno.EDQUOT: StoreFull,
    errno.EFBIG: StoreFull,
}


def named(error: OSError, where: str) -> LedgerError:
    """Return the error that a caller can act on, for one of the system's."""
    number = error.errno or 0
    return _BY_NUMBER.get(number, StoreIO)(where=where, reason=os.strerror(number))


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Turn the system's errors inside into ours."""
    try:
        yield
    except OSError as error:
        raise named(error, where) from error


# -- open files ------------------------------------------------------------------------------------


class _Open:
    """The open files of this process, so that the child of a fork closes them.

    No lock guards the list: one that an exception leaves behind would stop every other thread. So a
    file is listed before it is opened, and a child looks for what was being opened as it was forked.
    """

    def __init__(self) -> None:
        self._listed: dict[int, ref[Descriptor]] = {}
        self._joined = False

    def add(self, descriptor: Descriptor) -> None:
        if not self._joined:
            self._joined = True
            forks.join(self)
        self._listed[id(descriptor)] = ref(descriptor)

    def remove(self, descriptor: Descriptor) -> None:
        self._listed.pop(id(descriptor), None)

    def before_fork(self) -> None:
        """Nothing to take."""

    def after_fork(self, *, child: bool) -> None:
        if not child:
            return
        half_open = []
        for descriptor in [found() for found in self._listed.values()]:
            if descriptor is not None and not descriptor.drop():
                half_open.append(descriptor.path)
        for path in half_open:
            _close_all_of(path)


def _close_all_of(path: str) -> None:
    """Close every open file that is the one at a path."""
    try:
        numbers = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        return
    for number in numbers:
        with suppress(OSError):
            if same_file(os.fstat(number), path):
                os.close(number)


_open = _Open()


class Descriptor:
    """An open plain file with one name; closes itself when nobody refers to it.

    Raises (at opening): FileNotFoundError and FileExistsError as they are, since what they mean is
    the caller's to say; any other failure by its name: store-link for a link, a fifo, a folder, or a
    file with two names; store-denied for a file of another user.
    """

    def __init__(self, path: str, flags: int, mode: int = 0o600) -> None:
        self.path = path
        self._number: list[int] = []
        _open.add(self)
        try:
            self._number.extend(map(os.open, (path,), (flags | SAFE,), (mode,)))
        except (FileNotFoundError, FileExistsError):
            _open.remove(self)
            raise
        except OSError as error:
            _open.remove(self)
            raise named(error, path) from error
        self.found = self.stat()
        """What the system said of the file when it was opened."""

    @property
    def number(self) -> int:
        """The system's number of the open file."""
        return self._number[0]

    def stat(self) -> os.stat_result:
        """Return what the system says of the open file, having checked that it is a plain one."""
        found = os.fstat(self._number[0])
        if not stat.S_ISREG(found.st_mode):
            raise StoreLink(where=self.path, reason="it is not a plain file")
        if found.st_nlink > 1:
            raise StoreLink(where=self.path, reason="the file has more than one name")
        if found.st_uid and _is_anothers(found, os.geteuid()):
            raise StoreDenied(where=self.path, reason="it belongs to another user")
        return found

    def at_its_path(self) -> os.stat_result | None:
        """Return what the system says of the file at the path, if it still is this one."""
        return found_there(self.found, self.path)

    def close(self) -> None:
        """Close the file; again is no error."""
        _open.remove(self)
        try:
            if self._number:
                next(map(os.close, map(list.pop, (self._number,))))
        except OSError:
            pass  # What was flushed is flushed; the number is free in any case.

    def drop(self) -> bool:
        """Close the file in the child of a fork, leaving alone what the parent has with it.

        Returns: whether it was open.
        """
        was_open = bool(self._number)
        Descriptor.close(self)
        return was_open

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_number", None):  # None: interrupted before there was one.
            self.close()
        else:
            _open.remove(self)


def is_plain(found: os.stat_result) -> bool:
    """Say whether it is a plain file with one name."""
    return stat.S_ISREG(found.st_mode) and found.st_nlink <= 1


def wide_mode(path: str) -> int:
    """Return the mode of a file that others may read, write or run; 0 when they may not, or it is gone."""
    try:
        mode = stat.S_IMODE(os.stat(path, follow_symlinks=False).st_mode)
    except OSError:
        return 0
    return mode if mode & 0o077 else 0


def found_at(path: str) -> os.stat_result | None:
    """Return what the system says of what is at a path, following no link; None: nothing is.

    What may not be looked at may be there. Raises: store-denied and the like.
    """
    try:
        return os.stat(path, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise named(error, path) from error


def same_file(found: os.stat_result, path: str) -> bool:
    """Say whether a path leads to the file that was found, without following a link."""
    return found_there(found, path) is not None


def found_there(found: os.stat_result, path: str) -> os.stat_result | None:
    """Return what the system says of the file that was found, if a path leads to it without following a link."""
    try:
        there = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return there if (there.st_dev, there.st_ino) == (found.st_dev, found.st_ino) else None


# -- folders ---------------------------------------------------------------------------------------


class _Folder:
    """An open folder; closes itself when nobody refers to it, wherever an interrupt comes."""

    def __init__(self, path: str) -> None:
        flags = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
        self.number: list[int] = []
        self.number.extend(map(os.open, (path,), (flags,)))

    def __del__(self) -> None:
        for number in getattr(self, "number", ()):  # Interrupted early, there is none.
            os.close(number)


def flush_folder(path: str) -> None:
    """Make the names in a folder durable."""
    try:
        folder = _Folder(path)
        flush(folder.number[0])
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # This system flushes no folders.
            raise


def distrust(found: os.stat_result, user: int) -> str | None:
    """Say why a folder cannot be trusted with conversations, or None when it can.

    It must be a folder of this user (or of root, or be used by root), into which not everybody may
    write, unless they may touch only what is their own, as in /tmp.
    """
    if stat.S_ISLNK(found.st_mode):
        return "it is a link"
    if not stat.S_ISDIR(found.st_mode):
        return "it is not a folder"
    if _is_anothers(found, user):
        return "it belongs to another user"
    if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
        return "everybody may write to it"
    return None


def check_trusted(path: str, *, by_link: bool = False) -> None:
    """Refuse a folder that is there and cannot be trusted.

    Args: by_link: whether it may be reached through a link, as a path that the user chose may.
    Raises: store-link: it is a link, or no folder. store-denied: others may change what is in it.
    """
    try:
        found = os.stat(path, follow_symlinks=by_link)
    except FileNotFoundError:
        return
    except OSError as error:
        raise named(error, path) from error
    reason = distrust(found, os.geteuid())
    if reason is not None:
        kind = StoreDenied if stat.S_ISDIR(found.st_mode) else StoreLink
        raise kind(where=path, reason=reason)


def _is_anothers(found: os.stat_result, user: int) -> bool:
    """Say whether a file or folder is of a user who is neither this one nor root; root asks nobody."""
    return user not in (0, found.st_uid) and found.st_uid != 0


def flush(number: int) -> None:
    """Return when what was written to an open file is on its disk, as far as the system knows."""
    if sys.platform == "darwin":
        import fcntl

        try:
            fcntl.fcntl(number, fcntl.F_FULLFSYNC)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.ENOTTY, errno.EINVAL):
                raise
    os.fsync(number)


class Files:
    """The calls on open files whose failure a store must survive. Tests pass one that fails."""

    def read(self, number: int, length: int, offset: int) -> bytes:
        """Read up to `length` bytes from an offset."""
        return os.pread(number, length, offset)

    def write(self, number: int, data: memoryview, offset: int) -> int:
        """Write at an offset; returns how many bytes were taken."""
        return os.pwrite(number, data, offset)

    def cut(self, number: int, size: int) -> None:
        """Cut a file to a size."""
        os.ftruncate(number, size)

    def flush(self, number: int) -> None:
        """Make a file's content durable."""
        flush(number)

    def flush_folder(self, path: str) -> None:
        """Make the names in a folder durable."""
        flush_folder(path)

    def replace(self, path: str, name: str) -> None:
        """Give a file a name, in place of the file that has it."""
        os.replace(path, name)

    def remove(self, path: str) -> None:
        """Take a file's name away; a link is not followed."""
        os.unlink(path)

    def make_folder(self, path: str) -> None:
        """Make a folder, and those above it, for its owner only; each name is made durable.

        A folder that is there is left as it is.
        """
        above = os.path.dirname(path)
        if above != path and not os.path.isdir(above):
            self.make_folder(above)
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            if not os.path.isdir(path):
                raise StoreLink(where=path, reason="it is not a folder") from None
        self.flush_folder(above)


def write_at(file: Descriptor, calls: Files, data: bytes, offset: int) -> None:
    """Write all of some bytes at an offset, however many calls it takes. Raises OSError."""
    view = memoryview(data)
    while view:
        written = calls.write(file.number, view, offset)
        if written <= 0:
            raise StoreIO(where=file.path, reason="the system writes nothing and says no error")
        view = view[written:]
        offset += written


def put(stem: str, path: str, data: bytes, calls: Files) -> None:
    """Put bytes under a name, durable, all or nothing; they replace what stands there.

    Args: stem: the path of the conversation's files, without their endings.
    """
    new = f"{stem}.new-{secrets.token_hex(8)}"
    try:
        with naming(path):
            with Descriptor(new, os.O_RDWR | os.O_CREAT | os.O_EXCL) as file:
                write_at(file, calls, data, 0)
                calls.flush(file.number)
            calls.replace(new, path)
            calls.flush_folder(os.path.dirname(path))
    except BaseException:
        with suppress(OSError):
            calls.remove(new)
        raise
