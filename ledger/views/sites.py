"""Where in a turn's tree of calls something was made, as text: `support#1/answer#1/agent@3`. Pure.

A helper's call is named by its name and its number under it: `answer#1`. A tool's call, for what is made
within it, by its name and its `invocation`: `agent@3`. That number alone tells a site's calls apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_MARKS = re.compile(r"[/#@]")
_TOOL = re.compile(r"@\d+(/|$)")
_HELPER = re.compile(r"#\d+(/|$)")


def of_tool(site: str, name: str, invocation: int) -> str:
    """Return the site of what is made within a tool's call."""
    return f"{site}/{_MARKS.sub('_', name)}@{invocation}"


def holds(outer: str, site: str) -> bool:
    """Say whether a site is another, or lies within it."""
    return site == outer or site.startswith(f"{outer}/")


def held(outers: Iterable[str], site: str) -> bool:
    """Say whether one of several sites is a site, or holds it."""
    return any(holds(outer, site) for outer in outers)


def is_in_tool(site: str) -> bool:
    """Say whether a site lies within a tool's call."""
    return _TOOL.search(site) is not None


def is_in_helper(outer: str, site: str) -> bool:
    """Say whether a site that lies within another lies in a helper's call there."""
    return _HELPER.search(site[len(outer) :]) is not None


def tool_of(site: str) -> str:
    """Return the innermost tool's call in which a site lies: the beginning of it; empty: in none."""
    ends = [found.end() for found in _TOOL.finditer(site)]
    return site[: ends[-1]].rstrip("/") if ends else ""
