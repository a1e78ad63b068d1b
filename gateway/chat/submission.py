"""Submits one question to the desk, once, and shows that it is being processed.

An interval of `appendfsync everysec`, a failover or `FLUSHALL` may lose a question together with
the place of its answer. The process that accepted the message still knows both.
"""

import json
from collections.abc import Awaitable, Callable, Coroutine

from broker.result_list import Result
from broker.values import Accepted, Duplicate
from envelope.question import Question
from envelope.texts import Texts
from gateway import answer
from gateway.chat.chat_groups import MembershipError
from gateway.chat.coalescing import BURST, digest, forgotten
from gateway.chat.errors import PermanentError
from gateway.chat.people import People
from gateway.chat.placeholder import DraftPosts, TypingIndicator
from gateway.chat.platform_calls import retry
from gateway.chat.ports import Channel, ChatPolicy, Incoming, PushMemory
from gateway.desk import Desk, Message
from gateway.errors import BusyError, GatewayError, MessageError

Spawn = Callable[[Coroutine[None, None, None]], None]

Show = Callable[[Result], Awaitable[None]]


class Losses:
    """Waits for the end of questions independently of the result list, and shows lost ones."""

    def __init__(self, desk: Desk, memory: PushMemory, show: Show) -> None:
        self._desk = desk
        self._memory = memory
        self._show = show

    async def watch(self, incoming: Incoming, language: str, posted: str | None) -> None:
        """Wait until a question has ended; edit its placeholder if no other process will."""
        question = incoming.question
        reply = await self._desk.outcome(question, language=language)
        match reply.get("termination_reason"):
            case answer.LOST:
                end = Result("0-0", 0, question, str(reply["outcome"]), reply, 1)
            case answer.FORGOTTEN if "done" not in await self._memory.fields(question):
                # It was removed from the result list before a process showed it.
                end = forgotten(question)
            case _:
                return
        post = json.dumps(dict(incoming.post))
        await self._memory.note(question, post=post, language=language, fixed=incoming.fixed)
        if posted is not None:
            await self._memory.first(question, "0", posted)
        await self._show(end)


class MessageSubmitter:
    """Submits questions; `spawn` runs the tasks that the platform need not wait for."""

    def __init__(
        self,
        desk: Desk,
        memory: PushMemory,
        channel: Channel,
        texts: Texts,
        policy: ChatPolicy,
        *,
        signs: TypingIndicator,
        losses: Losses,
        drafts: DraftPosts,
        people: People,
        spawn: Spawn,
    ) -> None:
        self._desk = desk
        self._memory = memory
        self._channel = channel
        self._texts = texts
        self._policy = policy
        self._signs = signs
        self._losses = losses
        self._drafts = drafts
        self._people = people
        self._spawn = spawn

    async def open(self, incoming: Incoming, language: str, burst: str) -> None:
        """Store where the answer belongs, and that there is none yet; may be repeated."""
        await self._memory.note(
            incoming.question,
            post=json.dumps(dict(incoming.post)),
            language=language,
            fixed=incoming.fixed,
            latest=digest(incoming.text),
            person=self._people.digest(incoming.person) if incoming.person else "",
            **{BURST: burst},
        )
        await self._memory.open(incoming.question, incoming.order)

    async def ask(
        self, incoming: Incoming, language: str, burst: str
    ) -> Accepted | Duplicate | None:
        """Open and submit a question; None: it was not accepted, and the person is notified."""
        await self.open(incoming, language, burst)
        try:
            groups = await self._policy.groups.find(incoming.person, incoming.post)
            accepted = await self._desk.submit(self._message(incoming, language, groups))
        except (BusyError, MessageError, MembershipError) as error:
            await self._show_refusal(incoming, language, error)
            return None
        if isinstance(accepted, Accepted):
            await self._show_accepted(incoming, language, accepted)
        elif accepted.reply is not None:
            await self._mark_closed(incoming)
        return accepted

    async def cancel(self, question: Question) -> None:
        """Cancel a question as if it had never been asked."""
        await self._memory.note(question, withdrawn="1")
        await self._desk.cancel(question)

    def _message(self, incoming: Incoming, language: str, groups: tuple[str, ...]) -> Message:
        alone = incoming.alone or incoming.command is not None
        author = (self._people.digest(incoming.person),) if incoming.person else ()
        return Message(
            incoming.text,
            incoming.question.conversation_id,
            incoming.question.message_id,
            command=incoming.command,
            arguments=incoming.arguments,
            language=language,
            shows_drafts=incoming.command is None and self._policy.draft_seconds is not None,
            not_before_seconds=0.0 if alone else self._policy.burst_seconds,
            groups=groups,
            people=(*author, *incoming.people),
            person_name=incoming.person,
        )

    async def _show_accepted(self, incoming: Incoming, language: str, accepted: Accepted) -> None:
        if accepted.merged_into is not None:
            await self._mark_closed(incoming)
            return
        text = "push_working"
        if accepted.waiting and self._policy.supersedes and incoming.command is None:
            await self._supersede(incoming)
        elif accepted.waiting:
            text = "push_waiting"
        self._spawn(self._begin(incoming, self._texts.text(text, language), language))

    async def _supersede(self, incoming: Incoming) -> None:
        for message_id, order in (await self._memory.open_messages(incoming.question)).items():
            if order < incoming.order and message_id != incoming.question.message_id:
                older = incoming.question.model_copy(update={"message_id": message_id})
                await self._desk.cancel(older)

    async def _begin(self, incoming: Incoming, text: str, language: str) -> None:
        """Show the typing sign and a placeholder; the outcome does not depend on them."""
        posted = await self._signs.begin(incoming.question, incoming.post, text)
        self._spawn(self._losses.watch(incoming, language, posted))
        if posted is not None and incoming.command is None:
            self._spawn(self._drafts.follow(incoming, language, posted))
        await self._signs.keep(incoming.question, incoming.post)

    async def _mark_closed(self, incoming: Incoming) -> None:
        """Record that nothing is shown of a question; a sign that was left to it is removed."""
        await self._memory.close(incoming.question)
        await self._signs.rest(incoming.question, incoming.post, was_set=False)

    async def _show_refusal(self, incoming: Incoming, language: str, error: GatewayError) -> None:
        """Notify the person once that a message was not accepted."""
        question = incoming.question
        await self._mark_closed(incoming)
        name = "\x1f".join((*question.conversation, question.message_id))
        if not await self._memory.claim(f"refused\x1f{name}"):
            return
        key = _name_refusal(error)
        # In the background: a notice that waits for its turn must not delay other messages.
        self._spawn(self._notify(incoming, key, self._texts.text(key, language)))

    async def _notify(self, incoming: Incoming, key: str, text: str) -> None:
        try:
            await retry(
                lambda: self._channel.post_placeholder(incoming.post, text), call_name="post_notice"
            )
        except PermanentError as never:
            self._signs.log_refusal("post_notice", never, notice=key)


def _name_refusal(error: GatewayError) -> str:
    """Return the key of the text with the true reason."""
    if isinstance(error, MembershipError):
        return "apology"
    return "push_busy" if isinstance(error, BusyError) else "push_too_long"
