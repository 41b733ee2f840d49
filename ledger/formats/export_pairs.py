"""Preference pairs of answers that people rated: for training on what is preferred. Pure.

    preferences          {"prompt": [...], "chosen": [...], "rejected": [...]}      TRL, conversational
    preferences-openai   {"input": {"messages": [...]}, "preferred_output": [...],
                          "non_preferred_output": [...]}                            OpenAI

Turns that stand side by side (one parent), were asked the same, and whose ratings differ make pairs: the one
that is rated higher is chosen. What counts for a turn is the mean of what each person said last. Where none of
them is rated, what an import's source says counts: which answer was preferred, else how they were ranked.
Messages are those of OpenAI Chat Completions.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ledger.formats import export_chat, openai_chat, talks
from ledger.formats.converting import Raw
from ledger.formats.talks import How, Talk
from ledger.records.messages import Message
from ledger.records.values import identity
from ledger.views import exchange
from ledger.views.nodes import Node, mapping, payload
from ledger.views.place import nearest_done
from ledger.views.ratings import mean
from ledger.views.ratings import ratings as ratings_of

Spell = Callable[[list[Raw], list[Raw], list[Raw], list[Raw]], Raw]


@dataclass(frozen=True, slots=True)
class Preferences:
    """An exporter of preference pairs in one spelling."""

    name: str
    spell: Spell
    """Spells a prompt, what was chosen, what was rejected, and the definitions of tools."""

    def rows(self, talk: Talk, how: How, notes: Counter[str]) -> Iterator[Raw]:
        """Yield a pair for any two answers to the same whose ratings differ, the higher one chosen."""
        for nodes in _asked_alike(talk):
            group = _valued(talk, nodes)
            found = list(_pairs(group, how.pairs))
            if not found:
                notes[_ALONE if group else _NOT_RATED] += len(group or nodes)
                continue
            fitting = [pair for pair in found if how.fits(talk.history, pair[0])]
            if left_out := len(found) - len(fitting):
                notes["pairs left out, whose chosen answer does not fit"] += left_out
            first = nodes[0]
            above = nearest_done(talk.history, first.parent)
            prompt = how.instructed([*talk.messages(above, of=first.id), *exchange.asked(first)])
            for pair in fitting:
                yield self._row(talk, how, prompt, pair, notes)

    def _row(
        self,
        talk: Talk,
        how: How,
        prompt: list[Message],
        pair: tuple[Node, Node],
        notes: Counter[str],
    ) -> Raw:
        answers = [exchange.answered(talk.history, node) for node in pair]
        said = []
        for messages in (prompt, *answers):
            converted = openai_chat.to_provider(messages, read=talk.read)
            talks.note_losses(self.name, converted.losses, notes)
            said.append(converted.content)
        tools = export_chat.openai.tools([*prompt, *answers[0], *answers[1]], how)
        return self.spell(said[0], said[1], said[2], tools)


_ALONE = "rated turns left out, with none beside that was rated otherwise"
_NOT_RATED = "answers to the same left out, of which none is rated"


def _asked_alike(talk: Talk) -> Iterator[list[Node]]:
    """Yield the turns that have an answer by what they were asked, where: several, or one that is rated."""
    by_asked: dict[tuple[str | None, str], list[Node]] = {}
    beside = Counter(talk.history.node(turn).parent for turn in talk.history.order)
    for turn in talk.history.order:
        node = talk.history.node(turn)
        if node.done and (beside[node.parent] > 1 or ratings_of(talk.history, turn)):
            inputs = dict(mapping(node.record, "inputs"))
            asked = json.dumps(identity([inputs, exchange.asked(node)]), sort_keys=True)
            by_asked.setdefault((node.parent, asked), []).append(node)
    for nodes in by_asked.values():
        if len(nodes) > 1 or ratings_of(talk.history, nodes[0].id):
            yield nodes


def _valued(talk: Talk, nodes: list[Node]) -> list[tuple[float, Node]]:
    """Return those of some turns of which it is known how good they are, the best first."""
    valued: list[tuple[float | None, Node]]
    valued = [(mean(ratings_of(talk.history, node.id)), node) for node in nodes]
    for key, sign in (("preferred", 1), ("rank", -1)):
        if all(value is None for value, _ in valued):
            valued = [(_told(node, key, sign), node) for node in nodes]
    found = [(value, node) for value, node in valued if value is not None]
    return sorted(found, key=lambda one: (-one[0], one[1].ordinal))


def _told(node: Node, key: str, sign: int) -> float | None:
    """Return what an import's source says of a turn, as a number: more is better."""
    source = payload(node.record, "source")
    value = source.get(key) if isinstance(source, dict) else None
    return sign * value if isinstance(value, int) else None


def _pairs(group: list[tuple[float, Node]], wanted: talks.Pairs) -> Iterator[tuple[Node, Node]]:
    pairs = itertools.combinations(group, 2) if wanted == "all" else [(group[0], group[-1])]
    return ((better[1], worse[1]) for better, worse in pairs if better[0] > worse[0])


def _trl(prompt: list[Raw], chosen: list[Raw], rejected: list[Raw], tools: list[Raw]) -> Raw:
    row = {"prompt": prompt, "chosen": chosen, "rejected": rejected}
    return {**row, "tools": tools} if tools else row


def _openai(prompt: list[Raw], chosen: list[Raw], rejected: list[Raw], tools: list[Raw]) -> Raw:
    asked = {"messages": prompt, **({"tools": tools} if tools else {})}
    return {"input": asked, "preferred_output": chosen, "non_preferred_output": rejected}


trl = Preferences("preferences", _trl)
openai = Preferences("preferences-openai", _openai)
