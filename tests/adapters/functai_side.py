"""The other library's side of the tests: a scripted model, programs, and what both say of one log."""

from __future__ import annotations

import os
import threading
from typing import Any

from functai import ai, module, stores
from lm15.testing import FakeLM
from lm15.types import Message, Response, TextPart, Usage

import ledger


class Scripted(FakeLM):
    """A model that numbers its replies, fails and waits when told; it needs no network."""

    def __init__(self) -> None:
        super().__init__()
        self.script: list[str] = []
        """Replies to give first, in order, in place of numbered ones."""
        self.fails: Exception | None = None
        """Raised in place of the next reply."""
        self.entered = threading.Event()
        self.go = threading.Event()
        """Replies are given while it is set."""
        self.go.set()

    def _next(self, request: Any) -> Any:
        self.requests.append(request)
        number = len(self.requests)
        self.entered.set()
        assert self.go.wait(20)
        failure, self.fails = self.fails, None
        if failure is not None:
            raise failure
        text = self.script.pop(0) if self.script else f"<result>reply {number}</result>"
        return Response(
            id="fake",
            model="fake-1",
            message=Message.assistant(TextPart(text)),
            finish_reason="stop",
            usage=Usage(input_tokens=3 * number, output_tokens=number),
        )


def tutor_of(model: Scripted) -> Any:
    """Return an AI function, message -> result, that asks this model."""

    @ai(lm="fake", client=model)
    def tutor(message: str) -> str:  # type: ignore[empty-body]
        """Answer."""

    return tutor


def judge_of(model: Scripted) -> Any:
    """Return an AI function that makes one answer of several."""

    @ai(lm="fake", client=model)
    def judge(answers: list[dict[str, str]]) -> str:  # type: ignore[empty-body]
        """Choose."""

    return judge


@module
def echo(message: str) -> str:
    """Answer with what was asked; a program that needs no model."""
    if message == "fail":
        raise ValueError("told to fail")
    return f"echo {message}"


def ours(message: str) -> str:
    """Answer, as a program of this library with the same fields as `tutor` and `echo`."""
    if message == "fail":
        raise ValueError("told to fail")
    return f"ours {message}"


def fresh(folder: os.PathLike[str]) -> stores.FolderStore:
    """Return the other library's store on a folder, with nothing read yet."""
    return stores.FolderStore(folder)


def theirs_says(chat: Any) -> dict[str, Any]:
    """Return what a functai conversation says of its log."""
    head = chat.head
    return {
        "turns": [turn.id for turn in chat.turns],
        "head": head.id if head is not None else None,
        "all": [
            {
                "id": turn.id,
                "parent": turn.parent,
                "request_id": turn.request_id,
                "inputs": turn.inputs,
                "outputs": turn.outputs,
                "result": turn.result,
                "state": turn.state,
                "saw": [seen.id for seen in turn.saw],
                "reads": turn.reads,
                "made_by": turn.made_by,
                "model": turn.model,
                "usage": turn.usage,
                "error": turn.error,
            }
            for turn in chat.all_turns()
        ],
    }


def ours_says(chat: ledger.Conversation) -> dict[str, Any]:
    """Return what a conversation of ours says of its log, in the other's words."""
    head = chat.head
    return {
        "turns": [turn.id for turn in chat.turns],
        "head": head.id if head is not None else None,
        "all": [
            {
                "id": turn.id,
                "parent": turn.parent.id if turn.parent is not None else None,
                "request_id": turn.request_id,
                "inputs": turn.inputs,
                "outputs": turn.outputs,
                "result": turn.result,
                "state": turn.state,
                "saw": [seen.id for seen in turn.saw],
                "reads": [read.id for read in turn.reads],
                "made_by": turn.made_by,
                "model": turn.model,
                "usage": turn.usage,
                "error": turn.error,
            }
            for turn in chat.all_turns()
        ],
    }


def agreed(theirs: Any, own: ledger.Conversation) -> dict[str, Any]:
    """Assert that both libraries say the same of one log, and return what they say."""
    said = ours_says(own)
    assert theirs_says(theirs) == said
    return said
