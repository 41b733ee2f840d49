"""An agent's memory: conversations by ids of any text, as lists of messages in the agent's own form.

Three faces over `chat.sync`, for three kinds of agents: `turn` for a loop of one's own, `load`, `append` and
`clear` for one that says what a turn added, `get` and `save` for one that hands over all it has.
"""

from __future__ import annotations

import builtins
from collections import OrderedDict
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Literal, Self, get_args

from ledger.bells import OwnLock
from ledger.conversation import WAIT_S, Conversation
from ledger.errors import StoreUnsupported
from ledger.formats import dialects, replies
from ledger.formats.handed import exact_copy, neutral, parts
from ledger.formats.usage import taken
from ledger.opening import open
from ledger.records import ids, kinds
from ledger.records.kinds import NewRecord
from ledger.records.messages import Message
from ledger.records.redacting import Redact
from ledger.stores.resolve import store_for
from ledger.syncing import Wish
from ledger.turn import Turn
from ledger.turns import commands, current, loops, telling
from ledger.turns.forgotten import Quoted
from ledger.turns.log import Begun, Log
from ledger.turns.queueing import ADVICE, Queued
from ledger.turns.view import View
from ledger.views import History, Rule, rules, transcript
from ledger.views.nodes import LEFT
from ledger.views.place import Cursor, nearest_done
from ledger.views.rules import Chooser

Busy = Literal["queue", "refuse"]
"""What a turn does while another one of its conversation is made."""
MOST_OPEN = 32
"""How many conversations a memory keeps open; one that is used again later is read again."""
KEY = ("ledger", "key")
"""The plugin and kind of the entry that keeps a key which its conversation's id cannot tell."""


def memory(
    store: Any = None,
    *,
    format: str | None = None,
    context: Rule | Chooser | None = None,
    busy: Busy = "queue",
    redact: Redact | Sequence[Redact] | None = None,
) -> Memory:
    """Return the memory of an agent, kept in a store.

    Args: store: as for `open`. format: whose form messages have: `openai`, `openai-responses`, `anthropic`
    (the list alone: the instructions are given to each call), `pydantic-ai`; None: neutral. context: which
    earlier turns `load` and `turn` begin with, as for `open`; all that was said is kept all the same. busy:
    what a turn does while another one of its conversation is made: `queue` waits for it, `refuse` raises
    conversation-busy. redact: as for `open`.
    Raises: ValueError, TypeError.
    """
    return Memory(store, format=format, context=context, busy=busy, redact=redact)


class Memory:
    """The conversations of an agent, each by an id of any text (`user:42`). Threads may share it.

    No id (None or the empty text) is a call on its own: nothing is loaded and nothing is stored. The turns
    are those of an ordinary conversation, `conversation(id)`.
    """

    def __init__(
        self,
        store: Any = None,
        *,
        format: str | None = None,
        context: Rule | Chooser | None = None,
        busy: Busy = "queue",
        redact: Redact | Sequence[Redact] | None = None,
    ) -> None:
        if busy not in get_args(Busy):
            raise ValueError(f"busy is 'queue' or 'refuse', not {busy!r}")
        self._rule = _rule_of(context)
        self.store = store_for(store)
        """The store it is kept in."""
        self._dialect = None if format is None else dialects.named(format)
        self._busy = busy
        self._redact = redact
        self._own = OwnLock()
        self._opened: OrderedDict[str, Conversation] = OrderedDict()

    # -- all that was said

    def get(self, id: str | None) -> list[Any] | None:
        """Return the list that was saved last; None: there is none, or it was cleared since.

        What others recorded since in the same conversation is in it, and all turns, whatever `context` says.
        What its form cannot say is left out, and a call without a result is given one that says so, with a
        `LossWarning`; `save` takes it out again. Raises: store errors.
        """
        if not id:
            return None
        log = self._chat(id)._log
        history = log.read()
        return self._told(log, transcript.listed(history, _last(history))) or None

    def save(
        self, id: str | None, messages: Any, *, model: str | None = None, usage: Any = None
    ) -> None:
        """Keep a whole list: record the turns that are new, and keep what is behind the last whole turn.

        A list that departs from what is known makes a branch, and is what `get` gives from now on; what
        was there stays, as a branch of its own. So of two that are saved at once both are kept.
        Args: model, usage: of its last turn, where that is new; as for `record`.
        Raises: import-invalid, record-invalid, naming the message; store errors.
        """
        if id:
            how: dict[str, Any] = {"keep": True, "model": model, "usage": usage}
            self._sync(id, Wish(messages, self._dialect, "branch", **how))

    def pop(self, id: str | None) -> Any:
        """Take the last message, or item, off the list, and return it as `get` gave it; None: there is none.

        A result that `get` put in for a call that has none is no message: the call goes. Nothing is deleted: the
        list as it was is a branch. Raises: store errors.
        """
        items = self.get(id) or []
        while items and not neutral(items[-1:], self._dialect):
            items.pop()
        if not items:
            return None
        last = items.pop()
        self.save(id, items)
        return last

    # -- turn by turn

    def load(self, id: str | None, *, context: Rule | Chooser | None = None) -> list[Any]:
        """Return the messages of a conversation that `context` shows; none of one that is new, or was cleared.

        Args: context: for this call; None: the memory's own.
        """
        rule = self._rule_for(context)
        return [] if not id else self._shown(self._chat(id)._log, rule)[1]

    def append(
        self,
        id: str | None,
        messages: Any,
        *,
        model: str | None = None,
        usage: Any = None,
        context: Rule | Chooser | None = None,
    ) -> list[Turn]:
        """Record what a turn added, once it succeeded: the user's message, the replies, the tool rounds.

        It goes behind what is there then. While a program's turn runs there, it waits or refuses, as
        `busy` says. A turn may begin with the assistant's words, and a result may lack its call (a form that cannot
        say that leaves it out when it is loaded, with a `LossWarning`).
        Args: model, usage: as for `record`. context: what `load` was given; by it is recorded what the turn saw.
        Returns: the turns it made: usually one.
        Raises: record-invalid: the turn has no answer; import-invalid, conversation-busy, store errors;
        store-gone: the conversation was deleted meanwhile.
        """
        rule, begun = self._rule_for(context), Begun()
        if not id:
            return []
        while not self._is_free(id, begun):
            self._chat(id)._log.wait(WAIT_S)
        return self._append(id, messages, model, usage, rule, begun)

    def clear(self, id: str | None) -> None:
        """Begin anew: from now on there is nothing to load. Nothing is deleted.

        The old turns stay as a line of their own; `conversation(id).head = turn` brings one back. To take out
        what was said use `delete`, or `forget` of the conversation for one turn.
        """
        if id:
            chat = self._chat(id)
            now = chat._world.now
            chat._log.append(lambda history: _cleared(history, now()))

    def delete(self, id: str | None) -> Any:
        """Remove all that is stored under an id, for good: every turn, and attachments that nothing else names.

        It waits, or refuses, as a turn would: a turn of this process that is being made there ends first. The id is
        new afterwards.
        Returns: what went, as `store.delete` of the store tells; None without an id.
        Raises: conversation-busy, store errors. store-unsupported: the store deletes nothing.
        Not promised: that a turn that another process makes meanwhile is not recorded afterwards, as the first.
        """
        if not id:
            return None
        queued = self._queued(id)
        try:
            queued.free.result()
            return self._delete(id)
        finally:
            queued.end()

    # -- a loop of one's own

    def turn(
        self, id: str | None, *, history: Any = None, context: Rule | Chooser | None = None
    ) -> MemoryTurn:
        """Return one turn to be made by code of your own: what is in its list at the end is recorded.

            with memory.turn("user:42") as turn:
                turn.messages.append({"role": "user", "content": "Hi"})
                turn.note(messages=ask(turn.messages))

        `turn.messages` begins with what was said, as `context` shows it. When `with` is left by an exception nothing is
        recorded; when it is left without a reply, what was added is kept, and is the beginning of the next turn.
        Others of this process that begin a turn there meanwhile wait or are refused, as `busy` says; what other
        processes added meanwhile stays, and the turn is then a branch beside it.
        Args: history: the messages to begin with, instead of those that are remembered: then nothing is
        loaded and nothing is stored. context: for this turn; None: the memory's own.
        Raises: conversation-busy; as `save`; nothing is recorded then. store-gone: the conversation was deleted since
        it began. turn-state: what it began with was changed, and a turn of that was forgotten since.
        """
        return MemoryTurn(self, id, history, self._rule_for(context))

    # -- beside

    def conversation(self, id: str) -> Conversation:
        """Return the conversation of an id, for all that is not said here: its tree, branches, forgetting.

        Its own id (`conversation(id).id`) is what the store and the command line call it: small letters, digits, `-`
        and `.` stand for themselves, each other byte is `_` and two hex digits; a hash where that is too long.
        """
        chat = self._chat(id)
        return Conversation(chat._log, chat._view.at(Cursor()))

    def ids(self) -> list[str]:
        """Return the ids that conversations in the store were made by here, sorted.

        Raises: store-unsupported: the store does not list its conversations.
        """
        listed = getattr(loops.blocking(self.store), "conversations", None)
        if not callable(listed):
            raise StoreUnsupported(store=type(self.store).__name__, method="conversations")
        found = (self._key(conversation) for conversation in listed())
        return sorted(key for key in found if key is not None)

    # -- inside

    def _chat(self, id: str) -> Conversation:
        """Return an open conversation, from those that were used last."""
        conversation = ids.of_key(id)
        with self._own.lock:
            chat = self._opened.pop(conversation, None)
            if chat is None:
                chat = open(conversation, store=self.store, redact=self._redact)
            self._opened[conversation] = chat
            while len(self._opened) > MOST_OPEN:
                self._opened.popitem(last=False)
        return chat

    def _rule_for(self, context: Rule | Chooser | None) -> Rule | None:
        """Return the rule of one call."""
        return self._rule if context is None else _rule_of(context)

    def _shown(self, log: Log, rule: Rule | None) -> tuple[str | None, list[Any]]:
        """Return where everyone goes on, and the list that a turn begins with there."""
        history = log.read()
        last = _last(history)
        if rule is None:
            return last, self._told(log, transcript.listed(history, last))
        shown = history.shown(last, rule).messages
        return last, self._told(log, [*shown, *transcript.left(history, last)])

    def _told(self, log: Log, said: list[Message]) -> list[Any]:
        """Return messages as a list in the memory's form."""
        named = None if self._dialect is None else self._dialect.name
        told = telling.told(said, named, read=telling.reading(log))
        found: list[Any] = told["messages"] if isinstance(told, dict) else told
        return found

    def _append(
        self,
        id: str,
        messages: Any,
        model: str | None,
        usage: Any,
        rule: Rule | None,
        begun: Begun,
    ) -> list[Turn]:
        how: dict[str, Any] = {"model": model, "usage": usage, "rule": rule, "begun": begun}
        return self._sync(id, Wish(messages, self._dialect, behind=_last, whole=True, **how))

    def _delete(self, id: str) -> Any:
        conversation = ids.of_key(id)
        delete = getattr(loops.blocking(self.store), "delete", None)
        if not callable(delete):
            raise StoreUnsupported(store=type(self.store).__name__, method="delete")
        with self._own.lock:
            self._opened.pop(conversation, None)
        return delete(conversation)

    def _sync(self, id: str, wish: Wish) -> list[Turn]:
        chat = self._chat(id)
        view = chat._view.at(Cursor())
        view.refuse_nested()
        if ids.is_long_key(chat.id):
            chat._log.append(lambda history: _key_entry(history, id, view), begun=wish.begun)
        synced = chat._syncer.sync(view, wish)
        return [chat._turn(turn) for turn in synced.turns]

    def _is_free(self, id: str, begun: Begun) -> bool:
        """Say whether nothing runs where a turn would go.

        Raises: conversation-busy, if it is not to wait; store-gone: it was deleted meanwhile.
        """
        chat = self._chat(id)
        place = chat._view.at(Cursor()).place(chat._log.begin(begun), self._busy)
        if place.refusal is not None:
            asks = place.refusal.state == "waiting"
            place.refusal.advice = "or begin anew with `clear`" if asks else ADVICE
            raise place.refusal
        return place.waits_for is None

    def _queued(self, id: str) -> Queued:
        conversation = ids.of_key(id)
        wait = self._busy == "queue"
        return Queued((builtins.id(self.store), conversation), conversation, wait=wait)

    def _key(self, conversation: str) -> str | None:
        if not ids.is_long_key(conversation):
            return ids.key_of(conversation)
        kept = Log(self.store, conversation).read().entries(*KEY)
        spelled = kinds.payload(kept[0].data, kept[0].seq) if kept else None
        key = ids.key_of(spelled) if isinstance(spelled, str) else None
        return key if key and ids.of_key(key) == conversation else None


class MemoryTurnBase:
    """What a turn of one's own has, in either face: its list, where it goes, what came of it."""

    def __init__(self, memory: Memory, id: str | None, history: Any, rule: Rule | None) -> None:
        self._memory = memory
        self._rule = rule
        self._id = id if id and history is None else None
        self.messages: list[Any] = list(history) if history is not None else []
        """What was said before, then what this turn adds: append to it."""
        self._queued: Queued | None = None
        self._given: list[Any] = []
        self._base: str | None = None
        self._quoted = Quoted()
        self._reset()

    def _reset(self) -> None:
        self._begun = Begun()
        self._model: str | None = None
        self._usage: dict[str, int] = {}

    def _arrive(self) -> None:
        """Note which log it is to go into, before it waits for others."""
        assert self._id is not None
        self._reset()
        self._memory._chat(self._id)._log.begin(self._begun)

    def note(self, *, messages: Any = None, model: str | None = None, usage: Any = None) -> None:
        """Add what the model said to `messages`, and say which model answered and what it used.

        Args: messages: a message or a list of them, in the memory's form, or the whole reply that the provider's
        client gave: of that its message is added, and the model and the usage are taken, where none is given. model:
        the last one counts. usage: as for `record`; that of several is added up.
        Raises: import-invalid, record-invalid, TypeError: it is none of that; nothing was added.
        """
        current.check_model(model)
        counts = None if usage is None else taken(usage)
        dialect, added = self._memory._dialect, []
        if messages is not None:
            named = None if dialect is None else dialect.name
            said, added = replies.read(named, messages), replies.items(named, messages)
            model = said.model if model is None else model
            counts = said.usage if counts is None else counts
        self.messages += added
        self._model = self._model if model is None else model
        for name, count in (counts or {}).items():
            self._usage[name] = self._usage.get(name, 0) + count

    def _begin(self) -> None:
        """Take the list as it is, once nobody else makes a turn there."""
        assert self._id is not None
        log = self._memory._chat(self._id)._log
        with log.lock:
            self._base, self.messages = self._memory._shown(log, self._rule)
            line = log.history.upward(self._base) if self._rule is None else ()
            told = tuple(node.id for node in line if node.done)
        self._quoted = Quoted(told, "the list that the turn began with repeats it")
        self._given = list(map(exact_copy, self.messages))

    def _store(self) -> list[Turn]:
        """Record what the turn added; of a list whose beginning was changed, what of it is new."""
        assert self._id is not None
        count, base, dialect = len(self._given), self._base, self._memory._dialect
        how: dict[str, Any] = {"keep": True, "begun": self._begun}
        how |= {"model": self._model, "usage": self._usage or None}
        lead: list[Any] = []
        if self._given == self.messages[:count]:
            added = self.messages[count:]
        elif self._rule is None:
            whole = Wish(self.messages, dialect, "branch", quoted=self._quoted, **how)
            return self._memory._sync(self._id, whole)
        else:
            (_, _, begun), (_, lead, body) = parts(self._given), parts(self.messages)
            if body[: len(begun)] != begun:
                raise ValueError(
                    "the messages that the turn began with were changed, and are not all there were (`context`): "
                    "nothing was stored. Add behind them; to edit or shorten, hand the whole list to `save`"
                )
            added = body[len(begun) :]
        how |= {"behind": lambda history: _still(history, base), "lead": lead, "rule": self._rule}
        return self._memory._sync(self._id, Wish(added, dialect, "branch", **how))


class MemoryTurn(MemoryTurnBase):
    """One turn of an agent's loop, for `with`. Made by `Memory.turn`."""

    def __init__(self, memory: Memory, id: str | None, history: Any, rule: Rule | None) -> None:
        super().__init__(memory, id, history, rule)
        self.turns: list[Turn] = []
        """What was recorded of it, when `with` is left: one turn, usually."""

    def __enter__(self) -> Self:
        if self._id is None:
            return self
        self._queued = self._memory._queued(self._id)
        try:
            self._arrive()
            self._queued.free.result()
            while not self._memory._is_free(self._id, self._begun):
                self._memory._chat(self._id)._log.wait(WAIT_S)
            self._begin()
        except BaseException:
            self._queued.end()
            raise
        self._queued.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._queued is None:
            return
        try:
            if kind is None:
                self.turns = self._store()
        finally:
            self._queued.end()


def _rule_of(context: Rule | Chooser | None) -> Rule | None:
    rule = None if context is None else rules.of(context)
    if rule is not None and rule.summarizes:
        raise ValueError(
            "a memory makes no summaries; open the conversation with compacted(...) instead"
        )
    return rule


def _last(history: History) -> str | None:
    """Return the last turn of the list that everyone goes on from."""
    return nearest_done(history, history.head)


def _still(history: History, turn: str | None) -> str | None:
    """Return a turn, or where everyone goes on in a log that no longer has it."""
    known = turn is None or turn in history
    return nearest_done(history, turn) if known else _last(history)


def _cleared(history: History, now: Any) -> list[NewRecord]:
    records = commands.move_head(history, None, now=now)
    if not records and transcript.left(history, None):
        records = commands.entry(*LEFT, [], now=now)
    return records


def _key_entry(history: History, key: str, view: View) -> list[NewRecord]:
    if history.entries(*KEY):
        return []
    spelled = ids.escaped(key.encode("utf-8", "surrogatepass"))
    return commands.entry(*KEY, spelled, now=view.world.now())
