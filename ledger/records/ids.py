"""Ids: which conversation names are safe, and how turn ids are made.

A turn id is a lower-case UUIDv7. Its time and its 74 free bits are given by the caller (random for a
new turn, derived from the source for an imported one), so this module has no clock and no chance.
"""

from __future__ import annotations

import hashlib
import re

from ledger.errors import ConversationIdInvalid

_CONVERSATION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_TURN = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_ALIKE = re.compile(r"[A-Za-z0-9._:@+-]{1,200}")
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?")


def check_conversation(conversation: object) -> str:
    """Return the id as plain text if it can name a conversation in every store.

    A subclass of `str` is read as the text it holds, not as what it prints.
    Raises: conversation-id.
    """
    if not isinstance(conversation, str):
        kind = type(conversation).__name__
        raise ConversationIdInvalid(conversation=f"<{kind}>", reason="is not text")
    conversation = str.__str__(conversation)
    if not _CONVERSATION.fullmatch(conversation):
        shown = conversation if len(conversation) <= 60 else conversation[:57] + "..."
        reason = "is empty"
        if conversation:
            reason = f"is not a safe name (as a memory's key it is {of_key(conversation)!r})"
        raise ConversationIdInvalid(conversation=shown, reason=reason)
    return conversation


def is_spelled_alike(text: str) -> bool:
    """Say whether every writer of JSON spells a text in the same way, so that its bytes tell where it stands."""
    return bool(_ALIKE.fullmatch(text))


def reserved_on_windows(conversation: str) -> bool:
    """Say whether Windows keeps this name for a device, or drops its last character."""
    return bool(_RESERVED.fullmatch(conversation)) or conversation.endswith(".")


_AWKWARD, _LONG = "k__", "h__"
"""How a key begins that cannot stand for itself: by its first sign, by its length. No other has `__`."""
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789.-")
_ESCAPED = re.compile(r"_([0-9a-f]{2})")


def of_key(key: object) -> str:
    """Return the conversation id of any text but the empty one: always the same, and no other text's.

    Small letters, digits, `-` and `.` stand for themselves, each other byte of its UTF-8 as `_` and two hex
    digits; so no two keys differ by case alone. A key whose id would be longer than 200 is known by its
    hash, and `key_of` cannot tell it.
    Raises: conversation-id: it is no text, or empty.
    """
    if not isinstance(key, str) or not key:
        reason = "is empty" if key == "" else "is not text"
        raise ConversationIdInvalid(conversation=str(key)[:60], reason=reason)
    data = str.__str__(key).encode("utf-8", "surrogatepass")
    found = escaped(data)
    return found if len(found) <= 200 else _LONG + hashlib.sha256(data).hexdigest()


def escaped(data: bytes) -> str:
    """Return the id of a key's bytes, however long."""
    signs = [chr(byte) if byte in _PLAIN else f"_{byte:02x}" for byte in data]
    if signs[-1] == ".":
        signs[-1] = "_2e"
    if reserved_on_windows("".join(signs)):
        signs[0] = f"_{data[0]:02x}"
    found = "".join(signs)
    return found if found[0].isalnum() else _AWKWARD + found


def key_of(conversation: str) -> str | None:
    """Return the text whose conversation id this is; None: it is no key's, or a long key's hash."""
    signs = conversation.removeprefix(_AWKWARD)
    data = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), signs).encode("latin-1", "replace")
    try:
        key = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
    return key if data and escaped(data) == conversation else None


def is_long_key(conversation: str) -> bool:
    """Say whether a conversation id is the hash of a long key."""
    return bool(re.fullmatch(_LONG + "[0-9a-f]{64}", conversation))


def is_turn(value: object) -> bool:
    """Say whether a value has the form of a turn id (a lower-case UUIDv7)."""
    return isinstance(value, str) and bool(_TURN.fullmatch(value))


def uuid7(milliseconds: int, bits74: int) -> str:
    """Return the UUIDv7 of a Unix time in milliseconds (48 bits) and 74 free bits."""
    if not 0 <= milliseconds < 1 << 48:
        raise ValueError("a UUIDv7 holds 48 bits of milliseconds")
    if not 0 <= bits74 < 1 << 74:
        raise ValueError("a UUIDv7 holds 74 free bits")
    high = milliseconds << 16 | 7 << 12 | bits74 >> 62
    low = 2 << 62 | bits74 & (1 << 62) - 1
    digits = f"{high << 64 | low:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
