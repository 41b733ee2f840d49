"""A process with one turn: it says each line of its standard input, a JSON text, as a piece of the answer.

python worker.py FOLDER [REQUEST_ID] [--late]: prints `running` when its program runs, then how its call
ended. With --late its clock is far behind, so that its lease has run out for everybody else.
"""

import json
import sys
from datetime import timedelta

import ledger
from ledger.conversation import Conversation
from ledger.turns.log import Log
from ledger.turns.programs import Program
from ledger.turns.view import View
from ledger.turns.world import System


class Late(System):
    """This machine's world with a clock that is behind."""

    def now(self):
        """Return the time, some minutes ago."""
        return super().now() - timedelta(minutes=5)


def say(message: str):
    """Say what comes in, as it comes."""
    print("running", flush=True)
    for line in sys.stdin:
        yield json.loads(line)


def main():
    """Make the turn."""
    options = [given for given in sys.argv[2:] if given != "--late"]
    if "--late" in sys.argv:
        log = Log(ledger.FolderStore(sys.argv[1]), "alex")
        chat = Conversation(log, View("alex", Program(say), world=Late()))
    else:
        chat = ledger.open("alex", say, store=sys.argv[1])
    try:
        print("answered", json.dumps(chat("Say it.", request_id=options[0] if options else None)))
    except ledger.LedgerError as error:
        print("raised", error.code)


if __name__ == "__main__":
    main()
