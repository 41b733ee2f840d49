"""The folder of a folder store: whether it is there, can be trusted, is the same, tells case apart.

It is made when it is first needed for writing, for its owner only. A store that has seen it does not
accept another in its place: appending to a new empty folder would be losing the old one silently.
"""

from __future__ import annotations

import os
from contextlib import suppress

from ledger.errors import ConversationIdInvalid, StoreDenied, StoreIO
from ledger.stores import files, names
from ledger.stores.flushing import Flushes
from ledger.stores.reading import Log


class Home:
    """`<folder>` and `<folder>/conversations`."""

    def __init__(self, folder: str, calls: files.Files) -> None:
        self.folder = folder
        self.conversations = os.path.join(folder, "conversations")
        self.trees = os.path.join(folder, "trees")
        """The events of turns."""
        self.sweeping = os.path.join(folder, "attachments.lock")
        """The lock of who removes attachments."""
        self.calls = calls
        self.flushes = Flushes()
        self._identity: tuple[int, int] | None = None
        self._above_is_durable = False
        self._blind_to_case: bool | None = None
        self._durable_names: dict[str, tuple[int, int]] = {}

    def log(self, conversation: str) -> Log:
        """Return where a conversation's files are, whether or not they are there."""
        return Log(conversation, f"{self.conversations}/{conversation}", self.calls, self.flushes)

    def is_there(self) -> bool:
        """Say whether the folder exists.

        Raises: store-io: it is not the one that was there before. store-link, store-denied: it
        cannot be trusted.
        """
        known = self._identity  # Before looking: another thread may make the folder meanwhile.
        try:
            found = os.stat(self.conversations, follow_symlinks=False)
        except FileNotFoundError:
            if known is not None:
                raise self.removed() from None
            return False
        except NotADirectoryError as error:
            raise StoreIO(
                where=self._not_a_folder(), reason="it is a file, not a folder"
            ) from error
        except OSError as error:
            raise files.named(error, self.conversations) from error
        identity = (found.st_dev, found.st_ino)
        if identity != known:
            if known is not None:
                raise self.removed()
            self._trust()
            self._identity = identity
        return True

    def is_same(self) -> bool:
        """Say whether the folder was not removed or replaced since it was seen."""
        with suppress(StoreIO):
            self.is_there()
            return True
        return False

    def _not_a_folder(self) -> str:
        """Return the first part of the path that is there but is no folder."""
        path = self.conversations
        while not os.path.lexists(path):
            path = os.path.dirname(path)
        return path

    def _trust(self) -> None:
        files.check_trusted(self.conversations)
        files.check_trusted(self.folder, by_link=True)

    def removed(self) -> StoreIO:
        """Return the error to raise when the folder is gone."""
        return StoreIO(
            where=self.conversations,
            reason="the folder was removed or replaced while this store was open",
        )

    def entries(self) -> list[tuple[str, str | None, bool]]:
        """Return all names, each with the conversation whose log has it, and whether it is a plain file."""
        if not self.is_there():
            return []
        place = self.conversations
        found = []
        with files.naming(place), os.scandir(place) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    plain = files.is_plain(entry.stat(follow_symlinks=False))
                    found.append((entry.name, names.conversation_of(entry.name), plain))
        return found

    def foreign(self) -> list[str]:
        """Return the names that no conversation uses, sorted."""
        return sorted(
            name
            for name, conversation, plain in self.entries()
            if not (plain and (conversation is not None or names.may_be_ours(name)))
        )

    def beside(self, conversation: str) -> tuple[list[str], list[str]]:
        """Return the names of the bytes set aside from a log, and its files that others may use.

        The latter each with their mode: `c.lock 0644`.
        """
        with files.naming(self.conversations):
            listed = sorted(os.listdir(self.conversations))
        set_aside = [name for name in listed if names.is_torn(name, conversation)]
        wide = []
        for name in [conversation + names.LOG, conversation + names.LOCK, *set_aside]:
            mode = files.wide_mode(os.path.join(self.conversations, name))
            wide += [f"{name} {mode:04o}"] if mode else []
        return set_aside, wide

    def make(self) -> None:
        """Make the folder if it is not there, durably. Raises: store-read-only, store-denied."""
        if not self.is_there():
            with files.naming(self.folder):
                self.calls.make_folder(self.conversations)
            self.is_there()
        if not self._above_is_durable:
            # Another process may have made them, and died before it flushed their names.
            real = os.path.realpath(self.folder)
            for path in (real, os.path.dirname(real)):
                with suppress(StoreDenied), files.naming(path):
                    self.calls.flush_folder(path)
            self._above_is_durable = True

    def make_name_durable(self, log: Log, file: files.Descriptor) -> None:
        """Flush the folder once per file, also when another made it: it may have died before."""
        identity = (file.found.st_dev, file.found.st_ino)
        if self._durable_names.get(log.conversation) != identity:
            with files.naming(self.conversations):
                self.calls.flush_folder(self.conversations)
            self._durable_names[log.conversation] = identity

    def forget(self, conversation: str | None = None) -> None:
        """Forget which names are durable: one conversation's, or all."""
        if conversation is None:
            self._durable_names = {}
        else:
            self._durable_names.pop(conversation, None)

    def check_case(self, conversation: str) -> None:
        """Refuse an id whose file is another id's, in a folder that is blind to case."""
        if self._blind_to_case is None:
            self._blind_to_case = self._probe(conversation)
        if not self._blind_to_case:
            return
        with files.naming(self.conversations):
            other = names.taken_by(conversation + names.LOG, os.listdir(self.conversations))
        if other is not None:
            raise ConversationIdInvalid(
                conversation=conversation, reason=f"shares a file with {other!r} here"
            )

    def _probe(self, conversation: str) -> bool | None:
        """Look for one of its files under its name in the other case; None: it has none yet."""
        for name in (conversation + names.LOCK, conversation + names.LOG):
            with suppress(OSError):
                found = os.stat(os.path.join(self.conversations, name), follow_symlinks=False)
                return files.same_file(found, os.path.join(self.conversations, name.swapcase()))
        return None
