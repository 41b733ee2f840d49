"""Conversations, blocking: the public verbs over one log. The shell decides nothing.

Each verb reads the log, asks the commands what to append, appends it expecting the log it was
decided on, and asks again when the log grew. A conversation object is a view: it knows where it
continues from and which program answers; the memory is the log's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from types import EllipsisType
from typing import Any, cast

from ledger import collector
from ledger.errors import counted
from ledger.maker import Maker, Sending
from ledger.records.kinds import NewRecord
from ledger.stream import Stream
from ledger.syncing import Moved, Synced, Syncer, wish_of
from ledger.turn import Turn, outcome_of
from ledger.turns import (
    annotating,
    arrivals,
    carrying,
    commands,
    loops,
    receipts,
    rendering,
    resuming,
    stopping,
    telling,
)
from ledger.turns.attachments import Attachment
from ledger.turns.log import Log
from ledger.turns.receipts import Receipt
from ledger.turns.rendering import Rendered
from ledger.turns.resuming import Crew, Resumed, Resumption
from ledger.turns.view import Making, Siblings, TurnLike, View
from ledger.views import Diff, History, Lineage, Rule, drawing, rules
from ledger.views import diff as diffs
from ledger.views.place import Cursor
from ledger.views.rules import Chooser

WAIT_S = 0.25
"""How long a queued send waits before it looks again: a holder may have died, or it was cancelled."""


class Conversation:
    """A conversation as one caller sees it. Made by `ledger.open` and `continue_from`.

    Threads may share it. Called, it makes one turn with its program and returns the answer.
    """

    def __init__(self, log: Log, view: View) -> None:
        self._log = log
        self._view = view
        self._world = view.world
        self._maker = Maker(log, view)
        self._syncer = Syncer(log)

    @property
    def id(self) -> str:
        """The conversation's id: the same id in the same store is the same conversation."""
        return self._log.conversation

    @property
    def store(self) -> Any:
        """The store it is kept in."""
        return self._log.store

    # -- reading

    @property
    def turns(self) -> list[Turn]:
        """The turns from the first to where this view stands, in order."""
        history = self._log.read()
        at = self._view.cursor.resolve(history)
        return [] if at is None else self._turns(history.branch(at))

    def all_turns(self) -> list[Turn]:
        """Return every turn of every branch, in log order."""
        return self._turns(self._log.read().order)

    def turn(self, turn: TurnLike | None = None, *, request_id: str | None = None) -> Turn:
        """Return one turn: by id, by a part of an id that only one has, by ordinal (1 is first), or by request id.

        Raises: turn-unknown, saying how many fit. TypeError: not exactly one of the two is given.
        """
        history = self._log.read()
        if (turn is None) == (request_id is None):
            raise TypeError("a turn is named by its id or ordinal, or by its request_id")
        if request_id is not None:
            turn = self._view.sent_as(history, request_id)
        return self._turn(self._view.find(history, cast(TurnLike, turn)))

    @property
    def head(self) -> Turn | None:
        """The turn this view stands on; None: the conversation is empty.

        The next turn continues it, or its nearest ancestor that is done. Setting it is `set_head`.
        """
        history = self._log.read()
        at = self._view.cursor.resolve(history)
        return None if at is None else self._turn(at)

    @head.setter
    def head(self, turn: TurnLike | None) -> None:
        self.set_head(turn)

    def set_head(self, turn: TurnLike | None) -> None:
        """Make a turn the head for everyone who opens the conversation; this view continues from it.

        Args: turn: None: the place before the first turn: the next one starts a line of its own.
        """
        target = None if turn is None else self._view.find(self._log.read(), turn)
        self._log.append(lambda h: commands.move_head(h, target, now=self._world.now()))
        self._view.cursor = Cursor.start() if target is None else Cursor.exactly(target)

    def heads(self) -> list[Turn]:
        """Return the leaves of the tree, newest first, without failed and merged ones."""
        return [self._turn(t) for t in self._log.read().heads()]

    def lineage(self, turn: TurnLike) -> Lineage:
        """Return what a turn's answer rests on, how, and what it influenced."""
        history = self._log.read()
        return history.lineage(self._view.find(history, turn))

    def diff(self, a: TurnLike, b: TurnLike) -> Diff:
        """Compare two turns: what was asked and answered, word by word, the model, the settings, what each saw.

        They may be on one branch or on two. Returns: the differences; `str` of it tells them in lines.
        Raises: turn-unknown; store-corrupt, record-invalid: what is compared of them does not read.
        Not promised: words, where texts are very long and have little in common: then whole lines, or all of it.
        """
        with self._log.lock:  # All of it at one moment.
            history, dead = self._view.judged(self._log)
            one, other = (self._view.find(history, turn) for turn in (a, b))
            return diffs.diff(history, one, other, now=self._world.now(), dead=dead)

    def tree(self, *, width: int = 100) -> drawing.Tree:
        """Return the tree of turns as text: states, models, merges, ratings, labels, title, head; `str` of it.

        Its `mermaid()` is the same as a flowchart.
        """
        with self._log.lock:  # All of it at one moment.
            history, dead = self._view.judged(self._log)
            return drawing.tree(
                history,
                conversation=self.id,
                title=self.title,
                head=self._view.cursor.resolve(history),
                now=self._world.now(),
                width=width,
                dead=dead,
            )

    def render(self, *args: Any, **kwargs: Any) -> Rendered:
        """Return what the next turn would be shown; nothing is recorded, and nothing is sent.

        With arguments they are bound as a send would bind them (`context` too): then its `messages(...)` is the list
        that the program would have to send to a model. A turn that is still running is passed over: what is shown is
        the nearest turn that is done. A summary that the next send would have made first is not made here: its
        turns are in `to_summarize`.
        """
        return Rendered(**rendering.parts(self._log, self._view, args, kwargs))

    def messages(
        self,
        format: str | None = None,
        *,
        context: Rule | Chooser | None = None,
        instructions: str | None = None,
        strict: bool = False,
    ) -> Any:
        """Return what the next turn would be shown, as messages for a model; nothing is recorded.

        The instructions in force stay first, whatever the context shows: the messages of a system or developer
        with which the branch begins, or those that led a list that was handed over since. A
        summary that the next send would have made first is not made here: its turns stand in its place.
        Args: format: `openai`, `openai-responses`, `anthropic` or `pydantic-ai`; None: neutral messages. context: as
        for `open`; None: the conversation's own. instructions: text to begin with, by the system. strict: refuse
        what the provider cannot be told; else it is left out, with a `LossWarning`.
        Raises: ValueError: there is no such format. messages-lossy; store errors.
        """
        history = self._log.read()
        rule = self._view.rule if context is None else rules.of(context)
        shown = history.shown(self._view.place(history, "branch").parent, rule)
        how: dict[str, Any] = {"instructions": instructions, "strict": strict}
        return telling.told(shown.messages, format, read=telling.reading(self._log), **how)

    # -- going on elsewhere

    def continue_from(self, turn: TurnLike | None) -> Conversation:
        """Return a view that continues from exactly this turn, also when it is the newest.

        Both paths are kept and nothing is copied; the next turn of that view is a new branch.
        Args: turn: None: before the first turn, so that the next one starts a line of its own.
        """
        at = Cursor.start()
        if turn is not None:
            at = Cursor.exactly(self._view.find(self._log.read(), turn))
        return Conversation(self._log, self._view.at(at))

    # -- making turns

    def __call__(self, *args: Any, request_id: str | None = None, **kwargs: Any) -> Any:
        """Make one turn with the program and return its answer.

        Raises: what the program raises, after the turn is recorded `failed`; the errors of `send`.
        """
        sending = self._maker.prepare(args, kwargs, request_id)
        return carrying.through([sending], lambda: self._answer(sending))

    def send(self, *args: Any, request_id: str | None = None, **kwargs: Any) -> Turn:
        """Make one turn with the program and return the turn.

        Args: the program's inputs; a keyword that is no input is a setting of this turn (`lm`, and
        those the conversation was opened with). messages: the user side as neutral messages, where the
        inputs do not say all of it (pictures, instructions); the program finds it in
        `current().messages()`. context, approve: as for `open`, of this turn only; None: the conversation's own;
        `approve=[]` asks nobody. expect: the turn that its sender saw as the newest here (None: none); behind
        another one it is refused. Of these four an input or a setting of the name comes first. request_id: sent
        again, it is the same turn, whatever its place and settings: its recorded outcome, nothing new; this view
        then goes on from it, as after the first call.
        Raises: what the program raises, after the turn is recorded `failed`. TypeError: the inputs
        do not fit; nothing was recorded. conversation-busy, conversation-moved, conversation-nested,
        conversation-signature, request-mismatch, record-invalid, record-too-large, store errors; store-gone.
        """
        sending = self._maker.prepare(args, kwargs, request_id)
        carrying.through([sending], lambda: self._answer(sending))
        return self._turn(sending.start.made)

    def stream(self, *args: Any, request_id: str | None = None, **kwargs: Any) -> Stream:
        """Make one turn and give its answer in pieces, as the program says them.

            with chat.stream("Tell me a story.") as s:
                for piece in s:
                    print(piece, end="")

        Args, Raises: as `send`; what the program raises is raised by `s.result` and by iterating.
        Returns: the stream; `s.turn` is recorded by then. Leaving `with` before the end stops the
        turn; without `with`, the turn runs to its end, read or not. Sent again under a request id,
        the stream follows the turn that was sent first, and leaving it stops nothing.
        """
        sending = self._maker.prepare(args, kwargs, request_id)
        return carrying.through([sending], lambda: self._streamed(sending))

    def regenerate(
        self, turn: TurnLike, /, *args: Any, request_id: str | None = None, **kwargs: Any
    ) -> Turn:
        """Ask again what a turn was asked, beside it, and return the new turn; what was there stays.

        The same inputs and the same user side (`messages`) at the same parent; the settings are this view's, as for
        any send. This view then goes on from the new turn. The old one may still run.
        Args: turn: any turn, however it ended. The rest as for `send`: an input that is given replaces the turn's (an
        edit), in its messages too; messages: another user side; None: the inputs alone.
        Raises: as `send`. TypeError: the program does not take an input of the turn; a text that is given stands
        nowhere in the messages that the turn was sent with. turn-unknown. turn-state: it was forgotten, also meanwhile;
        or its messages are instructions and a greeting, and nobody asked anything.
        """
        sending = self._maker.again(turn, args, kwargs, request_id)
        carrying.through([sending], lambda: self._answer(sending))
        return self._turn(sending.start.made)

    def regenerate_stream(
        self, turn: TurnLike, /, *args: Any, request_id: str | None = None, **kwargs: Any
    ) -> Stream:
        """Ask again what a turn was asked, as `regenerate`, and give the answer in pieces, as `stream`."""
        sending = self._maker.again(turn, args, kwargs, request_id)
        return carrying.through([sending], lambda: self._streamed(sending))

    def tries(
        self,
        *args: Any,
        settings: Sequence[Mapping[str, Any]],
        request_id: str | None = None,
        **kwargs: Any,
    ) -> list[Turn]:
        """Ask the same once per settings, side by side: turns that share their parent.

            chat.tries("Why is 1/3 bigger than 1/4?", settings=[{"lm": "a"}, {"lm": "b"}])

        All run at once. One that fails is a turn that is `failed`; the others go on. This view stays
        where it was, so that the next send, or a merge of these, continues from there; who opens the
        conversation afterwards goes on from the one that was recorded last: merge, or set `head`.
        Args: settings: of each turn, over the conversation's own; what the program finds in
        `current().settings`. The rest goes to the program (its own parameter `settings`, if it has one,
        by its place). request_id: the turns are made under `<request_id>#1`, `#2`, ...; asked again, they are the same.
        Returns: the turns, ended, in the order of `settings`.
        Raises: as `send`, before any program runs.
        """
        if not settings:
            return []
        under = Siblings()
        sendings = self._maker.tries(args, kwargs, settings, under, request_id)

        def all_of_them() -> None:
            for sending in sendings:
                self._begin(sending)
            self._maker.stay(under)
            for sending in sendings:
                if sending.run is not None:
                    sending.run.wait()
                else:
                    self._turn(sending.start.made).wait()

        carrying.through(sendings, all_of_them)
        return [self._turn(sending.start.made) for sending in sendings]

    def stop(self, turn: TurnLike | None = None, *, request_id: str | None = None) -> None:
        """Stop a turn, wherever it runs: within a second it ends `stopped`, its caller gets Cancelled.

        A turn that waits or was interrupted has nobody to stop: it ends `abandoned`. One that ended stays as it is.
        Args: turn: None: the one this view stands on. request_id: the turn that was sent under it, and
        sends of this process that still wait under it: these are cancelled, and record nothing.
        Raises: turn-unknown: there is no such turn, and no such send.
        """
        if request_id is not None:
            waits = arrivals.cancel(self.id, request_id)
            history = self._log.read()
            if waits and history.request(request_id) is None:
                return
            turn = self._view.sent_as(history, request_id)
        if turn is None:
            at = self.head
            if at is None:
                return
            turn = at
        stopping.stop(self._log, self._view, self._view.find(self._log.read(), turn))

    def record(
        self,
        inputs: Mapping[str, Any] | str,
        outputs: Mapping[str, Any] | str,
        *,
        parent: TurnLike | EllipsisType | None = ...,
        expect: TurnLike | EllipsisType | None = ...,
        model: str | None = None,
        usage: Any = None,
        saw: Iterable[TurnLike] | None = None,
        messages: list[dict[str, Any]] | None = None,
        request_id: str | None = None,
    ) -> Turn:
        """Record a turn that was made elsewhere; it is done at once.

        Args: inputs, outputs: by name; plain text stands for {"message": ...} and {"result": ...}.
        parent: the turn it continues, which must be done; None: it starts a line of its own; left
        out: where this view continues. usage: token counts by name, whole numbers, or the usage of a
        provider's reply, as its client gives it or as data. saw: the turns it was shown; None: those
        this view's context shows there. messages: the whole exchange in the neutral form: the user
        side first, then all that came after. expect, request_id: as for `send`.
        Raises: turn-state: the parent is not done. Else as `send`, but for what the program raises.
        """
        how: dict[str, Any] = {"parent": parent, "model": model, "usage": usage, "saw": saw}
        how |= {"messages": messages, "request_id": request_id, "expect": expect}
        making = self._maker.recording(inputs, outputs, **how)
        return self._make(making)

    def sync(
        self,
        messages: Any,
        *,
        format: str | None = None,
        moved: Moved = "refuse",
        expect: TurnLike | EllipsisType | None = ...,
        model: str | None = None,
        usage: Any = None,
    ) -> Synced[Turn]:
        """Hand over a whole list of messages, as frameworks do each time; what it has that is new is recorded.

        The list is cut into turns and followed as far as the turns that are known say the same. The rest is
        recorded behind them, in one append: a list that goes on gives new turns; one that departs (an edit,
        another answer) gives a branch, and what was there stays; one that says nothing new gives nothing.
        This view then stands on the list's last whole turn, and follows what others add behind it; what follows that
        turn in the list is not recorded yet.
        Leading system and developer messages are not compared: changed ones are no edit, and are kept with
        the next new turn.
        Args: messages: the whole list, the first message first; objects that have `model_dump` are taken as
        what it gives. format: whose form it has: `openai`, `openai-responses`, `anthropic`, `pydantic-ai`;
        None: neutral. moved: what to do when others added turns behind the one that the list goes on from:
        `refuse`, or keep both: `branch`. expect: the turn that is to be the newest there (None: none);
        left out: the one that this view's last turn or list made it stand on, if there was one. model,
        usage: of the newest turn, when it is new, as in `record`.
        Returns: the new turns, the turn the view stands on, the messages behind it, and whether it branched.
        Raises: conversation-moved, and conversation-busy for a turn that runs there, unless `moved` is
        `branch`. import-invalid, record-invalid, naming the message; store errors. Nothing is recorded then.
        Not promised: that a list which lacks its first messages is known again: it begins a line of its own.
        """
        self._view.refuse_nested()
        wish = wish_of(messages, format, moved, expect=expect, model=model, usage=usage)
        return self._syncer.sync(self._view, wish).map(self._turn)

    def merge(
        self,
        turns: Sequence[TurnLike],
        by: Callable[..., Any],
        *,
        onto: TurnLike | EllipsisType | None = ...,
        request_id: str | None = None,
        **inputs: Any,
    ) -> Turn:
        """Make one turn from the answers of several; this view then continues from it.

        Turns that still run are waited for. Then `by` runs, which may be async; what it notes with
        `ledger.current().note(...)` is the merge's. Then the turn and its answer are recorded in one append.
        Args: turns: what is merged; each must be done, or run and end so. by: a callable given the answers (see
        `ledger.merging`), such as `merging.pick(turn)`; `inputs` go to its other parameters by
        name. One named `base` gets the answer of the turn where they part. onto: the turn it lands on;
        left out: the parent the merged turns share, else their nearest common ancestor that is none of
        them; None: it starts a line of its own. request_id: asked again, it is the same merge: in this process `by`
        runs once; of two processes that ask at once, both may run it, and one merge is recorded.
        Raises: turn-state: one has no answer and will have none, or was forgotten before `by` was done. turn-unknown,
        request-mismatch; what `by` raises. Then nothing is recorded.
        """
        self._view.refuse_nested()
        merging = self._maker.merging(turns, by, onto, inputs, request_id)
        with merging.waiting() as queued:
            if queued is not None:
                queued.free.result()
                queued.begin()
            while not merging.is_ready():
                self._log.wait(WAIT_S)
            if merging.making.repeats is None:
                with merging.at_work():
                    value = merging.by(**merging.arguments)
                    if inspect.isawaitable(value):
                        value = loops.result_of(value, loops.background())
                merging.making.give(value)
            return self._make(merging.making)

    def resume_all(self, *, at_once: int = 32) -> Resumed[Turn]:
        """Go on with every turn that was interrupted, or that waited and has its answers.

        Those that somebody else goes on with, that need a person first (`Turn.waiting`, `Turn.unfinished`), that
        another program made, or that this one gave back (turn-changed), are left.
        Unless a holder is known dead, its log is watched for 12 s first.
        Args: at_once: how many programs run at once, at most.
        Returns: the turns that were gone on with here, as they are now: one that failed is `failed`; its
        `left` says of the others why, by their ids.
        """
        self._view.refuse_nested()
        found, left = resuming.resumable(self._log, self._view)
        resumptions = [Resumption(self._log, self._view, turn) for turn in found]
        crew = Crew(resumptions, copy_context(), at_once=at_once)
        resuming.finish(crew)
        return Resumed([self._turn(each.turn) for each in crew.resumed], {**left, **crew.left})

    # -- beside the turns

    @property
    def title(self) -> str | None:
        """The conversation's title, or None. Setting it keeps a new one, of one line; the old ones stay."""
        return commands.title(self._log.read())

    @title.setter
    def title(self, text: str) -> None:
        self.set_title(text)

    def set_title(self, text: str) -> None:
        """Give the conversation a title: one line; the old ones stay in its log. Raises: TypeError, ValueError."""
        annotating.entitle(self._log, self._view, text)

    @property
    def labels(self) -> list[str]:
        """The labels on the conversation itself, in the order in which they were put on."""
        return self._log.read().labels()

    def label(self, text: str) -> None:
        """Put a label on the conversation: one line of at most 100 characters. One that it has stays as it is.

        Raises: TypeError, ValueError: this cannot be a label.
        """
        annotating.label(self._log, self._view, None, text, on=True)

    def unlabel(self, text: str) -> None:
        """Take a label off the conversation; one that it does not have is no error. Raises: as `label`."""
        annotating.label(self._log, self._view, None, text, on=False)

    def entries(self, plugin: str, kind: str) -> list[dict[str, Any]]:
        """Return what a plugin kept on this view's branch, oldest first: `seq`, `at`, `turn`, `data`."""
        return annotating.entries(self._log, self._view, plugin, kind)

    def keep_entry(
        self, plugin: str, kind: str, data: Any, *, turn: TurnLike | None = None
    ) -> None:
        """Keep something beside the turns, never shown to a model by itself.

        Args: plugin, kind: whose it is and what. data: any value that can be kept exactly. turn: it
        belongs to the branches through this turn; None: to every branch.
        """
        annotating.keep(self._log, self._view, plugin, kind, data, turn)

    # -- attachments

    def attachments(self) -> list[Attachment]:
        """Return every attachment that the conversation's records name, each once, oldest first.

        Reads the whole log. Not promised: that their bytes are there; reading them tells.
        """
        return self._log.attachments()

    def attachment(self, named: str | Mapping[str, Any]) -> Attachment:
        """Return an attachment of the conversation.

        Args: named: its SHA-256, or a part of it that only one begins with; its file name; or a reference
        as messages have it, `{"$attachment": {...}}`.
        Raises: LookupError: none is meant, or several.
        """
        return self._log.attachment(named)

    # -- forgetting

    def forget(self, turn: TurnLike) -> Receipt:
        """Take out what a turn said, for good, and leave its place in the tree.

        Its inputs, outputs, messages, steps and errors go from the log, with the entries at it or
        about it, its events, and attachments that nothing else names. It ends `abandoned`, its id,
        parent and children stay; the turns after it are not changed. A turn that is interrupted is
        ended first. Forgetting again is no error, and takes what was added since.
        Returns: what went, and what cannot be promised (backups, merges and later turns that repeat it).
        Raises: turn-unknown. turn-state: it runs or waits. store-unsupported, store errors: once the
        store has decided the erasure every reader sees it, and the next writer finishes it.
        Not promised: that another process which has the conversation open forgets what it has read; that its request
        id is known any more: the same request, if it comes again, runs anew.
        """
        view = self._view
        target = view.find(self._log.read(), turn)

        def settle(history: History) -> list[NewRecord]:
            now, dead = view.world.now(), view.dead(history, target)
            return commands.settle(history, target, now=now, dead=dead)

        before, erased = self._log.erase(target, settle)
        return receipts.receipt(before, erased)

    # -- inside

    def _begin(self, sending: Sending) -> None:
        """Record a turn once its place is free, and start its program; or find the turn it repeats."""
        self._view.refuse_nested()
        context = copy_context()
        with stopping.waiting(sending.start, self._log):
            while not carrying.begin(sending, context):
                self._until_next(sending.start)

    def _answer(self, sending: Sending) -> Any:
        """Make a turn, and return what its program returns; of one that it repeats, what was recorded."""
        self._begin(sending)
        if sending.run is not None:
            return sending.run.result()
        turn = self._turn(sending.start.made)
        turn.wait()
        return outcome_of(turn)

    def _streamed(self, sending: Sending) -> Stream:
        self._begin(sending)
        return Stream(self._turn(sending.start.made), sending.run)

    def _make(self, making: Making) -> Turn:
        """Append a turn in the making once its place is free; of one that it repeats, raise why it has no answer."""
        self._view.refuse_nested()
        with stopping.waiting(making, self._log):
            while (turn := self._maker.step(making)) is None:
                self._until_next(making)
        made = self._turn(turn)
        if making.repeats is not None:
            made.wait()
            outcome_of(made)
        return made

    def _until_next(self, making: Making) -> None:
        """Wait until it is worth asking again: the log changed, or the summary is made that it wants."""
        if making.wants is None:
            self._log.wait(WAIT_S)
            making.rests = None
            return
        summarizing = self._maker.summarizing(making)
        with summarizing.making():
            text = summarizing.by(*summarizing.arguments)
            if inspect.isawaitable(text):
                text = loops.result_of(text, loops.background())
        summarizing.keep(text)

    def _turn(self, turn: str) -> Turn:
        return Turn(self._log, self._view, turn)

    def _turns(self, turns: Iterable[str]) -> list[Turn]:
        named = list(turns)  # The history may grow meanwhile.
        return collector.wait_for(
            lambda: [Turn(self._log, self._view, turn) for turn in named], count=len(named)
        )

    def __repr__(self) -> str:
        history = self._log.read()
        program = self._view.program
        name = program.description.name if program is not None else "no program"
        return f"<Conversation {self.id} with {name}: {counted(len(history), 'turn')}>"
