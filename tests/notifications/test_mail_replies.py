"""What people answer by e-mail is found in their mails, and nothing else is."""

import imaplib
from collections.abc import AsyncIterator
from contextlib import nullcontext
from dataclasses import dataclass
from email.message import EmailMessage
from functools import partial
from typing import Any

import pytest

from knowledge.documents.errors import TooSlowError, WrongFormatError
from knowledge.documents.interchange.mail_parsing import ParsedMail, parse_mail
from knowledge.isolation.messages import ReadingLimits
from knowledge.isolation.reader_process import ReaderProcess
from notifications import mail_replies
from notifications.mail_replies import (
    LONGEST_MAIL,
    MARK,
    Mailbox,
    MailboxError,
    MailIgnoredError,
    MailReplies,
    cut_reply,
    read_reply,
)
from tests.support.mailbox_server import MailboxServer, run_mailbox_server

DESK, ADA = "desk@acme.test", "ada@acme.test"
TOKEN = "abcdefgh" * 4
EXPIRED = "z" * 32
"""The token of an address that expires while the mail is read."""
QUOTE = f"> {MARK}\n>\n> Somebody asked for a person.\n> > Older words"


def write_mail(
    text: str = "Yes, you may.", *, sender: str = ADA, to: str = f"desk+{TOKEN}@acme.test",
    mail_id: str = "<1@acme.test>", **headers: str,
) -> EmailMessage:  # fmt: skip
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Message-ID"] = sender, to, mail_id
    for name, value in headers.items():
        mail[name.replace("_", "-")] = value
    mail.set_content(text)
    return mail


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"Yes.\n\nOn Tue, 24 Nov 2026 at 18:50 <{DESK}> wrote:\n\n{QUOTE}", "Yes."),
        (f"Yes.\n\nOn Tue, 24 Nov 2026 at 18:50 Refdesk\n<{DESK}> wrote:\n{QUOTE}", "Yes."),
        (f"Ja.\r\n\r\nAm 24.11.26 um 18:50 schrieb {DESK}:\r\n{QUOTE}", "Ja."),
        (f"Ja.\nAm 24.11.26 um 18:50 schrieb {DESK}:\n{QUOTE}", "Ja."),
        (f"はい。\n\n2026年11月24日(火) 18:50 <{DESK}>:\n\n{QUOTE}", "はい。"),
        (
            f"Yes.\n\n________________________________\nFrom: {DESK}\nSent: Tuesday\n"
            f"To: {ADA}\nSubject: Refdesk: x\n\n{MARK}\n\nSomebody asked",
            "Yes.",
        ),
        (f"On Tue <{DESK}> wrote:\n{QUOTE}\n\nYes, below.", "Yes, below."),
        (f"First.\n\n- one\n- two\n\n-- \nAda Byron\n\nOn Tue <{DESK}> wrote:\n{QUOTE}",
         "First.\n\n- one\n- two"),
        (f"Write to {DESK}.", f"Write to {DESK}."),
        (f"One.\n\nTwo.\n\n{MARK}\nall of it", "One.\n\nTwo."),
        (QUOTE, ""),
    ],
)  # fmt: skip
def test_the_quotation_in_a_reply_is_removed_in_any_language(text: str, found: str) -> None:
    assert cut_reply(text, DESK) == found


def test_a_long_hostile_text_is_cut_in_linear_time() -> None:
    """With the libraries for this, the first takes half a minute at a hundredth of the length."""
    hostile = "On " * 200_000 + "\n" * 100_000 + ">" * 100_000 + MARK

    assert len(cut_reply(hostile, DESK)) <= 8_000


def test_a_mail_in_html_alone_is_read_as_text() -> None:
    mail = EmailMessage()
    mail["From"], mail["To"] = ADA, f"desk+{TOKEN}@acme.test"
    mail.set_content(
        "<html><head><style>p{}</style></head><body><p>Yes &amp; <b>no</b></p><script>x()</script>"
        f"<blockquote>{MARK}</blockquote></body></html>",
        subtype="html",
    )

    reply = read_reply(parse(mail.as_bytes()), address=DESK, people=[ADA])

    assert (reply.token, " ".join(reply.text.split())) == (TOKEN, "Yes & no")


@pytest.mark.parametrize(
    ("mail", "reason"),
    [
        (write_mail(Auto_Submitted="auto-replied"), "automatic"),
        (write_mail(Auto_Submitted="auto-generated; owner=x"), "automatic"),
        (write_mail(Precedence="bulk"), "automatic"),
        (write_mail(Return_Path="<>"), "automatic"),
        (write_mail(sender="eve@evil.test"), "sender_not_allowed"),
        (write_mail(sender=f"{ADA}, eve@evil.test"), "sender_not_allowed"),
        (write_mail(sender=f'"{ADA}" <eve@evil.test>'), "sender_not_allowed"),
        (write_mail(to=DESK), "no_address"),
        (write_mail(to=f"desk+{TOKEN}@evil.test"), "no_address"),
        (write_mail(to=f"desk+{TOKEN.upper()}x@acme.test"), "no_address"),
        (write_mail(QUOTE), "empty"),
        (b"From: " + b"a@b.test, " * 90_000 + ADA.encode() + b"\r\n\r\nx", "sender_not_allowed"),
        (b"From: =?utf-8?q?ada=40acme=2Etest=2C?= <eve@evil.test>\r\n\r\nx",
         "sender_not_allowed"),
        (b"\x00\xff\xfe", "sender_not_allowed"),
    ],
)  # fmt: skip
def test_mails_that_are_no_answer_are_ignored(mail: EmailMessage | bytes, reason: str) -> None:
    sent = mail if isinstance(mail, bytes) else mail.as_bytes()

    with pytest.raises(MailIgnoredError, match=f"^{reason}$"):
        read_reply(parse(sent), address=DESK, people=[ADA])


@pytest.fixture
async def server() -> AsyncIterator[MailboxServer]:
    async with run_mailbox_server() as opened:
        yield opened


class BrokenError(Exception):
    """The desk cannot store an answer now."""


class Desk:
    """Notes what is delivered; fails as often as `failures` says, after it was noted."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.delivered: list[tuple[str, str, str]] = []
        self.reports: list[str] = []

    async def knows(self, token: str) -> bool:
        return token in {TOKEN, EXPIRED}

    async def deliver(self, token: str, text: str, mail_id: str) -> bool:
        self.delivered.append((token, text, mail_id))
        if self.failures:
            self.failures -= 1
            raise BrokenError
        return token == TOKEN


def parse(mail: bytes) -> ParsedMail:
    return parse_mail(mail)


class Reader:
    """Parses in this process, which is faster than the isolated one."""

    def read_mail(self, data: bytes) -> ParsedMail:
        return parse(data)


class LimitedReader:
    """Finds that a mail takes too long."""

    def read_mail(self, data: bytes) -> ParsedMail:
        if b"slow" in data:
            raise TooSlowError("took longer than 5 s to read")
        return parse(data)


class DyingReader:
    """The process that parses ends, and the process of the desk with it."""

    def read_mail(self, data: bytes) -> ParsedMail:
        raise KeyboardInterrupt


def read(server: MailboxServer, desk: Desk, **other: Any) -> MailReplies:
    given = {"mailbox": server.mailbox, "open_reader": partial(nullcontext, Reader()), **other}
    return MailReplies(
        given["mailbox"], desk.knows, desk.deliver, given["open_reader"], address=DESK,
        people=[ADA], unavailable=(BrokenError,), report=desk.reports.append,
    )  # fmt: skip


async def test_each_answer_is_read_once_and_hostile_mails_stop_nothing(
    server: MailboxServer,
) -> None:
    desk = Desk()
    replies = read(server, desk)
    await server.put(b"To: desk+x@acme.test\r\nSubject: \xff\xfe\r\n\r\n\x00")
    await server.put(b"To: desk+x@acme.test\r\nContent-Type: text/plain; a*\r\n\r\nx")
    await server.put(write_mail(sender="eve@evil.test"))
    await server.put(write_mail("Expired.", to=f"desk+{EXPIRED}@acme.test"))
    await server.put(write_mail(f"Yes.\n\nOn Tue <{DESK}> wrote:\n{QUOTE}"))
    await server.put(write_mail("A letter to somebody else.", to="bob@acme.test"))

    first, second = await replies.poll(), await replies.poll()

    assert (first, second) == (1, 0)
    assert [text for _, text, _ in desk.delivered] == ["Expired.", "Yes."]
    assert await server.count_unread() == 1
    assert desk.reports == ["", ""]


async def test_however_many_mails_to_invented_addresses_come_an_answer_is_read_at_once(
    server: MailboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail_replies, "MOST_MAILS", 2)
    monkeypatch.setattr(mail_replies, "BATCH", 2)
    desk = Desk()
    for letter in "abcde":
        token = letter * 32
        await server.put(write_mail("Spam.", to=f"desk+{token}@acme.test"))
    await server.put(write_mail(to=f"Desk <desk+{TOKEN.upper()}@ACME.test>"))

    delivered = await read(server, desk).poll()

    assert (delivered, await server.count_unread()) == (1, 0)
    assert desk.delivered == [(TOKEN, "Yes, you may.", "<1@acme.test>")]
    assert desk.reports == [""]


async def test_mails_that_cannot_be_read_are_flagged_and_reported_and_the_next_are_read(
    server: MailboxServer,
) -> None:
    desk = Desk()
    await server.put(write_mail("x" * (LONGEST_MAIL + 1)))
    await server.put(write_mail("slow"))
    await server.put(write_mail())

    delivered = await read(server, desk, open_reader=partial(nullcontext, LimitedReader())).poll()

    assert (delivered, await server.is_read()) == (1, True)
    [report] = desk.reports
    assert report.startswith("replies to visitors that could not be read and were not delivered: 2")
    assert "(UID 101, 102)" in report


def test_mail_is_parsed_in_a_process_of_its_own() -> None:
    with ReaderProcess(ReadingLimits(seconds=20.0, memory_mb=256)) as reader:
        mail = reader.read_mail(write_mail("<b>Yes.</b>").as_bytes())
        with pytest.raises(WrongFormatError):
            reader.read_mail(b"Content-Type: message/rfc822\r\n\r\n" * 20_000)

    assert read_reply(mail, address=DESK, people=[ADA]).text == "<b>Yes.</b>"


async def test_a_mail_that_ends_the_process_is_not_parsed_again(server: MailboxServer) -> None:
    desk = Desk()
    await server.put(write_mail())

    with pytest.raises(KeyboardInterrupt):
        await read(server, desk, open_reader=partial(nullcontext, DyingReader())).poll()
    again = await read(server, desk).poll()

    assert (again, desk.delivered, await server.is_read()) == (0, [], True)
    assert desk.reports[-1].startswith(
        "replies to visitors that could not be read and were not delivered: 1"
    )


async def test_an_answer_that_was_not_acknowledged_is_delivered_again_under_its_id(
    server: MailboxServer,
) -> None:
    desk = Desk(failures=1)
    replies = read(server, desk)
    await server.put(write_mail())

    with pytest.raises(BrokenError):
        await replies.poll()
    unread = await server.count_unread()
    again = await replies.poll()

    assert (unread, again) == (1, 1)
    assert desk.delivered == [(TOKEN, "Yes, you may.", "<1@acme.test>")] * 2


@dataclass(frozen=True, slots=True)
class OddMailbox(Mailbox):
    """A mailbox whose server tells of new flags between its answers, and goes away after `calls`
    commands.
    """

    calls: int = 1_000

    def open(self) -> imaplib.IMAP4:
        client = Mailbox.open(self)
        ask, left = client.uid, [self.calls]

        def uid(command: str, *given: str) -> tuple[str, list[Any]]:
            if not left[0]:
                raise imaplib.IMAP4.abort("connection lost")
            left[0] -= 1
            status, parts = ask(command, *given)
            news = [rb"7 (FLAGS (\Seen))"] if command == "FETCH" else []
            return status, [*news, *parts, *news]

        client.uid = uid  # type: ignore[method-assign]
        return client


def make_odd(server: MailboxServer, calls: int = 1_000) -> OddMailbox:
    usual = server.mailbox
    return OddMailbox(
        usual.host, usual.port, usual.user, usual.password, usual.security, calls=calls
    )


async def test_unsolicited_responses_of_a_mail_server_hide_no_answer(server: MailboxServer) -> None:
    desk = Desk()
    await server.put(write_mail())

    assert await read(server, desk, mailbox=make_odd(server)).poll() == 1


async def test_an_outage_between_any_two_commands_loses_no_answer_without_a_trace(
    server: MailboxServer,
) -> None:
    """A mail reaches the desk, is read again, or stays flagged for a person."""
    usual = 0
    for calls in range(9):
        desk = Desk()
        await server.put(write_mail(f"Answer {calls}.", mail_id=f"<{calls}@acme.test>"))
        try:
            await read(server, desk, mailbox=make_odd(server, calls)).poll()
        except MailboxError:
            await read(server, desk).poll()
        else:
            usual += 1
        texts = {text for _, text, _ in desk.delivered}
        is_flagged = (
            f"UID {101 + calls}" in desk.reports[-1] or f", {101 + calls}" in desk.reports[-1]
        )
        assert await server.is_read()
        assert texts == {f"Answer {calls}."} or is_flagged
    assert usual == 1
