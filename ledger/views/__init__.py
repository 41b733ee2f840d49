"""What the records of a conversation mean. Pure: no clock, no disk, no chance."""

from ledger.views.context import Shown
from ledger.views.diff import Diff
from ledger.views.history import History
from ledger.views.lineage import Lineage
from ledger.views.place import Place
from ledger.views.ratings import Rating
from ledger.views.rules import Rule, all_turns, compacted, last_turns, only, pipeline, within

__all__ = [
    "Diff",
    "History",
    "Lineage",
    "Place",
    "Rating",
    "Rule",
    "Shown",
    "all_turns",
    "compacted",
    "last_turns",
    "only",
    "pipeline",
    "within",
]
