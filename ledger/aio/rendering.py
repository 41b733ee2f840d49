"""What a next turn would be shown, awaitable where attachments are read."""

from __future__ import annotations

import copy
from typing import Any

from ledger.aio.waiting import do
from ledger.turns import telling
from ledger.turns.rendering import RenderedBase


class Rendered(RenderedBase):
    """What a next turn would be shown; `str` of it tells it in lines."""

    async def messages(
        self, format: str | None = None, *, instructions: str | None = None, strict: bool = False
    ) -> Any:
        """Return what its program would have to send to a model first. Args, Raises: as the blocking one."""
        said, read = copy.deepcopy(self._said), self._reading()
        how: dict[str, Any] = {"instructions": instructions, "strict": strict}
        return await do(self._log, lambda: telling.told(said, format, read=read, **how))
