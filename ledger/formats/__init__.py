"""Foreign formats, one file each: bytes in, drafts out. Pure; `ledger.sources` opens the files."""

__all__ = ["dialects"]


def __dir__() -> list[str]:
    return __all__
