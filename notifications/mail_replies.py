"""Receives replies by email: reads a mailbox through IMAP, and extracts the text of replies.

The content of an email is untrusted. It is parsed in a separate process, and accepted only if it
was sent to the signed address of a conversation by somebody who may answer; automatic emails are
ignored. An email is marked as read and flagged before it is parsed, and marked as unread again
before its answer is stored. Therefore, an email that kills the process stays flagged, and an answer
that was not stored is read again. Its ID prevents duplicates.
"""

import asyncio
import hashlib
import imaplib
import re
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import structlog

from knowledge.documents.errors import ReadingError
from knowledge.documents.interchange.mail_parsing import ParsedMail

log = structlog.get_logger("handover")

MARK = "=== Refdesk: write your answer above this line ==="
"""The first line of an email, with which the quotation in a reply begins."""
POLL_SECONDS = 30.0
TIMEOUT_SECONDS = 20.0
MOST_MAILS = 50
"""Number of answers that are read at a time."""
MOST_UNREAD = 5_000
"""Number of emails whose recipients are checked at a time."""
BATCH = 100
_MOST_RECIPIENTS = 32_000
"""Maximum number of bytes in the headers that contain recipients."""
_MOST_TOKENS = 5
LONGEST_MAIL = 1_000_000
LONGEST_REPLY = 8_000
_TOKEN = re.compile(r"[a-z2-7]{32}", re.ASCII)
_ADDRESSED = re.compile(rb"\+([a-z2-7]{32})@")
_UID = re.compile(rb"\bUID ([0-9]{1,12})")
_SIZE = re.compile(rb"RFC822\.SIZE ([0-9]{1,12})")
_SIGNATURE = "-- "
"""The line above a signature (RFC 3676)."""
_RULE = "_-=* \t\xa0"
_RECIPIENTS = ("to", "cc", "delivered-to")
SEEN, FLAGGED = r"\Seen", r"\Flagged"
MOST_NAMED = 10
"""Maximum number of emails that are listed in a report to operators."""

Deliver = Callable[[str, str, str], Awaitable[bool]]
"""Stores an answer, given the token in its address, the text, and the email id; returns False if it
can never be stored.
"""
IsKnown = Callable[[str], Awaitable[bool]]
"""Returns whether the token belongs to an address to which people can currently answer."""


class MailboxError(Exception):
    """The mail server cannot be reached, or rejects the connection."""


class MailIgnoredError(Exception):
    """An email is not an answer; the message states why."""


class MailUnreadableError(Exception):
    """An email cannot be read, although it may be an answer; the message states why."""


@dataclass(frozen=True, slots=True)
class MailReply:
    """An answer: the token in the address to which it was sent, its text, and the id of the
    email.
    """

    token: str
    text: str
    mail_id: str


@dataclass(frozen=True, slots=True)
class Mailbox:
    """The inbox of a user on an IMAP server; `security` is `tls`, `starttls` or `none`."""

    host: str
    port: int
    user: str
    password: str
    security: str = "tls"
    context: ssl.SSLContext | None = None

    def open(self) -> imaplib.IMAP4:
        """Connect, sign in and open the inbox; raises `MailboxError`."""
        context = ssl.create_default_context() if self.context is None else self.context
        try:
            if self.security == "tls":
                client: imaplib.IMAP4 = imaplib.IMAP4_SSL(
                    self.host, self.port, ssl_context=context, timeout=TIMEOUT_SECONDS
                )
            else:
                client = imaplib.IMAP4(self.host, self.port, timeout=TIMEOUT_SECONDS)
            try:
                if self.security == "starttls":
                    client.starttls(context)
                client.login(self.user, self.password)
                _expect(client.select())
            except BaseException:
                client.shutdown()
                raise
        except (OSError, imaplib.IMAP4.error) as error:
            raise MailboxError(f"{type(error).__name__}: {error}") from error
        return client


class MailReader(Protocol):
    """Parses email in another process, with limits on time and memory."""

    def read_mail(self, data: bytes) -> ParsedMail:
        """Return an email; raises a `ReadingError`."""
        ...


class MailReplies:
    """Reads a mailbox every `POLL_SECONDS`, and delivers the answers of `people` to `address`.

    Known addresses cannot be guessed. Emails to other addresses are marked as read in bulk, based
    only on their recipients, so that they do not delay answers, however many there are.

    `unavailable` contains the errors after which an email is read again later. `open_reader`
    provides the parser for the emails of one poll. `report` receives a notice for operators about
    unreadable emails, or an empty string if there are none.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        is_known: IsKnown,
        deliver: Deliver,
        open_reader: Callable[[], AbstractContextManager[MailReader]],
        *,
        address: str,
        people: Iterable[str],
        unavailable: tuple[type[Exception], ...],
        report: Callable[[str], None],
    ) -> None:
        self._mailbox = mailbox
        self._is_known = is_known
        self._deliver = deliver
        self._open_reader = open_reader
        self._address = address
        self._people = frozenset(people)
        self._unavailable: tuple[type[Exception], ...] = (MailboxError, *unavailable)
        self._report = report

    async def run(self, is_on_duty: Callable[[], Awaitable[bool]]) -> None:
        """Read the mailbox while this process is on duty, until cancelled."""
        while True:
            try:
                if await is_on_duty():
                    await self.poll()
            except self._unavailable as error:
                log.warning(
                    "handover_mailbox_unavailable", error=str(error), retry_seconds=POLL_SECONDS
                )
            await asyncio.sleep(POLL_SECONDS)

    async def poll(self) -> int:
        """Deliver the unread answers, and mark them as read; return how many there were.

        Emails that cannot be read are marked as read and flagged.
        """
        client = await asyncio.to_thread(self._mailbox.open)
        try:
            delivered = 0
            uids = await self._find_answers(client)
            if uids:
                with self._open_reader() as reader:
                    for uid in uids:
                        delivered += await self._take(client, uid, reader)
            flagged = await asyncio.to_thread(self._search, client, "FLAGGED")
            self._report(_describe_unread(flagged))
            return delivered
        except (OSError, imaplib.IMAP4.error) as error:
            raise MailboxError(f"{type(error).__name__}: {error}") from error
        finally:
            client.shutdown()

    async def _find_answers(self, client: imaplib.IMAP4) -> list[str]:
        """Return the oldest unread emails to known addresses, and mark those to other addresses as
        read.
        """
        unread = (await asyncio.to_thread(self._search, client, "UNSEEN"))[:MOST_UNREAD]
        answers: list[str] = []
        for start in range(0, len(unread), BATCH):
            batch = unread[start : start + BATCH]
            tokens = await asyncio.to_thread(_fetch_tokens, client, batch, self._address)
            known = [
                uid for uid in batch if uid not in tokens or await self._knows_any(tokens[uid])
            ]
            answers += known
            if others := [uid for uid in batch if uid not in known]:
                await asyncio.to_thread(_flag, client, ",".join(others), "+", SEEN)
                log.warning("handover_mail_ignored", reason="no_address", mails=len(others))
            if len(answers) >= MOST_MAILS:
                break
        return answers[:MOST_MAILS]

    async def _knows_any(self, tokens: Iterable[str]) -> bool:
        for token in tokens:
            if await self._is_known(token):
                return True
        return False

    async def _take(self, client: imaplib.IMAP4, uid: str, reader: MailReader) -> bool:
        """Read one email; return whether it was an answer that was delivered.

        The email is marked before it is parsed, so that it is not parsed again if it kills the
        process.
        """
        await asyncio.to_thread(_flag, client, uid, "+", SEEN, FLAGGED)
        try:
            reply = await self._read(client, uid, reader)
        except MailUnreadableError as unreadable:
            log.warning("handover_mail_unreadable", uid=uid, reason=str(unreadable))
            return False
        except MailIgnoredError as ignored:
            log.warning("handover_mail_ignored", reason=str(ignored))
            await asyncio.to_thread(_flag, client, uid, "-", FLAGGED)
            return False
        await asyncio.to_thread(_flag, client, uid, "-", SEEN, FLAGGED)
        is_delivered = await self._deliver(reply.token, reply.text, reply.mail_id)
        if not is_delivered:
            log.warning("handover_mail_ignored", reason="conversation_gone")
        await asyncio.to_thread(_flag, client, uid, "+", SEEN)
        return is_delivered

    async def _read(self, client: imaplib.IMAP4, uid: str, reader: MailReader) -> MailReply:
        """Return the answer in an email; raises `MailIgnoredError` or `MailUnreadableError`."""
        data = await asyncio.to_thread(_fetch, client, uid)
        if data is None:
            raise MailUnreadableError("too_large")
        try:
            mail = await asyncio.to_thread(reader.read_mail, data)
        except ReadingError as error:
            raise MailUnreadableError(str(error)) from error
        reply = read_reply(mail, address=self._address, people=self._people)
        return replace(reply, mail_id=reply.mail_id or hashlib.sha256(data).hexdigest())

    def _search(self, client: imaplib.IMAP4, criterion: str) -> list[str]:
        local = self._address.partition("@")[0]
        parts = _expect(client.uid("SEARCH", criterion, "TO", f'"{local}+"'))
        return [uid.decode() for part in parts for uid in (part or b"").split()]


def read_reply(mail: ParsedMail, *, address: str, people: Iterable[str]) -> MailReply:
    """Return the answer in an email; its id may be empty. Raises `MailIgnoredError`."""
    token = _find_token(mail, address)
    text = cut_reply(mail.text, address)
    if reason := _find_objection(mail, frozenset(people)):
        raise MailIgnoredError(reason)
    if not token or not text:
        raise MailIgnoredError("empty" if token else "no_address")
    return MailReply(token, text, mail.read_header("Message-ID"))


def cut_reply(text: str, address: str) -> str:
    """Return the text of a reply, without its quotation and signature.

    The quotation begins with our own first line. Above it, email programs insert a line, in any
    language, that names our address as the quoted sender.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    at = next((at for at, line in enumerate(lines) if MARK in line), None)
    if at is None:
        return _join(lines, "")
    # If a person writes below the quotation, there is nothing above it.
    return _join(lines[:at], address) or _join(lines[at:], "")


def _describe_unread(uids: Sequence[str]) -> str:
    if not uids:
        return ""
    named = ", ".join(uids[:MOST_NAMED])
    return (
        f"replies to visitors that could not be read and were not delivered: {len(uids)}. They are "
        f"flagged in the mailbox (UID {named}); answer with the link instead, and remove the flag"
    )


def _join(lines: list[str], address: str) -> str:
    kept = [line for line in lines if not line.startswith(">") and MARK not in line]
    kept = _trim_end(kept)
    if address:
        kept = _trim_end(kept[: _find_attribution(kept, address)])
    end = kept.index(_SIGNATURE) if _SIGNATURE in kept else len(kept)
    return "\n".join(line.rstrip() for line in kept[:end]).strip()[:LONGEST_REPLY]


def _trim_end(lines: list[str]) -> list[str]:
    """Return the lines without empty lines and rules at their end."""
    end = next((at for at in range(len(lines), 0, -1) if lines[at - 1].strip(_RULE)), 0)
    return lines[:end]


def _find_attribution(lines: list[str], address: str) -> int:
    """Return the index of the line in the last paragraph that attributes the quotation to our
    address, or the number of lines if there is none.
    """
    blank = (at for at in range(len(lines), 0, -1) if not lines[at - 1].strip())
    begin = next(blank, 0)
    attribution = next(
        (at for at in range(begin, len(lines)) if address in lines[at].lower()), None
    )
    if attribution is None:
        return len(lines)
    # Where the line was wrapped before the address, the next one begins with it.
    return max(begin, attribution - lines[attribution].startswith("<"))


def _find_objection(mail: ParsedMail, people: frozenset[str]) -> str:
    """Return why an email is ignored: it is automatic (RFC 3834), a report, or from an unknown
    sender.
    """
    is_automatic = mail.read_header("Auto-Submitted").partition(";")[0].strip().lower()
    precedence = mail.read_header("Precedence").lower()
    if is_automatic not in {"", "no"} or precedence in {"bulk", "junk", "list", "auto_reply"}:
        return "automatic"
    if mail.content_type == "multipart/report" or mail.read_header("Return-Path") == "<>":
        return "automatic"
    senders = mail.addresses.get("from", [])
    return "" if len(senders) == 1 and senders[0] in people else "sender_not_allowed"


def _find_token(mail: ParsedMail, address: str) -> str:
    local, _, domain = address.lower().partition("@")
    for recipient in (
        recipient for name in _RECIPIENTS for recipient in mail.addresses.get(name, [])
    ):
        name, _, place = recipient.partition("@")
        token = name.removeprefix(f"{local}+")
        if place == domain and token != name and _TOKEN.fullmatch(token):
            return token
    return ""


def _fetch_tokens(client: imaplib.IMAP4, uids: Sequence[str], address: str) -> dict[str, list[str]]:
    """Return the tokens in the recipients of each email, without parsing it."""
    local, _, domain = address.lower().encode().partition(b"@")
    names = " ".join(_RECIPIENTS).upper()
    asked = f"(UID BODY.PEEK[HEADER.FIELDS ({names})]<0.{_MOST_RECIPIENTS}>)"
    parts = _expect(client.uid("FETCH", ",".join(uids), asked))
    tokens: dict[str, list[str]] = {}
    # The UID is before the headers or after them, in a part of its own.
    for part, following in zip(parts, [*parts[1:], b""], strict=True):
        if not isinstance(part, tuple):
            continue
        after = b"" if isinstance(following, tuple) else bytes(following or b"")
        if (uid := _UID.search(part[0]) or _UID.search(after)) is not None:
            headers = part[1].lower()
            own = (
                match[1].decode()
                for match in _ADDRESSED.finditer(headers)
                if headers.endswith(local, 0, match.start())
                and headers.startswith(domain, match.end())
            )
            tokens[uid[1].decode()] = list(dict.fromkeys(own))[:_MOST_TOKENS]
    return tokens


def _fetch(client: imaplib.IMAP4, uid: str) -> bytes | None:
    """Return an email, or None if it is too large.

    A server may send other responses between the requested ones, such as new flags.
    """
    described = _expect(client.uid("FETCH", uid, "(RFC822.SIZE)"))
    sizes = [match for part in described if (match := _SIZE.search(_join_parts(part)))]
    if len(sizes) != 1 or int(sizes[0][1]) > LONGEST_MAIL:
        return None
    parts = _expect(client.uid("FETCH", uid, "(BODY.PEEK[])"))
    bodies = [part for part in parts if isinstance(part, tuple) and b"BODY[]" in part[0].upper()]
    return bytes(bodies[0][1]) if bodies else None


def _join_parts(part: Any) -> bytes:
    return b" ".join(part) if isinstance(part, tuple) else bytes(part or b"")


def _flag(client: imaplib.IMAP4, uid: str, change: str, *flags: str) -> None:
    _expect(client.uid("STORE", uid, f"{change}FLAGS.SILENT", f"({' '.join(flags)})"))


def _expect(answer: tuple[str, list[Any]]) -> list[Any]:
    status, data = answer
    if status != "OK":
        raise imaplib.IMAP4.error(f"the IMAP server responded with {status}: {data!r:.200}")
    return data
