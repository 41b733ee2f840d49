"""What the records of a conversation mean. Pure: no clock, no disk, no chance."""

from ledger.views.context import Rule, Shown, all_turns, last_turns
from ledger.views.history import History
from ledger.views.lineage import Lineage
from ledger.views.place import Place

__all__ = ["History", "Lineage", "Place", "Rule", "Shown", "all_turns", "last_turns"]
