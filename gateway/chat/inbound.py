"""Accepts each message once, combines several short messages into one question, and lets a newer
message replace an older one.

A one-second interval of `appendfsync everysec`, a failover, or `FLUSHALL` may lose a question
together with the location of its answer. The process that accepted the message still knows both.
"""

import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Literal

import structlog

from broker.result_list import Result
from broker.values import Accepted, Duplicate
from envelope.conversation import HANDED_OVER
from envelope.question import Question
from envelope.texts import Texts
from gateway import answer
from gateway.chat.coalescing import (
    BURST,
    VERSION,
    BurstMessage,
    Bursts,
    digest,
    first_version,
    forgotten,
)
from gateway.chat.people import People
from gateway.chat.placeholder import DraftPosts, TypingIndicator
from gateway.chat.platform_calls import retry
from gateway.chat.ports import (
    Channel,
    ChatPolicy,
    Incoming,
    MembershipError,
    PermanentError,
    RetryableError,
    Tally,
)
from gateway.desk import Desk, Message
from gateway.errors import BusyError, GatewayError, HandOverLimitedError, MessageError
from gateway.port import HandOver
from memory.chat_state import RedisPushMemory

Spawn = Callable[[Coroutine[None, None, None]], None]

Show = Callable[[Result], Awaitable[None]]
PERSON = "person"
"""The command that asks for a person, and the type of the post that answers it."""
Reason = Literal["limited_minute", "limited_day", "not_allowed"]
log = structlog.get_logger("gateway")
NOTICES: Mapping[Reason, tuple[str, int]] = {
    "limited_minute": ("push_limited_minute", 60),
    "limited_day": ("push_limited_day", 86_400),
    "not_allowed": ("push_not_allowed", 86_400),
}
"""The text for each reason, and how many seconds later the same person can get it again."""


class Losses:
    """Waits for questions to end, independently of the result list, and reports lost ones."""

    def __init__(self, desk: Desk, memory: RedisPushMemory, show: Show) -> None:
        self._desk = desk
        self._memory = memory
        self._show = show

    async def watch(self, incoming: Incoming, language: str, posted: str | None) -> None:
        """Wait until a question has ended, and edit its placeholder if no other process will."""
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
    """Submits questions; `spawn` runs tasks in the background, so that the platform does not wait
    for them.
    """

    def __init__(
        self,
        desk: Desk,
        memory: RedisPushMemory,
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
        """Store where the answer belongs, and that there is no answer yet; can be repeated
        safely.
        """
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
        """Open and submit a question; return None if it was not accepted, in which case the person
        is notified.
        """
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
        """Cancel a question and remove its placeholder."""
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
        """Show a typing indicator and a placeholder; the outcome does not depend on them."""
        posted = await self._signs.begin(incoming.question, incoming.post, text)
        self._spawn(self._losses.watch(incoming, language, posted))
        if posted is not None and incoming.command is None:
            self._spawn(self._drafts.follow(incoming, language, posted))
        await self._signs.keep(incoming.question, incoming.post)

    async def _mark_closed(self, incoming: Incoming) -> None:
        """Record that nothing will be shown for a question, and remove a typing indicator that
        another question left for it to remove.
        """
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


class Declining:
    """Declines messages of a channel; `tally` counts them by reason."""

    def __init__(
        self,
        memory: RedisPushMemory,
        channel: Channel,
        texts: Texts,
        *,
        tally: Tally,
        spawn: Spawn,
    ) -> None:
        self._memory = memory
        self._channel = channel
        self._texts = texts
        self._tally = tally
        self._spawn = spawn

    async def decline(
        self, reason: Reason, person: str, post: Mapping[str, str] | None, language: str
    ) -> None:
        """Count a declined message, and post a notice at `post` unless it is None."""
        self._tally.add(reason)
        log.info("message_declined", channel=self._channel.name, reason=reason)
        if post is None:
            return
        key, seconds = NOTICES[reason]
        name = "\x1f".join(("declined", reason, person, str(int(time.time() // seconds))))
        if await self._memory.claim(name, seconds=seconds):
            text = self._texts.text(key, language)
            # In the background: a notice that waits for its turn must not delay other messages.
            self._spawn(self._say(post, text, key))

    async def _say(self, post: Mapping[str, str], text: str, key: str) -> None:
        try:
            await retry(lambda: self._channel.post_placeholder(post, text), call_name="post_notice")
        except PermanentError as never:
            log.warning(
                "platform_call_rejected",
                call="post_notice",
                channel=self._channel.name,
                error=str(never),
                notice=key,
            )


class Intake:
    """Decides which messages from a person form a question, and submits it."""

    def __init__(
        self,
        asking: MessageSubmitter,
        memory: RedisPushMemory,
        *,
        people: People,
        declining: Declining,
        default_language: str,
        handover: HandOver | None = None,
    ) -> None:
        self._handover = handover
        self._people = people
        self._declining = declining
        self._asking = asking
        self._memory = memory
        self._default_language = default_language
        self._bursts = Bursts(memory)

    async def accept(self, incoming: Incoming) -> None:
        """Accept a message. Once this method returns, the outcome no longer depends on this
        process.

        Errors of the broker and the chat state propagate, and the platform then sends the message
        again.
        """
        language = await self.language(incoming.question, incoming.language)
        if not await self._admits(incoming, language):
            return
        incoming = await self._hand_over(incoming, language)
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
            if BURST not in known:
                await self._bursts.begin(incoming, burst)
            await self._ask(incoming, language, burst)
        else:
            # A repeated event must not restore text that was erased meanwhile.
            if BURST not in await self._memory.fields(incoming.question):
                await self._bursts.change(incoming, burst)
            await self._ask_again(incoming, language, burst)

    async def _admits(self, incoming: Incoming, language: str) -> bool:
        """Return whether a person may ask another question; otherwise notify them."""
        question, person = incoming.question, incoming.person
        shortage = await self._people.admit(person, question, incoming.command)
        if shortage is None:
            return True
        reason: Reason = "limited_day" if shortage.period == "day" else "limited_minute"
        await self._declining.decline(reason, person, incoming.post, language)
        return False

    async def _hand_over(self, incoming: Incoming, language: str) -> Incoming:
        """Request a person if the message is the command for this; the reply then states whether
        the request was sent.

        A repeated event does not send another request.
        """
        if incoming.command != PERSON or self._handover is None:
            return incoming
        known = (await self._memory.fields(incoming.question)).get(HANDED_OVER)
        if known is None:
            note = " ".join(incoming.arguments)
            try:
                is_sent = await self._handover.request(
                    incoming.question,
                    note=note,
                    language=language,
                    visitor=self._people.digest(incoming.person),
                )
            except HandOverLimitedError:
                is_sent = False
            except BusyError as error:
                # A repetition of an event that is still being handled.
                raise RetryableError(str(error), error.retry_after_seconds) from error
            known = "sent" if is_sent else "failed"
            await self._memory.note(incoming.question, **{HANDED_OVER: known})
        return replace(incoming, command=HANDED_OVER, arguments=(language, known), fixed=PERSON)

    async def withdraw(self, question: Question, message_id: str) -> None:
        """Withdraw a message and its edits; `question` then asks the rest of its burst."""
        root = question.model_copy(update={"message_id": message_id})
        known = await self._memory.fields(root)
        await self._bursts.take_back(root)
        burst = known.get(BURST, message_id)
        language = known.get("language", self._default_language)
        await self._without(root, burst, language, Incoming(question, "", {}, order=0.0))

    async def language(self, question: Question, suggested: str | None) -> str:
        """Return the language of texts that precede an answer; `suggested` is the platform's
        setting.
        """
        known = (await self._memory.about(question)).get("language")
        return known or suggested or self._default_language

    async def _without(self, root: Question, burst: str, language: str, incoming: Incoming) -> None:
        """Remove a message from its burst. Ask the rest of the burst again, unless all of its
        questions have ended.
        """
        await self._bursts.take_out(root, burst)
        open_ = await self._open_of_burst(root, burst)
        if not open_:
            return
        rest = incoming
        if incoming.edits is not None:
            id_ = f"{incoming.question.message_id}{VERSION}rest"
            rest = replace(incoming, question=root.model_copy(update={"message_id": id_}))
        plain = replace(rest, order=max(open_.values()), edits=None, command=None, fixed="")
        await self._ask_again(plain, language, burst)

    async def _ask_again(self, incoming: Incoming, language: str, burst: str) -> None:
        """Submit a burst in its current form, replacing its earlier question."""
        question = incoming.question
        if BURST not in await self._memory.fields(question):
            await self._bursts.assign(question, burst)
        opened = await self._open_of_burst(question, burst)
        if not await self._bursts.asks(question, burst):
            # A newer question may be among them, and withdraws the others itself.
            return
        parts = await self._bursts.parts(question, burst)
        if parts:
            incoming = await self._whole(incoming, parts)
            # Open before the others end: the sign at the message is left to it.
            await self._asking.open(incoming, language, burst)
        for open_id in opened:
            if open_id != question.message_id:
                await self._asking.cancel(question.model_copy(update={"message_id": open_id}))
        if parts:
            await self._ask(incoming, language, burst)

    async def _whole(self, incoming: Incoming, parts: Mapping[str, BurstMessage]) -> Incoming:
        """Return the burst as one question, to be answered below its first message."""
        text = "\n".join(part.text for part in parts.values())
        known = [
            await self._memory.fields(incoming.question.model_copy(update={"message_id": id_}))
            for id_ in parts
        ]
        people = {person for fields in known if (person := fields.get("person"))}
        return replace(
            incoming,
            text=text,
            post=json.loads(known[0]["post"]) if known[0].get("post") else incoming.post,
            people=tuple(sorted(people)),
        )

    async def _ask(self, incoming: Incoming, language: str, burst: str) -> None:
        question = incoming.question
        accepted = await self._asking.ask(incoming, language, burst)
        if accepted is None:
            return
        if (joined := _find_merged_into(accepted)) is not None:
            into = question.model_copy(update={"message_id": joined})
            is_new = isinstance(accepted, Accepted)
            await self._join(incoming, language, burst, into, is_new=is_new)
        elif not await self._bursts.asks(question, burst):
            await self._asking.cancel(question)

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
        # A message of a burst must not join the new question of the same burst, which contains its
        # text already. And that question may be older than this message's entry in the burst.
        if other == burst or not await self._bursts.asks(into, other):
            id_ = f"{question.message_id}{VERSION}joined"
            again = replace(incoming, question=question.model_copy(update={"message_id": id_}))
            await self._ask_again(replace(again, edits=None, alone=True), language, other)
        if other != burst:
            await self._bursts.move(question, burst, other)

    async def _open_of_burst(self, question: Question, burst: str) -> dict[str, float]:
        """Return the open questions of a burst, with their order."""
        opened = await self._memory.open_messages(question)
        return {
            id_: order
            for id_, order in opened.items()
            if await self._bursts.of(question.model_copy(update={"message_id": id_})) == burst
        }


def _name_refusal(error: GatewayError) -> str:
    """Return the key of the text that states the actual reason."""
    if isinstance(error, MembershipError):
        return "apology"
    return "push_busy" if isinstance(error, BusyError) else "push_too_long"


def _find_merged_into(accepted: Accepted | Duplicate) -> str | None:
    """Return the message that a message was merged into, now or in an earlier delivery, or None."""
    if isinstance(accepted, Accepted):
        return accepted.merged_into
    joined = (accepted.reply or {}).get("merged_into")
    return joined if isinstance(joined, str) else None
