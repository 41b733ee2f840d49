"""What the records of a conversation mean. Pure: no clock, no disk, no chance.

Each name is loaded when it is first asked for, so that who needs one of them does not load all.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ledger.views.context import Shown
    from ledger.views.diff import Diff
    from ledger.views.history import History
    from ledger.views.lineage import Lineage
    from ledger.views.place import Place
    from ledger.views.ratings import Rating
    from ledger.views.rules import Rule, all_turns, compacted, last_turns, only, pipeline, within

_PLACES = {
    "Diff": "diff",
    "History": "history",
    "Lineage": "lineage",
    "Place": "place",
    "Rating": "ratings",
    "Rule": "rules",
    "Shown": "context",
    "all_turns": "rules",
    "compacted": "rules",
    "last_turns": "rules",
    "only": "rules",
    "pipeline": "rules",
    "within": "rules",
}

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


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'ledger.views' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"ledger.views.{place}"), name)
    return value
