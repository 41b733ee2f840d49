"""The command `turn-ledger` (extra `cli`)."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; say how to install it where its libraries are missing."""
    try:
        from ledger.cli.app import run
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        message = "turn-ledger: the command line needs an extra: pip install 'turn-ledger[cli]'"
        print(message, file=sys.stderr)
        sys.exit(2)
    run()
