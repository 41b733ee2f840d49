"""Checks of what a store says of itself: abilities it declares to lack, durability, attachments."""

from __future__ import annotations

import hashlib
import io

from ledger.stores.base import Store
from ledger.testing.bench import Bench, needs, refused
from ledger.testing.examples import CANARY, notes

_METHODS = {
    "scan": ["scan"],
    "wait": ["wait"],
    "delete": ["delete"],
    "conversations": ["conversations"],
    "copying": ["raw", "adopt"],
    "verify": ["verify", "damage"],
    "erase": ["erase"],
    "blobs": ["blobs"],
}
"""What a store has that has an ability."""


class AbilityChecks(Bench):
    """What is declared is so."""

    def test_is_a_store(self) -> None:
        """The store has the two methods of the protocol."""
        assert isinstance(self.fresh(), Store)

    def test_declared_lacks_are_true(self) -> None:
        """What a store is said to lack it has not; what is not named as lacking it has."""
        store = self.fresh()
        hidden = [
            f"{name}: has {method}"
            for name, methods in _METHODS.items()
            for method in methods
            if name in self.lacks and hasattr(store, method)
        ]
        silent = [
            f"{name}: has no {method}"
            for name, methods in _METHODS.items()
            for method in methods
            if not self.is_lacking(name) and not hasattr(store, method)
        ]
        assert hidden == [], "these are said to be lacking, and are there"
        assert silent == [], "these are missing, and `lacks` does not say so"

    def test_durability_is_what_is_declared(self) -> None:
        """`persistent` and `durability`, where a store has them, agree with what it can do."""
        store = self.fresh()
        assert getattr(store, "durability", "disk") in ("memory", "disk")
        if hasattr(store, "persistent"):
            assert store.persistent is not self.is_lacking("reopening")

    def test_incarnations_are_what_is_declared(self) -> None:
        """Positions carry an incarnation unless the store is said to lack incarnations."""
        given = self.fresh().append("c", notes("a"))
        carries = getattr(given, "incarnation", None) is not None
        assert carries is not self.is_lacking("incarnations")

    @needs("reopening")
    def test_reopened_store_is_empty_where_nothing_was(self) -> None:
        """Opening a place, and reading there, makes no conversation."""
        store = self.fresh()
        assert store.read("c") == []
        assert self.again().read("c") == []
        assert self.again().append("c", notes("a"), expect=0) == 1

    # -- attachments

    @needs("blobs")
    def test_attachments_come_back(self) -> None:
        """Bytes are kept under their SHA-256, given whole or as a stream, once or twice."""
        blobs = self.fresh().blobs
        for data in (b"", b"\x00\xff\n", bytes(range(256)) * 10_000):
            name = hashlib.sha256(data).hexdigest()
            assert not blobs.has(name)
            for content in (data, io.BytesIO(data), data):
                assert blobs.put(content) == (name, len(data))
                assert blobs.has(name)
                assert blobs.get(name) == data
            with blobs.open(name) as stream:
                assert stream.read() == data

    @needs("blobs")
    def test_missing_attachments_are_named(self) -> None:
        """Bytes that were never put, and what is no SHA-256, are attachment-missing."""
        blobs = self.fresh().blobs
        name, _ = blobs.put(CANARY.encode())
        for other in ("0" * 64, name.upper(), name[:63], f"../{name[:2]}/{name}", "", "a" * 300):
            assert not blobs.has(other)
            for call in (blobs.get, blobs.open):
                with refused("attachment-missing"):
                    call(other)

    @needs("blobs", "reopening")
    def test_attachments_outlive_the_store(self) -> None:
        """Bytes that were put are there for another store at the same place."""
        name, _ = self.fresh().blobs.put(b"a")
        assert self.again().blobs.get(name) == b"a"
