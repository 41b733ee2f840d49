"""`python -m ledger.cli` is `turn-ledger`."""

from ledger.cli import main

main()
