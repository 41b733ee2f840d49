"""An append-only conversation ledger with branching and merging."""
