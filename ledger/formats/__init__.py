"""Foreign formats, one file each: bytes in, drafts out. Pure; `ledger.sources` opens the files."""
