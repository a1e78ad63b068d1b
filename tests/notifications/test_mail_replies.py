"""What people answer by e-mail is found in their mails, and nothing else is."""

from collections.abc import AsyncIterator
from email.message import EmailMessage

import pytest

from notifications.mail_replies import (
    LONGEST_MAIL,
    MARK,
    MailIgnoredError,
    MailReplies,
    cut_reply,
    read_reply,
)
from tests.support.mailbox_server import MailboxServer, run_mailbox_server

DESK, ADA = "desk@acme.test", "ada@acme.test"
TOKEN = "abcdefgh" * 4
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
def test_what_a_reply_quotes_is_cut_off_in_any_language(text: str, found: str) -> None:
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

    reply = read_reply(mail.as_bytes(), address=DESK, people=[ADA])

    assert (reply.token, " ".join(reply.text.split())) == (TOKEN, "Yes & no")
    assert len(reply.mail_id) == 64


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
        (b"From: " + ADA.encode() + b"\r\nContent-Type: text/plain; charset=no-such\r\n\r\nx",
         "unreadable"),
        (b"\x00\xff\xfe", "sender_not_allowed"),
    ],
)  # fmt: skip
def test_mails_that_are_no_answer_are_ignored(mail: EmailMessage | bytes, reason: str) -> None:
    sent = mail if isinstance(mail, bytes) else mail.as_bytes()

    with pytest.raises(MailIgnoredError, match=f"^{reason}$"):
        read_reply(sent, address=DESK, people=[ADA])


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

    async def deliver(self, token: str, text: str, mail_id: str) -> bool:
        self.delivered.append((token, text, mail_id))
        if self.failures:
            self.failures -= 1
            raise BrokenError
        return token == TOKEN


def read(server: MailboxServer, desk: Desk) -> MailReplies:
    return MailReplies(
        server.mailbox, desk.deliver, address=DESK, people=[ADA], unavailable=(BrokenError,)
    )


async def test_each_answer_is_read_once_and_hostile_mails_stop_nothing(
    server: MailboxServer,
) -> None:
    desk = Desk()
    replies = read(server, desk)
    await server.put(b"To: desk+x@acme.test\r\nSubject: \xff\xfe\r\n\r\n\x00")
    await server.put(write_mail(sender="eve@evil.test"))
    await server.put(write_mail("x" * (LONGEST_MAIL + 1)))
    await server.put(write_mail("Expired.", to=f"desk+{'z' * 32}@acme.test"))
    await server.put(write_mail(f"Yes.\n\nOn Tue <{DESK}> wrote:\n{QUOTE}"))
    await server.put(write_mail("A letter to somebody else.", to="bob@acme.test"))

    first, second = await replies.poll(), await replies.poll()

    assert (first, second) == (1, 0)
    assert [text for _, text, _ in desk.delivered] == ["Expired.", "Yes."]
    assert await server.count_unread() == 1


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
