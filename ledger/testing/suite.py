"""The suite that every store passes: one class to subclass, whole or nothing.

    class TestMyStore(StoreSuite):
        lacks = {"blobs": "my store keeps records only"}

        def make_place(self, folder):
            return str(folder / "conversations.db")

        open_store = staticmethod(my_package.open_store)

pytest runs the checks as tests of the subclass; `ledger.testing.run` runs them without. A subclass
defines the hooks (see `Bench`) and no check anew: that raises TypeError when the class is made.
"""

from __future__ import annotations

from typing import Any

from ledger.testing.ability_checks import AbilityChecks
from ledger.testing.adding_checks import AddingChecks
from ledger.testing.bench import refuse_changes
from ledger.testing.bytes_checks import BytesChecks
from ledger.testing.erase_checks import EraseChecks
from ledger.testing.identity_checks import IdentityChecks
from ledger.testing.machine import MachineChecks
from ledger.testing.process_checks import ProcessChecks
from ledger.testing.thread_checks import ThreadChecks
from ledger.testing.value_checks import ValueChecks
from ledger.testing.wait_checks import WaitChecks


class StoreSuite(
    AbilityChecks,
    AddingChecks,
    ValueChecks,
    IdentityChecks,
    ThreadChecks,
    ProcessChecks,
    WaitChecks,
    BytesChecks,
    EraseChecks,
    MachineChecks,
):
    """Every check there is. Subclass it, with a name that begins with `Test`."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        refuse_changes(cls)


def checks(suite: type[StoreSuite]) -> dict[str, str]:
    """Return the checks by name, each with its claim."""
    return {
        name: (getattr(suite, name).__doc__ or "").partition("\n")[0]
        for name in dir(suite)
        if name.startswith("test_") and hasattr(StoreSuite, name)
    }
