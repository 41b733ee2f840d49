"""The bytes of attachments, read off the loop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from ledger.turns import loops
from ledger.turns.attachments import Attachment
from ledger.turns.pool import in_pool

CHUNK_BYTES = 1 << 20


async def read(attachment: Attachment) -> bytes:
    """Return the bytes of an attachment. Raises: as `Attachment.read`."""
    return await loops.done(in_pool(attachment.read))


async def chunks(attachment: Attachment, *, size_bytes: int = CHUNK_BYTES) -> AsyncIterator[bytes]:
    """Yield the bytes of an attachment in pieces of at most `size_bytes`, in order.

    Raises: as `Attachment.open`; store-corrupt after the last piece: then what was given is not to be used.
    """
    stream = await loops.done(in_pool(attachment.open))
    try:
        while chunk := await loops.done(in_pool(partial(stream.read, size_bytes))):
            yield chunk
    finally:
        stream.close()
