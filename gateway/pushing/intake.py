"""Takes messages in: once each, several short ones as one, a newer one before an older."""

import asyncio
import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TypeVar

import structlog

from broker.port import Accepted, Broker
from envelope.question import Question
from gateway.desk import Desk, Message
from gateway.errors import BusyError, MessageError
from gateway.pushing.errors import NeverError, PushError, SkippedError
from gateway.pushing.patience import patiently
from gateway.pushing.port import Channel, Incoming, Manners, PushMemory, Texts

log = structlog.get_logger("gateway")
VERSION = ":"
"""Between a message's id and what tells its edits apart."""
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
        *,
        spawn: Spawn,
    ) -> None:
        self._desk = desk
        self._broker = broker
        self._memory = memory
        self._channel = channel
        self._texts = texts
        self._manners = manners
        self._spawn = spawn

    async def accept(self, incoming: Incoming) -> None:
        """Take a message in; when this returns, its outcome no longer depends on this process.

        Raises what the broker and the memory raise: then the platform is to send it again.
        """
        question = incoming.question
        language = await self.language(question, incoming.language)
        if incoming.edits is not None and not await self._was_changed(incoming):
            return
        await self._memory.note(
            question,
            post=json.dumps(dict(incoming.post)),
            language=language,
            fixed=incoming.fixed,
        )
        if incoming.edits is not None:
            await self.withdraw(question, incoming.edits)
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

    async def withdraw(self, question: Question, message_id: str) -> None:
        """Cancel a message, edited versions too, as if it had not been asked."""
        for open_id in await self._memory.opened(question):
            if open_id == message_id or open_id.startswith(f"{message_id}{VERSION}"):
                gone = question.model_copy(update={"message_id": open_id})
                if gone != question:
                    await self._memory.note(gone, withdrawn="1")
                    await self._broker.cancel(gone)

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

    async def _was_changed(self, incoming: Incoming) -> bool:
        """Whether an edit changed the words: platforms tell of previews too."""
        root = incoming.question.model_copy(update={"message_id": incoming.edits})
        before = (await self._memory.fields(root)).get("latest")
        if before == _digest(incoming.text):
            # Unless this very edit was told before and not taken in.
            return bool(await self._memory.fields(incoming.question))
        await self._memory.note(incoming.question, edits=root.message_id)
        await self._memory.note(root, latest=_digest(incoming.text))
        return True

    async def _accepted(self, incoming: Incoming, language: str, accepted: Accepted) -> None:
        question = incoming.question
        if incoming.edits is None:
            await self._memory.note(question, latest=_digest(incoming.text))
        if accepted.merged_into is not None:
            await self._memory.close(question)
            return
        text = "push_working"
        if accepted.waiting and self._manners.supersedes and incoming.command is None:
            await self._supersede(incoming)
        elif accepted.waiting:
            text = "push_waiting"
        self._spawn(self._begin(incoming, self._texts.text(text, language)))

    async def _supersede(self, incoming: Incoming) -> None:
        for message_id, order in (await self._memory.opened(incoming.question)).items():
            if order < incoming.order and message_id != incoming.question.message_id:
                older = incoming.question.model_copy(update={"message_id": message_id})
                await self._broker.cancel(older)

    async def _begin(self, incoming: Incoming, text: str) -> None:
        """Show that somebody works; the outcome comes also when nothing of this succeeds."""
        question, post = incoming.question, incoming.post
        await self._signed(question, post)
        known = await self._memory.fields(question)
        if "0" not in known and "done" not in known:
            posted = await self._tried(
                "placeholder", lambda: self._channel.placeholder(post, text, soon=True)
            )
            if posted is not None and await self._is_of_no_use(question, posted):
                await self._tried("remove", lambda: self._channel.remove(post, posted))
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


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]
