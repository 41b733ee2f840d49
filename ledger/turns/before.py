"""What earlier attempts of a turn recorded: each record is used once, by the call that made it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple, TypeVar

from ledger.turns.sites import Site
from ledger.views import sites
from ledger.views import steps as recorded
from ledger.views.nodes import Node
from ledger.views.steps import Invocation, Name, Noted, Place, Reply


class Within(NamedTuple):
    """What was made within a tool's call."""

    noted: list[Noted]
    """What was noted there, in the order in which it was recorded."""
    calls: list[dict[str, Any]]
    """The calls of helpers that remember."""


class Before:
    """What earlier attempts of a turn recorded, each to be used once, and the numbers they used.

    A tool call goes with the question about it: of several that are the same, one that was answered `no`
    must not lend its answer to one that ran. It is looked for where it is made, and then elsewhere, since
    helpers that run side by side may swap their numbers.
    """

    def __init__(self, node: Node | None) -> None:
        self._replies: dict[str, list[Reply]] = defaultdict(list)
        self._tools: dict[Name, list[Place]] = defaultdict(list)
        self._node = node
        self._last: dict[str, int] = {}
        self._calls: dict[str, int] = {}
        self._given_back: set[int] = set()
        if node is not None:
            self._read(node)

    def _read(self, node: Node) -> None:
        self._given_back = node.given_back
        for reply in recorded.replies(node):
            self._replies[reply.key].append(reply)
        for known_as, place in recorded.places(node):
            self._tools[known_as].append(place)
            self._use(place.site, place.invocation)
        for site, number in recorded.used_places(node):
            self._use(site, number)

    def in_the_way(self, known_as: Name, site: str, effects: str | None) -> list[str]:
        """Return the calls that have to be come to before a new one is made, if this is a new one."""
        if self._place(known_as, site) is not None:
            return []
        scope, own, _, _ = known_as
        recorded_ones = [
            (name, place.tool)
            for name, places in self._tools.items()
            for place in places
            if place.tool
        ]
        if own is not None and any(name[:2] == (scope, own) for name, _ in recorded_ones):
            return [
                f"tool {own}"
            ]  # The same call by the caller's own word, and another tool or input.
        if effects == "reads":
            return []
        tools = [tool for _, tool in recorded_ones]
        changed = [tool for tool in tools if tool.effects != "reads" and self._asked_for(tool)]
        return [f"tool {tool.name} {tool.id}" for tool in changed]

    def _use(self, site: str, number: int) -> None:
        self._last[site] = max(self._last.get(site, 0), number)

    def reply(self, key: str, site: Site) -> Reply | None:
        """Return the recorded reply to a request that was made in the same call; None: there is none.

        Other writers do not say in which.
        """
        known = self._replies.get(key, [])
        found = _nearest([r for r in known if r.site is None or r.scope == site.scope], site.site)
        if found is not None:
            known.remove(found)
        return found

    def within(self, tool: Invocation) -> Within:
        """Take all that was made within a tool's call as come to."""
        outer = tool.inside
        found: list[Reply | Invocation] = []
        for queue in self._replies.values():
            found += _taken(queue, outer)
        for places in self._tools.values():
            inner = _taken(places, outer)
            found += [place.tool for place in inner if place.tool is not None]
        noted = []
        for step in sorted(found, key=lambda each: each.seq):
            in_helper = sites.is_in_helper(outer, step.site or "")
            noted.append(step.noted._replace(model=None) if in_helper else step.noted)
        calls = recorded.standing(self._node, tool.ended_by) if self._node is not None else []
        inside = [call for call in calls if sites.holds(outer, call.site or "")]
        return Within(noted, [recorded.call_said(call) for call in inside])

    def tool(self, known_as: Name, site: str) -> Place:
        """Return the place of a call, with what is recorded there; of a new call, a new one."""
        found = self._place(known_as, site)
        if found is None:
            return Place(site, self._next(site))
        self._tools[known_as].remove(found)
        return found

    def _place(self, known_as: Name, site: str) -> Place | None:
        return _nearest(self._tools.get(known_as, []), site)

    def _next(self, site: str) -> int:
        self._use(site, self._last.get(site, 0) + 1)
        return self._last[site]

    def numbered(self, place: str) -> str:
        self._calls[place] = self._calls.get(place, 0) + 1
        return f"{place}#{self._calls[place]}"

    def left(self) -> list[str]:
        """Return what was not come to. What a changed program had done in addition, before it gave the turn
        back, is there to be used, and is not asked for."""
        tools = [place.tool for places in self._tools.values() for place in places]
        replies = [reply for queue in self._replies.values() for reply in queue]
        return [
            *(f"tool {tool.name} {tool.id}" for tool in tools if tool and self._asked_for(tool)),
            *(f"reply {reply.key}" for reply in replies if self._asked_for(reply)),
        ]

    def _asked_for(self, step: Invocation | Reply) -> bool:
        return step.attempt not in self._given_back


T = TypeVar("T", Reply, Place)


def _nearest(steps: list[T], site: str) -> T | None:
    """Return the first of some steps that was made at a site; else the first made elsewhere in the same tool's call.

    Helpers that run side by side may swap their numbers; what was made within a tool's call goes with it.
    """
    tool = sites.tool_of(site)
    fits = [step for step in steps if _may_be(step, tool)]
    return next((step for step in fits if step.site == site), fits[0] if fits else None)


def _may_be(step: Reply | Place, tool: str) -> bool:
    """Say whether a step may have been made in a tool's call. Other writers' replies do not say where they were."""
    return step.site is None or sites.tool_of(step.site) == tool


def _taken(steps: list[T], outer: str) -> list[T]:
    """Take the steps that were made within a call out of a list. Returns: them."""
    found = [step for step in steps if sites.holds(outer, step.site or "")]
    steps[:] = [step for step in steps if not sites.holds(outer, step.site or "")]
    return found
