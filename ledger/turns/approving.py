"""Which tool calls a person is asked about before they run, and what the program is told.

No answer is never yes: a tool that a rule asks about runs after a `yes` to exactly that call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, NamedTuple

Rule = Literal["changes", "all"] | Collection[str] | Callable[[dict[str, Any]], Any]
"""`changes`: tools that change things, or do not say; `all`; names and paths; a function asked at once."""

DENIED = "This call was not allowed."


class Verdict(NamedTuple):
    """What was answered."""

    word: Literal["yes", "no"]
    reason: str | None = None


def check(rule: Any) -> None:
    """Refuse what is no rule. Raises: TypeError, ValueError."""
    if rule is None or callable(rule):
        return
    if isinstance(rule, str):
        if rule not in ("changes", "all"):
            raise ValueError(
                f"approve is 'changes', 'all', a list of tools, or a function, not {rule!r}"
            )
        return
    if not isinstance(rule, Collection) or not all(isinstance(n, str) and n for n in rule):
        raise TypeError(
            f"approve is 'changes', 'all', a list of tools, or a function, not {rule!r}"
        )


ASKED = "function"
"""How a rule that is a function is recorded."""


OWN = "turn"
"""Under this name a record has the rule that was given with the turn."""


def recorded(rule: Rule | None, *, own: bool = False) -> Any:
    """Return a rule as a turn's record says it, so that who goes on with the turn asks about the same.

    Args: own: it was given with the turn, and is not that of the conversation.
    """
    said: Any = rule
    if rule is not None and not isinstance(rule, str):
        said = ASKED if callable(rule) else sorted(rule)
    return {OWN: said} if own else said


def of_record(said: Any, given: Rule | None, *, asked: bool = False) -> Rule | None:
    """Return the rule of a turn that is gone on with: one that was given with the turn, else the one that is given
    now, else the recorded one. A function is no record: one is given now.

    Args: asked: whether people were asked about its tools before.
    Raises: LookupError: which one it was is not recorded, or not understood, and none is given now: nobody's
    yes is not a yes.
    """
    own = isinstance(said, dict) and said.keys() == {OWN}
    said = said[OWN] if own else said
    if given is not None and (not own or (said == ASKED and callable(given))):
        return given
    if said is None and not asked:
        return None
    if said in ("changes", "all"):
        return "changes" if said == "changes" else "all"
    if isinstance(said, list) and all(isinstance(name, str) for name in said):
        return list(said)
    if own and said == ASKED:
        raise LookupError(
            "it was sent with a function that says which of its tools people are asked about, and no other rule "
            "takes its place: give a function, as `approve` of `open`"
        )
    raise LookupError(
        "it asks people about its tools by a rule that is no record (a function, another writer's): say which, "
        "with `approve` of `open`; [] asks about nothing"
    )


def asks(rule: Rule | None, question: Mapping[str, Any]) -> bool:
    """Say whether a rule asks about a tool call. A function is asked of what `changes` asks about."""
    if rule is None:
        return False
    if rule == "all":
        return True
    if rule == "changes" or callable(rule):
        return bool(question["effects"] != "reads")
    path = str(question["path"])
    return any(name in (question["name"], path) or path.endswith(f"/{name}") for name in rule)


def answered_at_once(rule: Rule | None, question: Mapping[str, Any]) -> Verdict | None:
    """Return what a rule that is a function answers; None: a person has to be waited for.

    Raises: TypeError: it answered something else than True, False, None or a reason to refuse.
    """
    if not callable(rule):
        return None
    said = rule(dict(question))
    if said is None:
        return None
    if isinstance(said, bool):
        return Verdict("yes" if said else "no")
    if isinstance(said, str):
        return Verdict("no", said)
    raise TypeError(
        f"approve, asked about {question['path']}, answered {said!r}; a function that approves answers True, "
        "False, None (ask a person) or a reason to refuse, as text"
    )


def denial(reason: str | None) -> str:
    """Return what the program is given in place of the tool's output."""
    return f"{DENIED} Reason: {reason}" if reason else DENIED
