"""Takes messages in: once each, several short ones as one, a newer one before an older."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from typing import TypeVar

import structlog

from broker.port import Accepted, Broker, Duplicate
from envelope.question import Question
from gateway.desk import Desk, Message
from gateway.errors import BusyError, MessageError
from gateway.pushing.bursts import BURST, VERSION, Bursts, digest, first_version
from gateway.pushing.errors import NeverError, PushError, SkippedError
from gateway.pushing.losses import Losses
from gateway.pushing.patience import patiently
from gateway.pushing.port import Channel, Incoming, Manners, PushMemory, Texts

log = structlog.get_logger("gateway")
T = TypeVar("T")
Spawn = Callable[[Coroutine[None, None, None]], None]


class Intake:
    """The way in; `spawn` runs what the platform need not wait for."""

    def __init__(
        self,
        desk: Desk,
        broker: Broker,
        memory: PushMemory,
        channel: Channel,
        texts: Texts,
        manners: Manners,
        losses: Losses,
        *,
        spawn: Spawn,
    ) -> None:
        self._desk = desk
        self._broker = broker
        self._memory = memory
        self._channel = channel
        self._texts = texts
        self._manners = manners
        self._losses = losses
        self._spawn = spawn
        self._bursts = Bursts(memory)

    async def accept(self, incoming: Incoming) -> None:
        """Take a message in; when this returns, its outcome no longer depends on this process.

        Raises what the broker and the memory raise: then the platform is to send it again.
        """
        language = await self.language(incoming.question, incoming.language)
        root = first_version(incoming)
        known = await self._memory.fields(root)
        if not await self._bursts.takes(incoming, known):
            return
        burst = known.get(BURST, root.message_id)
        if incoming.alone or incoming.command is not None:
            if incoming.edits is not None:
                await self._without(root, burst, language, incoming)
            await self._ask(incoming, language, incoming.question.message_id)
        elif incoming.edits is None:
            await self._bursts.begin(incoming, burst)
            await self._ask(incoming, language, burst)
        else:
            await self._bursts.change(incoming, burst)
            await self._ask_again(incoming, language, burst)

    async def withdraw(self, question: Question, message_id: str) -> None:
        """Take a message back, edited versions too; `question` asks what is left of its burst."""
        root = question.model_copy(update={"message_id": message_id})
        known = await self._memory.fields(root)
        await self._bursts.take_back(root)
        burst = known.get(BURST, message_id)
        language = known.get("language", self._manners.default_language)
        await self._without(root, burst, language, Incoming(question, "", {}, order=0.0))

    async def _without(self, root: Question, burst: str, language: str, incoming: Incoming) -> None:
        """Take a message out of its burst, and ask the rest again unless that has its outcome."""
        await self._bursts.take_out(root, burst)
        open_ = await self._opened(root, burst)
        if not open_:
            return
        rest = incoming
        if incoming.edits is not None:
            id_ = f"{incoming.question.message_id}{VERSION}rest"
            rest = replace(incoming, question=root.model_copy(update={"message_id": id_}))
        plain = replace(rest, order=max(open_.values()), edits=None, command=None, fixed="")
        await self._ask_again(plain, language, burst)

    async def _ask_again(self, incoming: Incoming, language: str, burst: str) -> None:
        """Ask a burst as it is now, in the place of what was asked of it."""
        question = incoming.question
        begun = BURST in await self._memory.fields(question)
        if begun and not await self._bursts.asks(question, burst):
            return
        await self._bursts.hand(question, burst)
        parts = await self._bursts.parts(question, burst)
        for open_id in await self._opened(question, burst):
            if open_id != question.message_id:
                await self._cancel(question.model_copy(update={"message_id": open_id}))
        if not parts:
            return
        text = "\n".join(part.text for part in parts.values())
        first = question.model_copy(update={"message_id": next(iter(parts))})
        post = (await self._memory.fields(first)).get("post")
        whole = replace(incoming, text=text, post=json.loads(post) if post else incoming.post)
        await self._ask(whole, language, burst)

    async def _ask(self, incoming: Incoming, language: str, burst: str) -> None:
        question = incoming.question
        await self._memory.note(
            question,
            post=json.dumps(dict(incoming.post)),
            language=language,
            fixed=incoming.fixed,
            latest=digest(incoming.text),
            **{BURST: burst},
        )
        await self._memory.open(question, incoming.order)
        try:
            accepted = await self._desk.submit(self._message(incoming, language))
        except (BusyError, MessageError) as error:
            await self._refused(incoming, language, error)
            return
        if isinstance(accepted, Accepted):
            await self._accepted(incoming, language, accepted)
        elif accepted.reply is not None:
            await self._memory.close(question)
        if (joined := _joined(accepted)) is not None:
            into = question.model_copy(update={"message_id": joined})
            is_new = isinstance(accepted, Accepted)
            await self._join(incoming, language, burst, into, is_new=is_new)
        elif not await self._bursts.asks(question, burst):
            await self._cancel(question)

    async def _join(
        self, incoming: Incoming, language: str, burst: str, into: Question, *, is_new: bool
    ) -> None:
        """Make a message part of the burst that it joined."""
        question = incoming.question
        other = await self._bursts.of(into)
        if other != burst:
            await self._bursts.add(question, burst, other)
        elif not is_new:
            return
        # What is of a burst must not join what asks it anew: that says everything already. And a
        # burst may have been asked anew before this message was known to be part of it.
        if other == burst or not await self._bursts.asks(into, other):
            id_ = f"{question.message_id}{VERSION}joined"
            again = replace(incoming, question=question.model_copy(update={"message_id": id_}))
            await self._ask_again(replace(again, edits=None, alone=True), language, other)
        if other != burst:
            await self._bursts.move(question, burst, other)

    async def _opened(self, question: Question, burst: str) -> dict[str, float]:
        """Return the open questions of a burst with their order."""
        opened = await self._memory.opened(question)
        return {
            id_: order
            for id_, order in opened.items()
            if await self._bursts.of(question.model_copy(update={"message_id": id_})) == burst
        }

    async def _cancel(self, question: Question) -> None:
        """Cancel a question as if it had not been asked."""
        await self._memory.note(question, withdrawn="1")
        await self._broker.cancel(question)

    async def language(self, question: Question, told: str | None) -> str:
        """Return the language to speak before an answer tells it."""
        known = (await self._memory.about(question)).get("language")
        return known or told or self._manners.default_language

    def _message(self, incoming: Incoming, language: str) -> Message:
        alone = incoming.alone or incoming.command is not None
        return Message(
            incoming.text,
            incoming.question.conversation_id,
            incoming.question.message_id,
            command=incoming.command,
            arguments=incoming.arguments,
            language=language,
            not_before_seconds=0.0 if alone else self._manners.burst_seconds,
        )

    async def _accepted(self, incoming: Incoming, language: str, accepted: Accepted) -> None:
        question = incoming.question
        if accepted.merged_into is not None:
            await self._memory.close(question)
            return
        text = "push_working"
        if accepted.waiting and self._manners.supersedes and incoming.command is None:
            await self._supersede(incoming)
        elif accepted.waiting:
            text = "push_waiting"
        self._spawn(self._begin(incoming, self._texts.text(text, language), language))

    async def _supersede(self, incoming: Incoming) -> None:
        for message_id, order in (await self._memory.opened(incoming.question)).items():
            if order < incoming.order and message_id != incoming.question.message_id:
                older = incoming.question.model_copy(update={"message_id": message_id})
                await self._broker.cancel(older)

    async def _begin(self, incoming: Incoming, text: str, language: str) -> None:
        """Show that somebody works; the outcome comes also when nothing of this succeeds."""
        question, post = incoming.question, incoming.post
        await self._signed(question, post)
        known = await self._memory.fields(question)
        posted = known.get("0")
        if posted is None and "done" not in known:
            posted = await self._tried(
                "placeholder", lambda: self._channel.placeholder(post, text, soon=True)
            )
            if posted is not None and await self._is_of_no_use(question, posted):
                await self._tried("remove", lambda: self._channel.remove(post, str(posted)))
                posted = None
        self._spawn(self._losses.watch(incoming, language, posted))
        await self._keep_working(incoming)

    async def _is_of_no_use(self, question: Question, posted: str) -> bool:
        """Keep the id of a placeholder; whether another stands, or none is wanted any more."""
        if await self._memory.first(question, "0", posted) != posted:
            return True
        known = await self._memory.fields(question)
        return "withdrawn" in known and "done" in known

    async def _signed(self, question: Question, post: Mapping[str, str]) -> None:
        """Set the sign, or keep that there is none to take away."""
        try:
            await patiently(lambda: self._channel.working(question, post), what="working")
        except SkippedError:
            await self._memory.note(question, unsigned="1")
        except PushError as error:
            self._warn("working", error)

    async def _keep_working(self, incoming: Incoming) -> None:
        """Show a sign that fades until the outcome is shown, here or by another process."""
        question, post = incoming.question, incoming.post
        until = time.monotonic() + self._manners.deadline_seconds
        while "done" not in await self._memory.fields(question):
            if self._channel.sign_seconds is None or time.monotonic() > until:
                return
            await asyncio.sleep(self._channel.sign_seconds)
            if "done" not in await self._memory.fields(question):
                await self._tried("working", lambda: self._channel.working(question, post))
        else:
            await self._tried("rested", lambda: self._channel.rested(question, post))

    async def _tried(self, what: str, call: Callable[[], Awaitable[T]]) -> T | None:
        try:
            return await patiently(call, what=what)
        except SkippedError:
            return None
        except PushError as error:
            self._warn(what, error)
            return None

    def _warn(self, call: str, error: PushError) -> None:
        log.warning("platform_refused", call=call, channel=self._channel.name, error=str(error))

    async def _refused(
        self, incoming: Incoming, language: str, error: BusyError | MessageError
    ) -> None:
        """Say that a message was not accepted, once."""
        question = incoming.question
        await self._memory.close(question)
        name = "\x1f".join((*question.conversation, question.message_id))
        if not await self._memory.claim(f"refused\x1f{name}"):
            return
        key = "push_busy" if isinstance(error, BusyError) else "push_too_long"
        text = self._texts.text(key, language)
        try:
            await patiently(lambda: self._channel.placeholder(incoming.post, text), what=key)
        except NeverError as never:
            self._warn(key, never)


def _joined(accepted: Accepted | Duplicate) -> str | None:
    """Return the message that one joined, now or when it was told before."""
    if isinstance(accepted, Accepted):
        return accepted.merged_into
    joined = (accepted.reply or {}).get("merged_into")
    return joined if isinstance(joined, str) else None
