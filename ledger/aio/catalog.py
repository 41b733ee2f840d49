"""What is in a store, awaitable: each question is the blocking one, asked by threads and awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, tzinfo
from typing import Any, TypeVar

from ledger.catalog import Answer, Hit, Listed, Spent, Waiting
from ledger.catalog import catalog as blocking
from ledger.catalog.answers import Order
from ledger.catalog.spending import By
from ledger.turns import loops
from ledger.turns.pool import in_pool

__all__ = ["Catalog", "of"]

T = TypeVar("T")


def of(store: Any = None) -> Catalog:
    """Return the catalog of a store, awaitable. Args, Raises: as `ledger.catalog.of`."""
    return Catalog(blocking.of(store))


class Catalog:
    """What is in a store, awaitable. Made by `ledger.aio.catalog.of`. Tasks may share it."""

    def __init__(self, inner: blocking.Catalog) -> None:
        self._inner = inner
        self.store = inner.store
        """The store it is of."""

    async def conversations(
        self,
        title: str | None = None,
        *,
        labels: Sequence[str] = (),
        states: Sequence[str] = (),
        models: Sequence[str] = (),
        since: datetime | date | None = None,
        until: datetime | date | None = None,
        min_turns: int = 0,
        order: Order = "last",
        limit: int | None = None,
        after: str | None = None,
    ) -> Answer[Listed]:
        """Return the conversations for which all holds that is asked for. Args, Raises: as the blocking one."""
        return await self._do(
            lambda: self._inner.conversations(
                title,
                labels=labels,
                states=states,
                models=models,
                since=since,
                until=until,
                min_turns=min_turns,
                order=order,
                limit=limit,
                after=after,
            )
        )

    async def waiting(self) -> Answer[Waiting]:
        """Return the turns that wait for a person, the longest waiting first, with what they ask."""
        return await self._do(self._inner.waiting)

    async def search(
        self,
        query: str,
        *,
        conversation: str | Sequence[str] | None = None,
        labels: Sequence[str] = (),
        models: Sequence[str] = (),
        since: datetime | date | None = None,
        limit: int = 20,
    ) -> Answer[Hit]:
        """Return the turns in which all words of a query stand. Args, Raises: as the blocking one."""
        how: dict[str, Any] = {"conversation": conversation, "labels": labels}
        how |= {"models": models, "since": since}
        return await self._do(lambda: self._inner.search(query, limit=limit, **how))

    async def usage(
        self,
        by: By = "model",
        *,
        since: datetime | date | None = None,
        until: datetime | date | None = None,
        conversation: str | Sequence[str] | None = None,
        labels: Sequence[str] = (),
        timezone: tzinfo | str = UTC,
    ) -> Answer[Spent]:
        """Return what turns used, summed. Args, Raises: as the blocking one."""
        how: dict[str, Any] = {"since": since, "until": until, "labels": labels}
        how["conversation"] = conversation
        return await self._do(lambda: self._inner.usage(by, timezone=timezone, **how))

    async def refresh(self) -> Answer[str]:
        """Bring the index up to the logs, as each question does. Returns: nothing but what `failed`."""
        return await self._do(self._inner.refresh)

    async def rebuild(self) -> Answer[str]:
        """Make the index anew from the logs. Returns: as `refresh`."""
        return await self._do(self._inner.rebuild)

    async def _do(self, ask: Callable[[], T]) -> T:
        loops.settle(self.store, asyncio.get_running_loop())
        return await loops.done(in_pool(ask, (id(self.store), "catalog")))

    def __repr__(self) -> str:
        return repr(self._inner)


def __dir__() -> list[str]:
    return __all__
