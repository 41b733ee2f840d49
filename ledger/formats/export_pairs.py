"""Preference pairs of answers that people rated: for training on what is preferred. Pure.

    preferences          {"prompt": [...], "chosen": [...], "rejected": [...]}      TRL, conversational
    preferences-openai   {"input": {"messages": [...]}, "preferred_output": [...],
                          "non_preferred_output": [...]}                            OpenAI

Turns that stand side by side (one parent), were asked the same, and whose ratings differ make pairs: the one
that is rated higher is chosen. What counts for a turn is the mean of what each person said last. Messages are
those of OpenAI Chat Completions.
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
from ledger.views import exchange, rated
from ledger.views.nodes import Node, mapping
from ledger.views.place import nearest_done
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
        for group in _groups(talk):
            found = list(_pairs(group, how.pairs))
            if not found:
                notes["rated turns left out, with none beside that was rated otherwise"] += len(
                    group
                )
                continue
            first = group[0][1]
            above = nearest_done(talk.history, first.parent)
            prompt = [*talk.messages(above, of=first.id), *exchange.asked(first)]
            for chosen, rejected in found:
                yield self._row(talk, how, prompt, (chosen, rejected), notes)

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


def _groups(talk: Talk) -> Iterator[list[tuple[float, Node]]]:
    """Yield the rated turns that have an answer, grouped by what they were asked, where."""
    by_asked: dict[tuple[str | None, str], list[tuple[float, Node]]] = {}
    for turn in talk.history.order:
        node = talk.history.node(turn)
        value = rated.mean(ratings_of(talk.history, turn)) if node.done else None
        if value is not None:
            inputs = dict(mapping(node.record, "inputs"))
            asked = json.dumps(identity([inputs, exchange.asked(node)]), sort_keys=True)
            by_asked.setdefault((node.parent, asked), []).append((value, node))
    for group in by_asked.values():
        yield sorted(group, key=lambda one: (-one[0], one[1].ordinal))


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
