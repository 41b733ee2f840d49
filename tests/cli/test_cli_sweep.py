"""sweep: attachments that nothing names."""

import json
import os

import ledger


def test_what_was_swept_is_printed(cli, tmp_path):
    """sweep prints the hashes of what it removed; again, there is nothing to remove."""
    store = ledger.FolderStore(tmp_path / "store")
    left, _ = store.blobs.put(b"left")
    assert cli("sweep") == (0, "nothing to remove\n", "")
    os.utime(tmp_path / "store" / "attachments" / left[:2] / left, (1, 1))

    assert cli("sweep") == (0, f"{left}\n", "")
    code, out, _ = cli("sweep", "--older-than", "0", "--json")
    assert (code, json.loads(out)) == (0, {"removed": []})
