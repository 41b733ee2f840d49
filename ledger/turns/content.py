"""What may be kept: a field that may not be goes into no store that outlives the process.

A program says it of its own fields, a process of every field of a name. A conversation that must
remember what it may not keep refuses; it does not forget silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ledger.errors import ContentRefused

# Replaced as a whole, never changed: no thread, and no child of a fork, sees half of it.
_kept: Mapping[str, bool] = {}


def keep(fields: Mapping[str, bool]) -> None:
    """Say for this whole process which fields may be kept, by the names they are recorded under.

    It replaces what was said before; `keep({})` lifts it. A conversation refuses to make a turn with a
    field that may not be kept (`conversation-content`), unless its store is in memory. A program's own
    word (`ledger.program(keep=...)`) counts as well: a field is kept when neither forbids it. Holds for
    all threads, and in the children of a fork; other processes say it themselves.
    Raises: TypeError: a name is no text, or it is said of it something else than True or False.
    Not promised: that what was recorded before goes away.
    """
    global _kept
    _kept = flags(fields)


def refuse(store: object, fields: Iterable[str], declared: Mapping[str, bool]) -> None:
    """Refuse fields that may not be kept, where the store keeps them.

    Args: store: one that does not say whether it is `persistent` counts as persistent. fields: the
    names that a turn is recorded under. declared: what its program says of them, by these names.
    Raises: conversation-content, naming the fields.
    """
    persistent = getattr(store, "persistent", None)
    if persistent is not None and not persistent:
        return
    process = _kept
    named = [n for n in fields if not (process.get(n, True) and declared.get(n, True))]
    if named:
        raise ContentRefused(fields=tuple(named), store=type(store).__name__)


def flags(fields: Mapping[Any, Any]) -> dict[str, bool]:
    """Return whether each field may be kept, checked. Raises: TypeError."""
    if not isinstance(fields, Mapping):
        raise TypeError(f"keep maps the names of fields to True or False, not {fields!r}")
    for name, kept in fields.items():
        if not isinstance(name, str) or not isinstance(kept, bool):
            raise TypeError(
                f"keep maps the names of fields to True or False, not {name!r}: {kept!r}"
            )
    return dict(fields)
