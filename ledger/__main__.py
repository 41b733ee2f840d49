"""`python -m ledger` is `turn-ledger`."""

from ledger.cli import main

main()
