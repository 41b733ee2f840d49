"""Our stores pass the suite that is shipped for everybody's."""

from __future__ import annotations

from tests.testing.suites import FolderSuite, MemorySuite


class TestFolderStore(FolderSuite):
    """A folder lacks nothing."""


class TestMemoryStore(MemorySuite):
    """Memory is one process's, and gone with it."""
