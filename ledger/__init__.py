"""An append-only conversation ledger with branching and merging."""

from ledger._version import __version__

__all__ = ["__version__"]
