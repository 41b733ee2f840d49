"""The command line, run in this process."""

import io
import sys

import pytest

from ledger.cli import main


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys):
    """Runs the command line in this process: arguments and input to exit code, output, errors."""
    monkeypatch.setenv("TURN_LEDGER_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("COLUMNS", "80")

    def run(*args, given=""):
        monkeypatch.setattr(sys, "argv", ["turn-ledger", *args])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        code = 0
        try:
            main()
        except SystemExit as ending:
            code = ending.code if isinstance(ending.code, int) else 1
        printed = capsys.readouterr()
        return code or 0, printed.out, printed.err

    return run
