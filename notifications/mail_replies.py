"""Brings back what people answer by e-mail: reads a mailbox by IMAP, and finds their words.

What a mail says is data: it is read only if it was sent to the signed address of a conversation by
somebody who may answer, and no automatic mail is read. A mail is marked as read once its answer is
stored; a process that dies before reads it again, and its id keeps it from appearing twice.
"""

import asyncio
import hashlib
import imaplib
import re
import ssl
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.errors import MessageError
from email.message import EmailMessage
from email.utils import getaddresses
from typing import Any

import structlog
from selectolax.lexbor import LexborHTMLParser

log = structlog.get_logger("handover")

MARK = "=== Refdesk: write your answer above this line ==="
"""The first line of an e-mail; what a reply quotes begins with it."""
POLL_SECONDS = 30.0
TIMEOUT_SECONDS = 20.0
MOST_MAILS = 50
"""The mails that are read at a time."""
LONGEST_MAIL = 1_000_000
LONGEST_REPLY = 8_000
_TOKEN = re.compile(r"[a-z2-7]{32}", re.ASCII)
_SIZE = re.compile(rb"RFC822\.SIZE ([0-9]{1,12})")
_SIGNATURE = "-- "
"""The line above a signature (RFC 3676)."""
_RULE = "_-=* \t\xa0"
_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, MessageError, RecursionError)
"""What the standard library raises for mails that are none."""

Deliver = Callable[[str, str, str], Awaitable[bool]]
"""Stores an answer: token of its address, text, id of the mail; False: it never can be stored."""


class MailboxError(Exception):
    """The mail server cannot be reached, or refuses."""


class MailIgnoredError(Exception):
    """A mail is no answer; the message says why."""


@dataclass(frozen=True, slots=True)
class MailReply:
    """An answer: the token of the address that it was sent to, its text, and the id of the mail."""

    token: str
    text: str
    mail_id: str


@dataclass(frozen=True, slots=True)
class Mailbox:
    """The inbox of a user of an IMAP server; `security` is `tls`, `starttls` or `none`."""

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


class MailReplies:
    """Reads a mailbox every `POLL_SECONDS`, and delivers what `people` answer to `address`.

    `unavailable` are the errors after which a mail is read again later.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        deliver: Deliver,
        *,
        address: str,
        people: Iterable[str],
        unavailable: tuple[type[Exception], ...],
    ) -> None:
        self._mailbox = mailbox
        self._deliver = deliver
        self._address = address
        self._people = frozenset(people)
        self._unavailable: tuple[type[Exception], ...] = (MailboxError, *unavailable)

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
        """Deliver the unread answers, and mark them as read; return their number."""
        client = await asyncio.to_thread(self._mailbox.open)
        try:
            delivered = 0
            for uid in await asyncio.to_thread(self._list_unread, client):
                delivered += await self._take(await asyncio.to_thread(_fetch, client, uid))
                await asyncio.to_thread(_mark_read, client, uid)
            return delivered
        except (OSError, imaplib.IMAP4.error) as error:
            raise MailboxError(f"{type(error).__name__}: {error}") from error
        finally:
            client.shutdown()

    async def _take(self, mail: bytes | None) -> bool:
        try:
            if mail is None:
                raise MailIgnoredError("too_large")
            reply = read_reply(mail, address=self._address, people=self._people)
            if not await self._deliver(reply.token, reply.text, reply.mail_id):
                raise MailIgnoredError("conversation_gone")
        except MailIgnoredError as ignored:
            log.warning("handover_mail_ignored", reason=str(ignored))
            return False
        return True

    def _list_unread(self, client: imaplib.IMAP4) -> list[str]:
        local = self._address.partition("@")[0]
        [found] = _expect(client.uid("SEARCH", "UNSEEN", "TO", f'"{local}+"'))
        return [uid.decode() for uid in (found or b"").split()[:MOST_MAILS]]


def read_reply(mail: bytes, *, address: str, people: Iterable[str]) -> MailReply:
    """Return the answer in a mail; raises `MailIgnoredError`."""
    message: Any = message_from_bytes(mail, policy=policy.default)
    try:
        reason = _find_objection(message, frozenset(people))
        token = _find_token(message, address)
        text = cut_reply(_read_text(message), address)
        mail_id = " ".join(str(message.get("Message-ID") or "").split())
    except _UNREADABLE as error:
        raise MailIgnoredError("unreadable") from error
    if reason or not token or not text:
        raise MailIgnoredError(reason or ("no_address" if not token else "empty"))
    return MailReply(token, text, mail_id or hashlib.sha256(mail).hexdigest())


def cut_reply(text: str, address: str) -> str:
    """Return what a person wrote in a reply, without what it quotes and without the signature.

    What is quoted begins with our own first line. Above it, a mail program says whom it quotes, in
    any language, with our address.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    at = next((at for at, line in enumerate(lines) if MARK in line), None)
    if at is None:
        return _join(lines, "")
    # A person who writes below what they quote has left nothing above it.
    return _join(lines[:at], address) or _join(lines[at:], "")


def _join(lines: list[str], address: str) -> str:
    kept = [line for line in lines if not line.startswith(">") and MARK not in line]
    kept = _trim_end(kept)
    if address:
        kept = _trim_end(kept[: _find_attribution(kept, address)])
    end = kept.index(_SIGNATURE) if _SIGNATURE in kept else len(kept)
    return "\n".join(line.rstrip() for line in kept[:end]).strip()[:LONGEST_REPLY]


def _trim_end(lines: list[str]) -> list[str]:
    """Return the lines without the empty ones and the rules at their end."""
    end = next((at for at in range(len(lines), 0, -1) if lines[at - 1].strip(_RULE)), 0)
    return lines[:end]


def _find_attribution(lines: list[str], address: str) -> int:
    """Return where the last paragraph begins to say who is quoted: with our address."""
    blank = (at for at in range(len(lines), 0, -1) if not lines[at - 1].strip())
    begin = next(blank, 0)
    found = next((at for at in range(begin, len(lines)) if address in lines[at].lower()), None)
    if found is None:
        return len(lines)
    # Where the line was wrapped before the address, the next one begins with it.
    return max(begin, found - lines[found].startswith("<"))


def _find_objection(message: EmailMessage, people: frozenset[str]) -> str:
    """Return why a mail is not read: an automatic one (RFC 3834), a report, another sender."""
    is_automatic = str(message.get("Auto-Submitted") or "no").partition(";")[0].strip().lower()
    precedence = str(message.get("Precedence") or "").strip().lower()
    if is_automatic != "no" or precedence in {"bulk", "junk", "list", "auto_reply"}:
        return "automatic"
    if message.get_content_type() == "multipart/report" or message.get("Return-Path") == "<>":
        return "automatic"
    senders = [one for _, one in getaddresses([str(one) for one in message.get_all("From", [])])]
    return "" if len(senders) == 1 and senders[0].lower() in people else "sender_not_allowed"


def _find_token(message: EmailMessage, address: str) -> str:
    local, _, domain = address.lower().partition("@")
    named = [str(one) for name in ("To", "Cc", "Delivered-To") for one in message.get_all(name, [])]
    for _, one in getaddresses(named):
        name, _, place = one.lower().partition("@")
        token = name.removeprefix(f"{local}+")
        if place == domain and token != name and _TOKEN.fullmatch(token):
            return token
    return ""


def _read_text(message: EmailMessage) -> str:
    body: Any = message.get_body(("plain", "html"))
    if body is None:
        return ""
    text = str(body.get_content())
    if body.get_content_type() != "text/html":
        return text
    page = LexborHTMLParser(text)
    for quoted in page.css("blockquote, style, script, head"):
        quoted.decompose()
    return "" if page.body is None else page.body.text(separator="\n")


def _fetch(client: imaplib.IMAP4, uid: str) -> bytes | None:
    """Return a mail; None if it is too large."""
    [described] = _expect(client.uid("FETCH", uid, "(RFC822.SIZE)"))
    size = _SIZE.search(described) if isinstance(described, bytes) else None
    if size is None or int(size[1]) > LONGEST_MAIL:
        return None
    parts = _expect(client.uid("FETCH", uid, "(BODY.PEEK[])"))
    return next((bytes(part[1]) for part in parts if isinstance(part, tuple)), None)


def _mark_read(client: imaplib.IMAP4, uid: str) -> None:
    _expect(client.uid("STORE", uid, "+FLAGS.SILENT", r"(\Seen)"))


def _expect(answer: tuple[str, list[Any]]) -> list[Any]:
    status, found = answer
    if status != "OK":
        raise imaplib.IMAP4.error(f"expected OK, found {status}: {found!r:.200}")
    return found
