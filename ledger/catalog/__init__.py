"""What is in a store: conversations listed, what was said in them searched, what it cost summed.

    catalog = ledger.catalog.of("chats")
    catalog.conversations(states=["waiting"])
    catalog.search('parcel "in the rain"')
    catalog.usage(by="day")

It answers from an index that is brought up to the logs first. The index is never the truth: it is made anew
where it is missing or damaged, and no log is changed by it.
"""

from ledger.catalog.answers import Answer, Hit, Listed, Spent, Waiting
from ledger.catalog.catalog import Catalog, of

__all__ = ["Answer", "Catalog", "Hit", "Listed", "Spent", "Waiting", "of"]


def __dir__() -> list[str]:
    return __all__
