"""Where in the tree of calls of a turn its code is: in its program, a helper's call, a tool's call.

What is made within a tool's call is found again within it, and goes with it: who is given what the tool
gave makes none of it again. So the tool has to be in the log before what is made within it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ledger.records import canonical
from ledger.records.kinds import NewRecord
from ledger.views import sites
from ledger.views.steps import Name, Place


class Making:
    """A tool's call, or a model's, while it is made."""

    def __init__(
        self, outer: Making | None, begun: NewRecord | None = None, *, known: bool = True
    ) -> None:
        self.outer = outer
        """The one in which it is made."""
        self.begun = begun
        """What tells a later run where it was made, for one that has no record yet; None: of a model's,
        which has no such record, and so holds no steps."""
        self.known = known
        """Whether the log has it."""
        self.left: BaseException | None = None
        """Why a step within could not go on: then what the call gives or raises counts for nothing."""


class Site(NamedTuple):
    """Where in the tree of calls a step is made."""

    call: str
    """The id of the call: the turn's own, or a helper's."""
    site: str
    """`support#1/answer#1`."""
    scope: str | None = None
    """What the helper or tool was called with, as a hash: by this it is known in a later run. None: neither."""
    within: dict[str, Any] | None = None
    """For people: the helper's name and inputs, or the tool's."""
    making: Making | None = None
    """The innermost call of a tool or model that is being made around it."""
    in_tool: bool = False
    """Whether it is a tool's call itself, and no helper's that was made there."""
    trail: str = ""
    """The names of the calls on the way to it: `support/answer`."""

    def path(self, name: str) -> str:
        """Return the path of a tool: `support/answer/refund`."""
        return f"{self.trail}/{name}"

    def of_tool(self, place: Place, name: str, input: Any, known_as: Name, making: Making) -> Site:
        """Return where the steps are made that a tool's call here makes."""
        return Site(
            self.call,
            sites.of_tool(place.site, name, place.invocation),
            canonical.sha256(list(known_as)),
            {"name": name, "inputs": input},
            making,
            in_tool=True,
            trail=self.path(name),
        )

    def of_reply(self) -> Site:
        """Return where the steps would be made that a model's call here makes."""
        return self._replace(making=Making(self.making))

    def leave(self, error: BaseException) -> None:
        """Say that a step here cannot go on, to all the calls around it."""
        making = self.making
        while making is not None:
            making.left = error
            making = making.outer

    def untold(self) -> list[Making]:
        """Return the calls around it that the log does not have, the outermost first."""
        found, making = [], self.making
        while making is not None:
            if not making.known:
                found.append(making)
            making = making.outer
        return found[::-1]

    @property
    def in_reply(self) -> bool:
        """Whether it is in a model's call."""
        return self.making is not None and self.making.begun is None
