"""Runs a chat channel: it accepts messages, delivers replies, and runs background tasks."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from uuid import uuid4

import structlog

from broker.background_jobs import BackgroundJobs, cancel_until_done
from broker.errors import BrokerError
from broker.redis_broker import RedisBroker
from envelope.question import Question
from envelope.texts import Texts
from gateway.chat.coalescing import PostEraser
from gateway.chat.delivery import Buttons, Choice, ReplyDelivery
from gateway.chat.inbound import Declining, Intake, Losses, MessageSubmitter
from gateway.chat.people import People
from gateway.chat.placeholder import DraftPosts, TypingIndicator
from gateway.chat.ports import Channel, ChatPolicy, Incoming, PushError, Tally
from gateway.conversations import Conversations
from gateway.desk import Desk
from gateway.port import HandOver
from memory.chat_state import RedisPushMemory
from memory.http_state import Feedback

log = structlog.get_logger("gateway")


class ChatChannel:
    """Connects the events and posts of a platform with the desk, in the same way for every
    channel.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        desk: Desk,
        broker: RedisBroker,
        memory: RedisPushMemory,
        feedback: Conversations,
        texts: Texts,
        policy: ChatPolicy,
        secret: str,
        people: People,
        handover: HandOver | None = None,
        unavailable: tuple[type[Exception], ...] = (),
        jobs: BackgroundJobs | None = None,
    ) -> None:
        self.channel = channel
        self.memory = memory
        self.texts = texts
        self.policy = policy
        self.handover = handover
        self.tally = Tally()
        self.refusals = Tally()
        self.ratings = Tally()
        self.buttons = Buttons(memory, secret=secret)
        self._people = people
        self._desk = desk
        self._feedback = feedback
        self.jobs = BackgroundJobs() if jobs is None else jobs
        self.unavailable: tuple[type[Exception], ...] = (PushError, BrokerError, *unavailable)
        self._tasks: asyncio.TaskGroup | None = None
        self._beside: set[asyncio.Task[None]] = set()
        signs = TypingIndicator(memory, channel, deadline_seconds=policy.deadline_seconds)
        self._delivery = ReplyDelivery(
            broker.result_list(channel.name, f"{channel.name}-{uuid4().hex[:12]}"),
            memory,
            channel,
            self.buttons,
            texts,
            policy=policy,
            signs=signs,
            forgetting=PostEraser(desk, memory),
            tally=self.tally,
        )
        asking = MessageSubmitter(
            desk,
            memory,
            channel,
            texts,
            policy,
            signs=signs,
            losses=Losses(desk, memory, self._delivery.show),
            drafts=DraftPosts(desk, memory, channel, texts, policy),
            people=people,
            spawn=self.spawn,
        )
        self.declining = Declining(memory, channel, texts, tally=self.refusals, spawn=self.spawn)
        self.intake = Intake(
            asking,
            memory,
            people=people,
            declining=self.declining,
            handover=handover,
            default_language=policy.default_language,
        )

    def name_question(self, conversation_id: str, message_id: str) -> Question:
        """Return the question that identifies a message of this channel."""
        return self._desk.name_question(conversation_id, message_id)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Deliver replies inside the context; replies that remain when it exits are taken over by
        another process.
        """
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            delivering = tasks.create_task(self.jobs.supervise("deliveries", self._delivery.run))
            try:
                yield
            finally:
                self._tasks = None
                await cancel_until_done([delivering, *self._beside])

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        """Start a background task whose errors are logged."""
        if self._tasks is None:
            work.close()
            return
        task = self._tasks.create_task(self._run_logged(work))
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def submit_choice(
        self,
        choice: Choice,
        *,
        post: dict[str, str],
        order: float,
        language: str | None,
        person: str = "",
    ) -> bool:
        """Submit the message of a clicked button, or store its rating.

        Returns whether the choice is accepted. Only the person who asked can answer a request.
        """
        if choice.rating:
            await self._feedback.give_feedback(choice.question, Feedback(rating=choice.rating))
            self.ratings.add(choice.rating)
            return True
        id_ = f"{choice.question.message_id}.{choice.number}"
        is_theirs = True
        if choice.answers_pause:
            # One message for each person: the refusal of one must not be shown to another.
            digest = self._people.digest(person)
            id_ = f"{id_}.{digest}"
            known = await self.memory.fields(choice.question)
            is_theirs = known.get("person") in (None, "", digest)
        asked = self.name_question(choice.question.conversation_id, id_)
        await self.intake.accept(
            Incoming(
                question=asked,
                text=choice.ask or choice.label,
                post=post,
                order=order,
                language=language,
                command="set_language" if choice.language else None,
                arguments=(choice.language,) if choice.language else (),
                alone=True,
                person=person,
            )
        )
        return is_theirs

    async def _run_logged(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except self.unavailable as error:
            log.warning("background_task_failed", channel=self.channel.name, error=str(error))
        except Exception as error:
            # A background task must not end the channel.
            log.error("background_task_failed", channel=self.channel.name, exc_info=error)
            self.tally.add("background_task_failed")
