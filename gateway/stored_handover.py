"""Hands conversations over to people, and returns their answers as messages."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol
from uuid import uuid4

import structlog

from broker.ports import ReplyReader
from citations.marking import remove_escapes
from envelope.conversation import BY_PERSON, PERSON_REPLY
from envelope.question import CHANNEL_MARK, HTTP, Question
from gateway.chat_channels import CHAT_CHANNELS
from gateway.conversations import Conversations
from gateway.desk import Desk, Message
from gateway.errors import BusyError, HandOverLimitedError, MessageError
from gateway.http.routes.handover import PATH
from gateway.port import OpenCase
from gateway.text import clean_text
from memory.chat_state import RedisPushMemory
from memory.http_state import (
    Demand,
    RedisRates,
    RedisReplyAddresses,
    VisitorAddress,
    digest_of,
)
from memory.webhook_queue import WebhookDelivery
from notifications.handover import (
    LINK_SECONDS,
    Case,
    Receiver,
    Ticket,
    Tickets,
    send_case,
)
from notifications.visitor_mails import ANSWER, CONFIRM, NotYetError, VisitorMail, VisitorMails

log = structlog.get_logger("gateway")

FIXED = "person"
"""The type of a chat post that neither a model nor a search wrote, so that it has no rating
buttons.
"""
MOST_TURNS = 40
SENDING_SECONDS = 5.0
"""How long to wait before repeating a request whose conversation is currently being sent."""
ADDRESS_PER_DAY = 3
"""Maximum number of emails per day that ask the owner of one address to confirm it."""
OpenDesk = Callable[[str, str, Question], Desk]
"""Returns the desk of a channel, with a result list, for the assistant of a question."""


class Words(Protocol):
    """Returns a fixed text in a language, with values inserted."""

    def __call__(self, key: str, language: str, **values: str) -> str: ...


class StoredHandOver:
    """A `gateway.port.HandOver` that stores the answers of people, as messages, and the addresses.

    `assistants` contains the names under which visitors know the assistants. `mails` sends email to
    visitors, or is None if they receive none. `reply_sender` is the address to which people reply
    by email, or empty if no mailbox is read. `journals_alone` is true if this process may not read
    the memory of conversations.
    """

    def __init__(
        self,
        *,
        replies: ReplyReader,
        open_desk: OpenDesk,
        open_posts: Callable[[str, Question], RedisPushMemory],
        addresses: RedisReplyAddresses,
        rates: RedisRates,
        visitor_per_day: int,
        tenant_per_day: int,
        conversations: Conversations,
        receivers: Sequence[Receiver],
        tickets: Tickets,
        assistants: Mapping[tuple[str, str], str],
        words: Words,
        public_url: str,
        mails: VisitorMails | None,
        reply_sender: str,
        journals_alone: bool = False,
    ) -> None:
        self._replies = replies
        self._open_desk = open_desk
        self._open_posts = open_posts
        self._addresses = addresses
        self._rates = rates
        self._visitor_per_day = visitor_per_day
        self._tenant_per_day = tenant_per_day
        self._conversations = conversations
        self._receivers = receivers
        self._tickets = tickets
        self._names = assistants
        self._mails = mails
        self._words = words
        self._public_url = public_url
        self._reply_sender = reply_sender
        self._journals_alone = journals_alone

    def hands_over(self, tenant: str, assistant: str) -> bool:
        return (tenant, assistant) in self._names

    @property
    def mails_visitors(self) -> bool:
        return self._mails is not None

    async def request(
        self, question: Question, *, note: str, language: str, visitor: str, address: str = ""
    ) -> bool:
        known = await self._addresses.begin_sending(question, LINK_SECONDS)
        if known == "running":
            raise BusyError("this conversation is being sent to a person", SENDING_SECONDS)
        is_sent = known == "sent"
        try:
            if not is_sent:
                await self._admit(question, visitor)
            if address:
                await self._addresses.keep_address(question, address)
            if not is_sent:
                is_sent = await self._send(question, note, language, address)
        finally:
            await self._addresses.end_sending(question, is_sent=is_sent)
        return is_sent

    async def ask_to_confirm(
        self, question: Question, *, language: str, visitor: str
    ) -> Literal["asked", "confirmed", "failed"]:
        known = await self._addresses.find_address(question)
        if known is None or self._mails is None:
            return "failed"
        if known.is_confirmed:
            return "confirmed"
        try:
            limit = Demand(f"address/{digest_of(known.address)}", per_day=ADDRESS_PER_DAY)
            await self._admit(question, visitor, "mail ", limit)
        except HandOverLimitedError:
            return "failed"
        # Each request is an e-mail of its own, because the visitor may have lost the last one.
        mail = await self._mails.add(CONFIRM, question, language, once=uuid4().hex, held=True)
        is_sent = mail is not None and await self._mails.send(mail, self.write_mail)
        return "asked" if is_sent else "failed"

    def read_confirmation(self, ticket: str) -> str | None:
        found = self._tickets.read(ticket)
        return found.language if found is not None and found.address else None

    async def confirm(self, ticket: str) -> bool:
        found = self._tickets.read(ticket)
        if found is None or not found.address or not await self._is_kept(found.question):
            return False
        if not await self._addresses.confirm_address(found.question, found.address):
            return False
        for message in await self._conversations.recent_messages(found.question, limit=MOST_TURNS):
            if message.last.fields.get("answered_by") == BY_PERSON:
                await self._mail_answer(message.question, found.language)
        return True

    async def find_address(self, question: Question) -> VisitorAddress | None:
        return await self._addresses.find_address(question)

    async def _admit(
        self, question: Question, visitor: str, prefix: str = "", *further: Demand
    ) -> None:
        """Count a hand-over for the visitor and the tenant; raises `HandOverLimitedError`."""
        demands = [
            Demand(f"{prefix}visitor/{digest_of(visitor)}", per_day=self._visitor_per_day),
            Demand(f"{prefix}tenant", per_day=self._tenant_per_day),
            *further,
        ]
        shortage = await self._rates.admit(f"handover/{question.tenant}", demands)
        if shortage is not None:
            log.warning("handover_limited", tenant=question.tenant, limit=shortage.demand.name)
            raise HandOverLimitedError(
                "too many conversations were sent to people today", shortage.seconds
            )

    async def _send(self, question: Question, note: str, language: str, address: str) -> bool:
        base = self._public_url.rstrip("/")
        ticket = self._tickets.write(question, language)
        case = Case(
            question,
            await self._list_recent(question),
            note,
            language,
            f"{base}{PATH}{ticket}",
            await self._make_reply_address(question, ticket),
            address,
        )
        return await send_case(self._receivers, case)

    async def _make_reply_address(self, question: Question, ticket: str) -> str:
        """Return the address for email replies, or an empty string if no mailbox is read."""
        if not self._reply_sender:
            return ""
        name = await self._addresses.put(question, ticket, LINK_SECONDS)
        local, _, domain = self._reply_sender.partition("@")
        return f"{local}+{name}@{domain}"

    def is_ticket(self, ticket: str) -> bool:
        return self._tickets.read(ticket) is not None

    async def read(self, ticket: str) -> OpenCase | None:
        opened = self._read_of_staff(ticket)
        if opened is None or not await self._is_kept(opened.question):
            return None
        return OpenCase(await self._list_turns(opened.question))

    async def reply(self, ticket: str, text: str, *, reply_id: str = "") -> bool:
        try:
            return await self.deliver(ticket, text, reply_id)
        except BusyError:
            return False

    async def deliver(self, ticket: str, text: str, reply_id: str) -> bool:
        """Show an answer, and return whether it was accepted, as in `reply`. Raises `BusyError` if
        the call can be retried later.
        """
        opened = self._read_of_staff(ticket)
        if opened is None or not await self._is_kept(opened.question):
            return False
        return await self._submit(opened.question, opened.language, text, reply_id)

    async def answer(self, question: Question, text: str, language: str) -> bool:
        if not await self._is_kept(question):
            return False
        try:
            return await self._submit(question, language, text, "")
        except BusyError:
            return False

    def _read_of_staff(self, text: str) -> Ticket | None:
        """Return the ticket with which a person answers, or None; a ticket that confirms an address
        is not accepted.
        """
        ticket = self._tickets.read(text)
        return ticket if ticket is not None and not ticket.address else None

    async def is_address(self, name: str) -> bool:
        """Return whether people can currently reply to the email address with this name."""
        return await self._addresses.get(name) is not None

    async def deliver_mail(self, name: str, text: str, mail_id: str) -> bool:
        """Show an answer that was sent to the email address with this name, and return whether it
        was accepted; raises `BusyError`.
        """
        ticket = await self._addresses.get(name)
        if ticket is None:
            return False
        try:
            return await self.deliver(ticket, clean_text(text), f"mail {mail_id}")
        except MessageError:
            return False

    async def _submit(self, asked: Question, language: str, text: str, reply_id: str) -> bool:
        """Submit the answer as a message in the conversation, only once per id or, without an id,
        per text.

        In a chat, it is posted where the question was asked; returns False if that location is no
        longer known.
        """
        channel = find_channel(asked)
        once = reply_id or f"{asked.message_id}\x1f{text}"
        name = hashlib.sha256(once.encode()).hexdigest()[:24]
        is_pushed = any(spec.name == channel for spec in CHAT_CHANNELS)
        result_list = channel if is_pushed else ""
        desk = self._open_desk(channel, result_list, asked)
        journal = await self._replies.read_journal(asked)
        groups = journal[0].fields.get("groups") if journal else None
        message = Message(
            text=self._words("person_answered", language),
            conversation_id=asked.conversation_id,
            message_id=f"person-{name}",
            command=PERSON_REPLY,
            arguments=(language, text),
            language=language,
            groups=tuple(map(str, groups)) if isinstance(groups, list) else (),
        )
        answer = desk.question(message)
        if is_pushed and not await self._note_post(channel, asked, answer, language):
            return False
        await desk.submit(message)
        await self._mail_answer(answer, language)
        return True

    async def _mail_answer(self, answer: Question, language: str) -> None:
        """Queue an answer for the visitor's address if it is confirmed; each answer only once."""
        known = await self._addresses.find_address(answer)
        if self._mails is not None and known is not None and known.is_confirmed:
            await self._mails.add(ANSWER, answer, language)

    async def send_mails(self) -> None:
        """Send emails to visitors when they are due, until cancelled."""
        if self._mails is not None:
            await self._mails.run(self.write_mail)

    async def write_mail(self, mail: WebhookDelivery) -> VisitorMail | None:
        """Return an email to a visitor, or None if they have erased or replaced the data that it is
        about.

        Raises `NotYetError` while the answer is not in the conversation.
        """
        about = mail.question
        known = None if about is None else await self._addresses.find_address(about)
        if about is None or known is None or known.is_confirmed != (mail.kind == ANSWER):
            return None
        language = str(mail.data["language"])
        name = self._names.get((about.tenant, about.assistant), "")
        if mail.kind == CONFIRM:
            ticket = self._tickets.write(about, language, known.address)
            link = f"{self._public_url.rstrip('/')}{PATH}{ticket}"
            text = self._words("visitor_confirm_text", language, name=name, link=link)
            return VisitorMail(known.address, self._words("visitor_confirm_title", language), text)
        journal = await self._replies.read_journal(about)
        if not journal or journal[-1].fields.get("forgot"):
            return None
        if journal[-1].kind != "finished":
            raise NotYetError
        answer = str(journal[-1].fields.get("text") or "")
        note = self._words("visitor_answer_note", language, name=name)
        title = self._words("visitor_answer_title", language)
        return VisitorMail(known.address, title, f"{answer}\n\n{note}")

    async def _note_post(
        self, channel: str, asked: Question, answer: Question, language: str
    ) -> bool:
        """Store where the chat shows the answer, which is below the question; return False if that
        location is unknown.
        """
        memory = self._open_posts(channel, asked)
        post = (await memory.fields(asked)).get("post")
        if post is None:
            return False
        await memory.note(answer, post=post, language=language, fixed=FIXED)
        return True

    async def _is_kept(self, question: Question) -> bool:
        """Return whether the conversation is still stored, and has neither been erased nor
        expired.
        """
        journal = await self._replies.read_journal(question)
        if journal:
            return not journal[-1].fields.get("forgot")
        return not self._journals_alone and bool(await self._conversations.turns(question))

    async def _list_turns(self, question: Question) -> tuple[tuple[str, str], ...]:
        """Return the turns from the memory or, if it has none, from the journals, which are stored
        for a shorter time.
        """
        turns = await self._conversations.turns(question)
        if not turns:
            return await self._list_recent(question)
        return tuple((str(turn.speaker), turn.text) for turn in turns[-MOST_TURNS:])

    async def _list_recent(self, question: Question) -> tuple[tuple[str, str], ...]:
        """Return the turns from the journals, which chat channels are allowed to read."""
        recent = await self._conversations.recent_messages(question, limit=MOST_TURNS)
        turns = []
        for message in recent:
            turns.append(("user", str(message.first.fields.get("text") or "")))
            if message.last.kind == "finished":
                answer = remove_escapes(str(message.last.fields.get("text") or ""))
                turns.append(("assistant", answer))
        return tuple(turns)


def find_channel(question: Question) -> str:
    """Return the channel of a conversation, based on its id."""
    channel, mark, _ = question.conversation_id.partition(CHANNEL_MARK)
    return channel if mark else HTTP
