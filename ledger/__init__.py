"""An append-only turn ledger with branching and merging: the durable memory under conversations.

    import ledger

    chat = ledger.open("alex", store="chats")
    chat.record("Hi, I'm Alex.", "Hello Alex!")

The public names are these; each is loaded when it is first asked for, so importing `ledger` costs
little more than importing msgspec.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ledger._version import __version__

if TYPE_CHECKING:
    from ledger import aio, catalog, errors, merging
    from ledger.conversation import Conversation
    from ledger.errors import LedgerError
    from ledger.memories import memory
    from ledger.opening import open
    from ledger.recovery import resume_all
    from ledger.sources.copying import copy_conversations
    from ledger.sources.exporting import Export, export, export_json, export_markdown
    from ledger.sources.importing import import_conversations
    from ledger.sources.parquet import write_parquet
    from ledger.sources.rated import rated, train_test, write_jsonl
    from ledger.stores.base import Position, Store
    from ledger.stores.folder import FolderStore
    from ledger.stores.memory import MemoryStore
    from ledger.stores.sql.store import SQLStore
    from ledger.stream import Stream
    from ledger.turn import Turn
    from ledger.turns.attachments import Attachment
    from ledger.turns.content import keep
    from ledger.turns.current import current
    from ledger.turns.decorating import program
    from ledger.turns.helping import remember
    from ledger.turns.receipts import Receipt
    from ledger.turns.running import drain
    from ledger.views.diff import Diff
    from ledger.views.history import History
    from ledger.views.lineage import Lineage
    from ledger.views.ratings import Rating
    from ledger.views.rules import all_turns, compacted, last_turns, only, pipeline, within

_PLACES = {
    "Attachment": "ledger.turns.attachments",
    "Conversation": "ledger.conversation",
    "Diff": "ledger.views.diff",
    "Export": "ledger.sources.exporting",
    "FolderStore": "ledger.stores.folder",
    "History": "ledger.views.history",
    "LedgerError": "ledger.errors",
    "Lineage": "ledger.views.lineage",
    "MemoryStore": "ledger.stores.memory",
    "Position": "ledger.stores.base",
    "Rating": "ledger.views.ratings",
    "Receipt": "ledger.turns.receipts",
    "SQLStore": "ledger.stores.sql.store",
    "Store": "ledger.stores.base",
    "Stream": "ledger.stream",
    "Turn": "ledger.turn",
    "aio": "ledger.aio",
    "all_turns": "ledger.views.rules",
    "catalog": "ledger.catalog",
    "compacted": "ledger.views.rules",
    "copy_conversations": "ledger.sources.copying",
    "current": "ledger.turns.current",
    "drain": "ledger.turns.running",
    "errors": "ledger.errors",
    "export": "ledger.sources.exporting",
    "export_json": "ledger.sources.exporting",
    "export_markdown": "ledger.sources.exporting",
    "import_conversations": "ledger.sources.importing",
    "keep": "ledger.turns.content",
    "last_turns": "ledger.views.rules",
    "memory": "ledger.memories",
    "merging": "ledger.merging",
    "only": "ledger.views.rules",
    "open": "ledger.opening",
    "pipeline": "ledger.views.rules",
    "program": "ledger.turns.decorating",
    "rated": "ledger.sources.rated",
    "remember": "ledger.turns.helping",
    "resume_all": "ledger.recovery",
    "train_test": "ledger.sources.rated",
    "within": "ledger.views.rules",
    "write_jsonl": "ledger.sources.rated",
    "write_parquet": "ledger.sources.parquet",
}

__all__ = [
    "Attachment",
    "Conversation",
    "Diff",
    "Export",
    "FolderStore",
    "History",
    "LedgerError",
    "Lineage",
    "MemoryStore",
    "Position",
    "Rating",
    "Receipt",
    "SQLStore",
    "Store",
    "Stream",
    "Turn",
    "__version__",
    "aio",
    "all_turns",
    "catalog",
    "compacted",
    "copy_conversations",
    "current",
    "drain",
    "errors",
    "export",
    "export_json",
    "export_markdown",
    "import_conversations",
    "keep",
    "last_turns",
    "memory",
    "merging",
    "only",
    "open",
    "pipeline",
    "program",
    "rated",
    "remember",
    "resume_all",
    "train_test",
    "within",
    "write_jsonl",
    "write_parquet",
]


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'ledger' has no attribute {name!r}")
    module = import_module(place)
    value = module if place == f"ledger.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
