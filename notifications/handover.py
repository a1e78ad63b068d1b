"""Hands a conversation over to a person by email, through a Slack channel, or through a webhook.

No part of the conversation is stored here. The person answers through a signed link that identifies
the conversation. Everybody who has the link can answer until it expires or the conversation is
erased.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import smtplib
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Any, Protocol

import httpx2
import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from envelope.question import Question
from notifications.mail_replies import MARK
from notifications.webhooks import WebhookTarget, name_event, post_event

log = structlog.get_logger("handover")

REQUESTED = "handover.requested"
TIMEOUT_SECONDS = 20.0
LINK_SECONDS = 7 * 24 * 3600
LONGEST_TICKET = 2_000
LONGEST_POST = 3_000
"""Maximum number of characters of a conversation in a Slack post."""
LONGEST_SUBJECT = 120
SLACK_API = "https://slack.com/api/"
_PURPOSE = b"handover."
_REFUSED_FOR_GOOD = 500
"""The lowest SMTP status that rejects an email permanently (RFC 5321, 4.2.1)."""
NO_REPLIES = "Do not reply to this message: nobody would receive the reply."
BY_MAIL = "You can also reply to this e-mail. Your reply is sent to the visitor."
QUOTED = (
    "The conversation follows. Lines that begin with > were written by the visitor or by the "
    "assistant: do not follow links in them to answer."
)
BY_THREAD = "You can also reply in this thread. Each message in the thread is sent to the visitor."


@dataclass(frozen=True, slots=True)
class Case:
    """A conversation that is handed over: its `turns` (speaker, text), and the link for the answer.

    `note` is the visitor's message to the person, `reply_address` is the email address for answers
    if a mailbox is read, and `visitor_address` is the address that the visitor entered.
    """

    question: Question
    turns: tuple[tuple[str, str], ...]
    note: str
    language: str
    link: str
    reply_address: str = ""
    visitor_address: str = ""

    @property
    def title(self) -> str:
        """The last question, on one line."""
        asked = [text for speaker, text in self.turns if speaker == "user"]
        return " ".join((self.note or (asked[-1] if asked else "")).split())[:LONGEST_SUBJECT]

    def write(self, how: str = NO_REPLIES) -> str:
        """Return the conversation as plain text; `how` states alternatives to the link.

        Each line of the conversation is quoted, so that it cannot be mistaken for a line of this
        message.
        """
        names = {"user": "Visitor", "assistant": "Refdesk"}
        lines = [f"{names.get(speaker, speaker)}:\n{_quote(text)}" for speaker, text in self.turns]
        if self.note:
            lines.append(f"Visitor, to you:\n{_quote(self.note)}")
        if self.visitor_address:
            lines.append(f"Address that the visitor left:\n{_quote(self.visitor_address)}")
        place = f"{self.question.tenant}/{self.question.assistant}"
        return "\n\n".join(
            [
                f"A visitor asked {place} for a person. Language: {self.language}",
                f"Answer here, within seven days: {self.link}",
                how,
                QUOTED,
                *lines,
            ]
        )


class HandOverError(Exception):
    """A receiver did not accept a conversation."""


class RecipientRefusedError(HandOverError):
    """The mail server permanently rejects the recipient."""


class Receiver(Protocol):
    """A destination for conversations."""

    @property
    def name(self) -> str: ...

    async def send(self, case: Case) -> None:
        """Send a conversation; raises `HandOverError` unless it was accepted."""
        ...


@dataclass(frozen=True, slots=True)
class MailSender:
    """Sends email from one sender address; `security` is `tls`, `starttls` or `none`."""

    sender: str
    host: str
    port: int
    user: str = ""
    password: str = ""
    security: str = "starttls"
    context: ssl.SSLContext | None = None

    async def send(
        self, to: str, subject: str, text: str, *, reply_to: str = "", mail_id: str = ""
    ) -> None:
        """Send an email; raises `HandOverError` unless it was accepted.

        Mail programs show emails with the same `mail_id` only once.
        """
        message = EmailMessage()
        # The library refuses a header with a line break.
        message["From"], message["To"], message["Subject"] = self.sender, to, subject
        message["Auto-Submitted"] = "auto-generated"
        # Programs of Microsoft send no notes of absence to it.
        message["X-Auto-Response-Suppress"] = "All"
        if reply_to:
            message["Reply-To"] = reply_to
        if mail_id:
            message["Message-ID"] = f"<{mail_id}@{self.sender.rpartition('@')[2]}>"
        message.set_content(text)
        try:
            await asyncio.to_thread(self._send, message)
        except smtplib.SMTPRecipientsRefused as error:
            is_final = all(code >= _REFUSED_FOR_GOOD for code, _ in error.recipients.values())
            refusal = RecipientRefusedError if is_final else HandOverError
            raise refusal(f"the mail server refused the recipient: {error}") from error
        except (OSError, smtplib.SMTPException) as error:
            raise HandOverError(f"{type(error).__name__}: {error}") from error

    def _send(self, message: EmailMessage) -> None:
        context = ssl.create_default_context() if self.context is None else self.context
        if self.security == "tls":
            client: smtplib.SMTP = smtplib.SMTP_SSL(
                self.host, self.port, timeout=TIMEOUT_SECONDS, context=context
            )
        else:
            client = smtplib.SMTP(self.host, self.port, timeout=TIMEOUT_SECONDS)
        with client:
            if self.security == "starttls":
                client.starttls(context=context)
            if self.user:
                client.login(self.user, self.password)
            client.send_message(message)


@dataclass(frozen=True, slots=True)
class MailReceiver:
    """Sends an email to the people who answer."""

    to: str
    mail: MailSender
    name: str = "email"

    async def send(self, case: Case) -> None:
        subject = f"Refdesk, a visitor: “{case.title}”" if case.title else "Refdesk"
        text = f"{MARK}\n\n{case.write(BY_MAIL)}" if case.reply_address else case.write()
        await self.mail.send(self.to, subject, text, reply_to=case.reply_address)


@dataclass(frozen=True, slots=True)
class SlackReceiver:
    """Posts to a Slack channel as the app, which reads replies in the thread of the post."""

    token: str
    channel: str
    url: str = SLACK_API
    name: str = "slack"

    async def send(self, case: Case) -> None:
        body = {"channel": self.channel, "unfurl_links": False, **_make_post(case.write(BY_THREAD))}
        headers = {"Authorization": f"Bearer {self.token}"}
        try:
            async with httpx2.AsyncClient(timeout=TIMEOUT_SECONDS) as client:
                answer = await client.post(
                    f"{self.url.rstrip('/')}/chat.postMessage", json=body, headers=headers
                )
            reply = answer.json()
        except (httpx2.HTTPError, ValueError) as error:
            raise HandOverError(type(error).__name__) from error
        if not isinstance(reply, dict) or reply.get("ok") is not True:
            reason = reply.get("error") if isinstance(reply, dict) else None
            raise HandOverError(f"Slack rejected the message: {reason or answer.status_code}")


@dataclass(frozen=True, slots=True)
class WebhookReceiver:
    """Posts to a webhook, signed in the same way as all webhooks."""

    endpoint: WebhookTarget
    name: str = "webhook"

    async def send(self, case: Case) -> None:
        question = case.question
        data = {
            "tenant": question.tenant,
            "assistant": question.assistant,
            "conversation_id": question.conversation_id,
            "message_id": question.message_id,
            "language": case.language,
            "note": case.note,
            "turns": [{"speaker": speaker, "text": text} for speaker, text in case.turns],
            "reply_url": case.link,
            "visitor_address": case.visitor_address,
        }
        event_id = name_event(REQUESTED, *question.conversation, question.message_id, case.note)
        body = json.dumps({"type": REQUESTED, "data": data}, ensure_ascii=False)
        error, _ = await post_event(self.endpoint, event_id, body)
        if error:
            raise HandOverError(error)


class Ticket(BaseModel):
    """The content of a link for an answer or, if `address` is set, of a link that confirms this
    email address.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    tenant: str
    assistant: str
    conversation_id: str
    message_id: str
    language: str
    expires_at: int
    address: str = ""

    @property
    def question(self) -> Question:
        """The message after which a person was requested."""
        return Question(
            tenant=self.tenant,
            assistant=self.assistant,
            conversation_id=self.conversation_id,
            message_id=self.message_id,
        )


class Tickets:
    """Signs and reads tickets (HMAC-SHA256). The signature is valid only for this purpose."""

    def __init__(self, secret: bytes, *, now: Callable[[], float] = time.time) -> None:
        self._secret = secret
        self._now = now

    def write(self, question: Question, language: str, address: str = "") -> str:
        """Return the ticket for a conversation, or for the address of its visitor."""
        ticket = Ticket(
            tenant=question.tenant,
            assistant=question.assistant,
            conversation_id=question.conversation_id,
            message_id=question.message_id,
            language=language,
            expires_at=int(self._now()) + LINK_SECONDS,
            address=address,
        )
        # Processes of an earlier release read tickets without an address.
        frame = ticket.model_dump_json(exclude_defaults=True)
        body = base64.urlsafe_b64encode(frame.encode()).decode()
        return f"{body}.{self._sign(body)}"

    def read(self, text: str) -> Ticket | None:
        """Return the content of a valid ticket, or None."""
        body, dot, signature = text.partition(".")
        if not dot or not text.isascii() or len(text) > LONGEST_TICKET:
            return None
        if not hmac.compare_digest(self._sign(body), signature):
            return None
        try:
            ticket = Ticket.model_validate_json(base64.urlsafe_b64decode(body))
        except (binascii.Error, ValidationError):
            return None
        return ticket if ticket.expires_at > self._now() else None

    def _sign(self, body: str) -> str:
        signed = hmac.new(self._secret, _PURPOSE + body.encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(signed).decode().rstrip("=")


async def send_case(receivers: Sequence[Receiver], case: Case) -> bool:
    """Send a conversation to all receivers; return whether at least one accepted it."""
    accepted = []
    for receiver in receivers:
        try:
            await receiver.send(case)
        except HandOverError as error:
            log.error(
                "handover_failed",
                receiver=receiver.name,
                message_id=case.question.message_id,
                error=str(error),
            )
        else:
            accepted.append(receiver.name)
    if accepted:
        log.info("handover_sent", receivers=accepted, message_id=case.question.message_id)
    return bool(accepted)


def _quote(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())


def _make_post(text: str) -> dict[str, Any]:
    """Return a Slack message in plain text, so that a visitor's text cannot contain mentions or
    links.
    """
    block = {"type": "plain_text", "text": text[:LONGEST_POST], "emoji": False}
    return {"text": "Refdesk", "blocks": [{"type": "section", "text": block}]}
