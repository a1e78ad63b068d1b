"""Assembles the hand-over to a person: the receivers of conversations, and the storage of their
answers.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import structlog

from broker.errors import BrokerError
from config.settings import Settings
from config.texts import load_texts
from deploy.assembly.runtime import Runtime, desks
from deploy.errors import CommandError
from envelope.question import HTTP, Question
from gateway.api_keys import StoredKeys
from gateway.conversations import Conversations
from gateway.desk import Desk
from gateway.errors import BusyError
from gateway.port import HandOver
from gateway.stored_handover import StoredHandOver
from memory.chat_state import RedisPushMemory
from memory.errors import MemoryUnavailableError
from memory.http_state import RedisRates, RedisReplyAddresses
from memory.presence import LEAVE_SECONDS, RedisDuty
from memory.webhook_queue import RedisWebhookQueue
from notifications.handover import (
    SLACK_API,
    MailReceiver,
    MailSender,
    Receiver,
    SlackReceiver,
    Tickets,
    WebhookReceiver,
)
from notifications.mail_replies import POLL_SECONDS, Deliver, IsKnown, Mailbox, MailReplies
from notifications.visitor_mails import VisitorMails
from notifications.webhooks import WebhookTarget
from worker.process import consumer_name

if TYPE_CHECKING:
    from redis.asyncio import Redis

log = structlog.get_logger("gateway")

MAIL_JOB, VISITOR_JOB = "mail_replies", "visitor_mail"
MAIL_SECONDS, MAIL_MEMORY_MB = 5.0, 256
"""The limits for parsing one email."""


async def make_handover(
    runtime: Runtime,
    client: "Redis",
    keys: StoredKeys,
    conversations: Conversations,
    *,
    journals_alone: bool = False,
) -> "StoredHandOver | None":
    """Return the hand-over of conversations, or None if no receiver is configured.

    `journals_alone` is true if this process may not read the memory of conversations.
    """
    receivers = list_receivers(runtime.settings)
    if not receivers:
        return None
    tickets = Tickets(await keys.handover_secret())
    return make_stored_handover(
        runtime, client, conversations, receivers, tickets, journals_alone=journals_alone
    )


def make_stored_handover(
    runtime: Runtime,
    client: "Redis",
    conversations: Conversations,
    receivers: Sequence[Receiver],
    tickets: Tickets,
    *,
    journals_alone: bool = False,
) -> StoredHandOver:
    """Return the hand-over of conversations to the given receivers."""
    settings = runtime.settings
    mail = _make_mail(settings)

    def open_desk(channel: str, result_list: str, asked: Question) -> Desk:
        return desks(runtime, channel, result_list=result_list)[asked.tenant, asked.assistant]

    def open_posts(channel: str, asked: Question) -> RedisPushMemory:
        seconds = settings.memory_seconds_of(asked.tenant, asked.assistant)
        return RedisPushMemory(
            client, channel, question_seconds=seconds, conversation_seconds=seconds
        )

    return StoredHandOver(
        replies=runtime.broker.replies,
        open_desk=open_desk,
        open_posts=open_posts,
        addresses=RedisReplyAddresses(client),
        rates=RedisRates(client),
        visitor_per_day=settings.handover_visitor_per_day,
        tenant_per_day=settings.handover_tenant_per_day,
        conversations=conversations,
        receivers=receivers,
        tickets=tickets,
        assistants={
            assistant.assistant_key: assistant.domain_name for assistant in settings.of_assistants()
        },
        words=load_texts().text,
        mails=None
        if mail is None
        else VisitorMails(
            RedisWebhookQueue(client, "visitor_mail"),
            mail,
            partial(runtime.jobs.report, VISITOR_JOB),
        ),
        public_url=settings.public_url or "",
        reply_sender="" if settings.imap_host is None else settings.mail_sender,
        journals_alone=journals_alone,
    )


def list_receivers(settings: Settings) -> list[Receiver]:
    """Return the configured receivers; raises `CommandError` if the settings are incomplete."""
    _check_needs(settings)
    receivers: list[Receiver] = []
    mail = _make_mail(settings)
    if settings.handover_email and mail is not None:
        receivers.append(MailReceiver(settings.handover_email, mail))
    if settings.handover_slack_channel is not None and settings.slack_bot_token is not None:
        receivers.append(
            SlackReceiver(
                settings.slack_bot_token.get_secret_value(),
                settings.handover_slack_channel,
                settings.slack_api_url or SLACK_API,
            )
        )
    if (hook := settings.handover_webhook) is not None:
        endpoint = WebhookTarget("handover", hook.url, hook.secrets, is_private=hook.private)
        receivers.append(WebhookReceiver(endpoint))
    return receivers


@asynccontextmanager
async def exchanging_mail(
    runtime: Runtime, client: "Redis", handover: HandOver | None
) -> AsyncIterator[None]:
    """Inside the context, send email to visitors and read their replies, if this is configured."""
    if not isinstance(handover, StoredHandOver) or not handover.mails_visitors:
        yield
        return
    async with (
        runtime.jobs.running(VISITOR_JOB, handover.send_mails),
        _reading_mail_replies(runtime, client, handover),
    ):
        yield


def make_mail_replies(
    settings: Settings, is_known: IsKnown, deliver: Deliver, report: Callable[[str], None]
) -> MailReplies:
    """Return the reader for the configured mailbox."""
    # Imported here: most installations do not read a mailbox.
    from knowledge.isolation.messages import ReadingLimits
    from knowledge.isolation.reader_process import ReaderProcess

    limits = ReadingLimits(seconds=MAIL_SECONDS, memory_mb=MAIL_MEMORY_MB)
    sender, password = settings.mail_sender, settings.imap_password
    people = settings.handover_people or (settings.handover_email or "",)
    return MailReplies(
        Mailbox(
            settings.imap_host or "",
            settings.imap_port,
            settings.imap_user or sender,
            "" if password is None else password.get_secret_value(),
            settings.imap_security,
        ),
        is_known,
        deliver,
        partial(ReaderProcess, limits),
        address=sender.lower(),
        people=[person.lower() for person in people],
        unavailable=(BusyError, BrokerError, MemoryUnavailableError),
        report=report,
    )


@asynccontextmanager
async def _reading_mail_replies(
    runtime: Runtime, client: "Redis", handover: StoredHandOver
) -> AsyncIterator[None]:
    settings = runtime.settings
    if settings.imap_host is None:
        yield
        return
    report = partial(runtime.jobs.report, MAIL_JOB)
    replies = make_mail_replies(settings, handover.is_address, handover.deliver_mail, report)
    duty = RedisDuty(client, HTTP, "mail", consumer_name())
    read = partial(replies.run, partial(duty.keep, 2 * POLL_SECONDS))
    try:
        async with runtime.jobs.running(MAIL_JOB, read):
            yield
    finally:
        # Otherwise replies wait until the lease expires.
        with suppress(MemoryUnavailableError, TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS):
                await duty.leave()


def _make_mail(settings: Settings) -> MailSender | None:
    if not settings.smtp_host or not settings.mail_sender:
        return None
    password = settings.smtp_password
    return MailSender(
        sender=settings.mail_sender,
        host=settings.smtp_host,
        port=settings.smtp_port,
        user=settings.smtp_user,
        password="" if password is None else password.get_secret_value(),
        security=settings.smtp_security,
    )


def _check_needs(settings: Settings) -> None:
    if settings.handover_email and not settings.smtp_host:
        raise CommandError("HANDOVER_EMAIL requires SMTP_HOST, the server that sends the e-mail")
    if settings.handover_slack_channel is not None and settings.slack_bot_token is None:
        raise CommandError(
            "HANDOVER_SLACK_CHANNEL requires SLACK_BOT_TOKEN, the token of the app that posts "
            "to the channel"
        )
    if settings.imap_host and not settings.handover_email:
        raise CommandError(
            "IMAP_HOST requires HANDOVER_EMAIL, because only conversations that are handed "
            "over by e-mail can be answered by e-mail"
        )
    receivers = (
        settings.handover_email, settings.handover_slack_channel, settings.handover_webhook
    )  # fmt: skip
    if any(receivers) and settings.public_url is None:
        raise CommandError(
            "HANDOVER_EMAIL, HANDOVER_SLACK_CHANNEL and HANDOVER_WEBHOOK require PUBLIC_URL, "
            "the address of this server, because a conversation is sent with a link to it"
        )
