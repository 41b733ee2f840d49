"""One writer of many: appends batches of 1 to 3 records to the conversation `alex` of a folder.

    functai_appender.py functai|ours NAME FOLDER APPENDS

Says `ready`, and begins when it is told a line, so that all begin at once. Each append names the
position that was read; a conflict reads on and tries again. Prints how many conflicts there were.
"""

from __future__ import annotations

import sys
from typing import Any


def opened(side: str, folder: str) -> Any:
    """Return the store of one library."""
    if side == "functai":
        from functai.stores import FolderStore

        return FolderStore(folder)
    import ledger

    return ledger.FolderStore(folder)


def main() -> None:
    """Append, and retry what others overtook."""
    side, name, folder, appends = sys.argv[1:]
    store = opened(side, folder)
    conflicts = position = 0
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(int(appends)):
        records = [
            {
                "functai_conversation": 1,
                "kind": "entry",
                "at": "2026-01-01T00:00:00.000000Z",
                "plugin": name,
                "entry": "note",
                "data": {"n": n, "part": part, "text": "é \u2028 \U0001f600"},
            }
            for part in range(1 + n % 3)
        ]
        while True:
            position += len(store.read("alex", position))
            try:
                position = int(store.append("alex", records, expect=position))
                break
            except Exception as error:
                if getattr(error, "code", None) != "store-conflict":
                    raise
                conflicts += 1
    print(conflicts)


if __name__ == "__main__":
    main()
