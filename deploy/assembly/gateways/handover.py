"""Assembles the hand-over to a person: receivers of conversations, and storage of answers."""

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import structlog

from broker.errors import BrokerError
from config.settings import Settings
from config.texts import load_texts
from deploy.assembly.runtime import Runtime, desks
from deploy.errors import CommandError
from envelope.conversation import PERSON_REPLY
from envelope.question import CHANNEL_MARK, HTTP, Question
from gateway.api_keys import StoredKeys
from gateway.chat_channels import CHAT_CHANNELS
from gateway.conversations import Conversations
from gateway.desk import Message
from gateway.errors import BusyError, HandOverLimitedError, MessageError
from gateway.http.routes.handover import PATH
from gateway.port import HandOver, OpenCase
from gateway.text import clean_text
from memory.chat_state import RedisPushMemory
from memory.errors import MemoryUnavailableError
from memory.http_state import Demand, RedisRates, RedisReplyAddresses, digest_of
from memory.presence import RedisDuty
from notifications.handover import (
    LINK_SECONDS,
    SLACK_API,
    Case,
    MailReceiver,
    Receiver,
    SlackReceiver,
    Ticket,
    Tickets,
    WebhookReceiver,
    send_case,
)
from notifications.mail_replies import POLL_SECONDS, Deliver, Mailbox, MailReplies
from notifications.webhooks import Endpoint
from worker.process import consumer_name

if TYPE_CHECKING:
    from redis.asyncio import Redis

log = structlog.get_logger("gateway")

FIXED = "person"
"""The kind of a post in a chat that no model and no search wrote: it has no buttons to rate it."""
MOST_TURNS = 40
SENDING_SECONDS = 5.0
"""When a request that finds its conversation being sent may be repeated."""
MAIL_JOB = "mail_replies"
MAIL_SECONDS, MAIL_MEMORY_MB = 5.0, 256
"""The limits of parsing one e-mail."""


async def make_handover(
    runtime: Runtime,
    client: "Redis",
    keys: StoredKeys,
    conversations: Conversations,
    *,
    journals_alone: bool = False,
) -> "StoredHandOver | None":
    """Return what hands conversations over; None if the settings name no receiver.

    `journals_alone`: this process may not read the memory of conversations.
    """
    receivers = list_receivers(runtime.settings)
    if not receivers:
        return None
    tickets = Tickets(await keys.handover_secret())
    return StoredHandOver(
        runtime, client, conversations, receivers, tickets, journals_alone=journals_alone
    )


def list_receivers(settings: Settings) -> list[Receiver]:
    """Return the receivers of the settings; raises `CommandError` if one lacks what it needs."""
    _check_needs(settings)
    receivers: list[Receiver] = []
    if settings.handover_email and settings.smtp_host:
        password = settings.smtp_password
        receivers.append(
            MailReceiver(
                to=settings.handover_email,
                sender=find_sender(settings),
                host=settings.smtp_host,
                port=settings.smtp_port,
                user=settings.smtp_user,
                password="" if password is None else password.get_secret_value(),
                security=settings.smtp_security,
            )
        )
    if settings.handover_slack_channel is not None and settings.slack_bot_token is not None:
        receivers.append(
            SlackReceiver(
                settings.slack_bot_token.get_secret_value(),
                settings.handover_slack_channel,
                settings.slack_api_url or SLACK_API,
            )
        )
    if (hook := settings.handover_webhook) is not None:
        endpoint = Endpoint("handover", hook.url, hook.secrets, is_private=hook.private)
        receivers.append(WebhookReceiver(endpoint))
    return receivers


def _check_needs(settings: Settings) -> None:
    if settings.handover_email and not settings.smtp_host:
        raise CommandError("HANDOVER_EMAIL needs SMTP_HOST, the server that sends the e-mail")
    if settings.handover_slack_channel is not None and settings.slack_bot_token is None:
        raise CommandError(
            "HANDOVER_SLACK_CHANNEL needs SLACK_BOT_TOKEN, the token of the app that posts there"
        )
    if settings.imap_host and not settings.handover_email:
        raise CommandError(
            "IMAP_HOST needs HANDOVER_EMAIL: only conversations that are handed over by e-mail "
            "are answered by e-mail"
        )
    receivers = (
        settings.handover_email, settings.handover_slack_channel, settings.handover_webhook
    )  # fmt: skip
    if any(receivers) and settings.public_url is None:
        raise CommandError(
            "HANDOVER_EMAIL, HANDOVER_SLACK_CHANNEL and HANDOVER_WEBHOOK need PUBLIC_URL, the "
            "address of this server: a conversation is sent with a link to it"
        )


def find_sender(settings: Settings) -> str:
    """Return the address that sends e-mail; replies come to it."""
    return settings.smtp_from or settings.handover_email or ""


@asynccontextmanager
async def reading_mail_replies(
    runtime: Runtime, client: "Redis", handover: HandOver | None
) -> AsyncIterator[None]:
    """Read what people answer by e-mail while inside, if the settings name a mailbox."""
    settings = runtime.settings
    if settings.imap_host is None or not isinstance(handover, StoredHandOver):
        yield
        return
    report = partial(runtime.jobs.report, MAIL_JOB)
    replies = make_mail_replies(settings, handover.deliver_mail, report)
    duty = RedisDuty(client, HTTP, "mail", consumer_name())
    read = partial(replies.run, partial(duty.keep, 2 * POLL_SECONDS))
    async with runtime.jobs.running(MAIL_JOB, read):
        yield


def make_mail_replies(
    settings: Settings, deliver: Deliver, report: Callable[[str], None]
) -> MailReplies:
    """Return what reads the mailbox of the settings."""
    # Imported here: most installations read no mailbox.
    from knowledge.isolation.messages import ReadingLimits
    from knowledge.isolation.reader_process import ReaderProcess

    limits = ReadingLimits(seconds=MAIL_SECONDS, memory_mb=MAIL_MEMORY_MB)
    sender, password = find_sender(settings), settings.imap_password
    people = settings.handover_people or (settings.handover_email or "",)
    return MailReplies(
        Mailbox(
            settings.imap_host or "",
            settings.imap_port,
            settings.imap_user or sender,
            "" if password is None else password.get_secret_value(),
            settings.imap_security,
        ),
        deliver,
        partial(ReaderProcess, limits),
        address=sender.lower(),
        people=[one.lower() for one in people],
        unavailable=(BusyError, BrokerError, MemoryUnavailableError),
        report=report,
    )


class StoredHandOver:
    """A `gateway.port.HandOver`; it stores nothing but the answers of people, as messages."""

    def __init__(
        self,
        runtime: Runtime,
        client: "Redis",
        conversations: Conversations,
        receivers: Sequence[Receiver],
        tickets: Tickets,
        *,
        journals_alone: bool = False,
    ) -> None:
        self._runtime = runtime
        self._client = client
        self._conversations = conversations
        self._receivers = receivers
        self._tickets = tickets
        self._addresses = RedisReplyAddresses(client)
        self._rates = RedisRates(client)
        self._journals_alone = journals_alone
        self._names = {(one.tenant, one.assistant) for one in runtime.settings.of_assistants()}
        self._texts = load_texts()

    def hands_over(self, tenant: str, assistant: str) -> bool:
        return (tenant, assistant) in self._names

    async def request(self, question: Question, *, note: str, language: str, visitor: str) -> bool:
        known = await self._addresses.begin_sending(question, LINK_SECONDS)
        if known == "running":
            raise BusyError("this conversation is being sent to a person", SENDING_SECONDS)
        if known == "sent":
            return True
        is_sent = False
        try:
            await self._admit(question, visitor)
            is_sent = await self._send(question, note, language)
        finally:
            await self._addresses.end_sending(question, is_sent=is_sent)
        return is_sent

    async def _admit(self, question: Question, visitor: str) -> None:
        """Count a hand-over for the visitor and the tenant; raises `HandOverLimitedError`."""
        settings = self._runtime.settings
        demands = [
            Demand(f"visitor/{digest_of(visitor)}", per_day=settings.handover_visitor_per_day),
            Demand("tenant", per_day=settings.handover_tenant_per_day),
        ]
        shortage = await self._rates.admit(f"handover/{question.tenant}", demands)
        if shortage is not None:
            log.warning("handover_limited", tenant=question.tenant, limit=shortage.demand.name)
            raise HandOverLimitedError(
                "too many conversations were sent to people today", shortage.seconds
            )

    async def _send(self, question: Question, note: str, language: str) -> bool:
        base = (self._runtime.settings.public_url or "").rstrip("/")
        ticket = self._tickets.write(question, language)
        case = Case(
            question,
            await self._list_recent(question),
            note,
            language,
            f"{base}{PATH}{ticket}",
            await self._make_reply_address(question, ticket),
        )
        return await send_case(self._receivers, case)

    async def _make_reply_address(self, question: Question, ticket: str) -> str:
        """Return the address for replies by e-mail; empty if no mailbox is read."""
        if self._runtime.settings.imap_host is None:
            return ""
        name = await self._addresses.put(question, ticket, LINK_SECONDS)
        local, _, domain = find_sender(self._runtime.settings).partition("@")
        return f"{local}+{name}@{domain}"

    def is_ticket(self, ticket: str) -> bool:
        return self._tickets.read(ticket) is not None

    async def read(self, ticket: str) -> OpenCase | None:
        found = self._tickets.read(ticket)
        if found is None or not await self._is_kept(found.question):
            return None
        return OpenCase(await self._list_turns(found.question))

    async def reply(self, ticket: str, text: str, *, reply_id: str = "") -> bool:
        try:
            return await self.deliver(ticket, text, reply_id)
        except BusyError:
            return False

    async def deliver(self, ticket: str, text: str, reply_id: str) -> bool:
        """Show an answer, as `reply` does; raises `BusyError` where it may be repeated later."""
        found = self._tickets.read(ticket)
        if found is None or not await self._is_kept(found.question):
            return False
        return await self._submit(found, text, reply_id)

    async def deliver_mail(self, name: str, text: str, mail_id: str) -> bool:
        """Show an answer that was sent to the address of this name; raises `BusyError`."""
        ticket = await self._addresses.get(name)
        if ticket is None:
            return False
        try:
            return await self.deliver(ticket, clean_text(text), f"mail {mail_id}")
        except MessageError:
            return False

    async def _submit(self, ticket: Ticket, text: str, reply_id: str) -> bool:
        """Submit the answer as a message of the conversation; once for an id, or for a text.

        In a chat it is posted where the question was asked; returns False once that is unknown.
        """
        asked = ticket.question
        channel = find_channel(asked)
        once = reply_id or f"{asked.message_id}\x1f{text}"
        name = hashlib.sha256(once.encode()).hexdigest()[:24]
        is_pushed = any(spec.name == channel for spec in CHAT_CHANNELS)
        result_list = channel if is_pushed else ""
        desk = desks(self._runtime, channel, result_list=result_list)[asked.tenant, asked.assistant]
        journal = await self._runtime.broker.replies.read_journal(asked)
        groups = journal[0].fields.get("groups") if journal else None
        message = Message(
            text=self._texts.text("person_answered", ticket.language),
            conversation_id=asked.conversation_id,
            message_id=f"person-{name}",
            command=PERSON_REPLY,
            arguments=(ticket.language, text),
            language=ticket.language,
            groups=tuple(map(str, groups)) if isinstance(groups, list) else (),
        )
        answer = desk.question(message)
        if is_pushed and not await self._note_post(channel, asked, answer, ticket.language):
            return False
        await desk.submit(message)
        return True

    async def _note_post(
        self, channel: str, asked: Question, answer: Question, language: str
    ) -> bool:
        """Store where the chat shows the answer: below the question; False if that is unknown."""
        settings = self._runtime.settings
        seconds = settings.memory_seconds_of(asked.tenant, asked.assistant)
        memory = RedisPushMemory(
            self._client, channel, question_seconds=seconds, conversation_seconds=seconds
        )
        post = (await memory.fields(asked)).get("post")
        if post is None:
            return False
        await memory.note(answer, post=post, language=language, fixed=FIXED)
        return True

    async def _is_kept(self, question: Question) -> bool:
        """Return whether the conversation was neither erased nor expired."""
        journal = await self._runtime.broker.replies.read_journal(question)
        if journal:
            return not journal[-1].fields.get("forgot")
        return not self._journals_alone and bool(await self._conversations.turns(question))

    async def _list_turns(self, question: Question) -> tuple[tuple[str, str], ...]:
        """Return the turns from the memory, which keeps them longer than the journals."""
        turns = await self._conversations.turns(question)
        if not turns:
            return await self._list_recent(question)
        return tuple((str(turn.speaker), turn.text) for turn in turns[-MOST_TURNS:])

    async def _list_recent(self, question: Question) -> tuple[tuple[str, str], ...]:
        """Return the turns from the journals, which chat channels may read."""
        recent = await self._conversations.recent_messages(question, limit=MOST_TURNS)
        turns = []
        for one in recent:
            turns.append(("user", str(one.first.fields.get("text") or "")))
            if one.last.kind == "finished":
                turns.append(("assistant", str(one.last.fields.get("text") or "")))
        return tuple(turns)


def find_channel(question: Question) -> str:
    """Return the channel of a conversation, by its id."""
    channel, mark, _ = question.conversation_id.partition(CHANNEL_MARK)
    return channel if mark else HTTP
