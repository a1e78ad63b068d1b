"""E-mail to visitors arrives once, also if the mail server did not accept it at first."""

from collections.abc import Iterator

import pytest

from memory.webhook_queue import RedisWebhookQueue, WebhookDelivery
from notifications.handover import MailSender
from notifications.visitor_mails import ANSWER, NotYetError, VisitorMail, VisitorMails
from tests.support.broker_harness import BrokerHarness, question
from tests.support.mail_server import MailServer, run_mail_server

LATER = "451 Try again later"
UNKNOWN = "550 No such user"


@pytest.fixture
def server() -> Iterator[MailServer]:
    with run_mail_server() as running:
        yield running


def make_mails(
    harness: BrokerHarness, server: MailServer, *, delays: tuple[float, ...] = (0.0, 0.0)
) -> VisitorMails:
    sender = MailSender("desk@acme.test", "127.0.0.1", server.port, security="none")
    queue = RedisWebhookQueue(harness.client, "visitor_mail")
    return VisitorMails(queue, sender, print, delays_seconds=delays)


async def write(mail: WebhookDelivery) -> VisitorMail:
    return VisitorMail("ada@example.com", "An answer", f"The answer to {mail.message_id}.")


async def test_an_email_that_was_not_accepted_is_sent_again_and_arrives_once(
    harness: BrokerHarness, server: MailServer
) -> None:
    mails = make_mails(harness, server)
    server.refusals = [LATER]
    await mails.add(ANSWER, question("m1"), "en")
    await mails.add(ANSWER, question("m1"), "en")

    await mails.send_due(write)
    notice = await mails.describe_failures()
    sent = [await mails.send_due(write) for _ in range(3)]

    assert "1 will be sent again" in notice
    assert LATER.partition(" ")[0] in notice
    assert sent == [1, 0, 0]
    [message] = server.messages
    assert message["Message-ID"].endswith("@acme.test>")
    assert await mails.describe_failures() == ""


async def test_an_email_that_is_refused_too_often_is_given_up_and_counted(
    harness: BrokerHarness, server: MailServer
) -> None:
    mails = make_mails(harness, server)
    server.refusals = [LATER] * 9
    await mails.add(ANSWER, question("m1"), "en")

    attempts = [await mails.send_due(write) for _ in range(5)]

    assert attempts == [1, 1, 1, 0, 0]
    assert "1 of the last seven days will not" in await mails.describe_failures()


async def test_an_email_to_a_recipient_who_does_not_exist_is_not_repeated(
    harness: BrokerHarness, server: MailServer
) -> None:
    mails = make_mails(harness, server)
    server.refusals = [UNKNOWN]
    mail = await mails.add(ANSWER, question("m1"), "en", held=True)
    assert mail is not None

    is_sent = await mails.send(mail, write)

    assert not is_sent
    assert await mails.send_due(write) == 0
    assert server.messages == []


async def test_a_mail_erased_before_its_repetition_is_not_sent(
    harness: BrokerHarness, server: MailServer
) -> None:
    mails = make_mails(harness, server)
    server.refusals = [LATER]
    await mails.add(ANSWER, question("m1"), "en")
    await mails.send_due(write)

    async def find_nothing(_: WebhookDelivery) -> None:
        return None

    await mails.send_due(find_nothing)

    assert server.messages == []
    assert await mails.describe_failures() == ""


async def test_an_email_that_cannot_be_written_yet_waits_without_counting_as_a_failure(
    harness: BrokerHarness, server: MailServer
) -> None:
    mails = make_mails(harness, server)
    await mails.add(ANSWER, question("m1"), "en")

    async def not_yet(_: WebhookDelivery) -> VisitorMail:
        raise NotYetError

    await mails.send_due(not_yet)

    assert await mails.send_due(write) == 0
    assert await mails.describe_failures() == ""


async def test_a_fault_of_one_email_does_not_keep_the_others(
    harness: BrokerHarness, server: MailServer
) -> None:
    mails = make_mails(harness, server, delays=(60.0,))
    await mails.add(ANSWER, question("m1"), "en")
    await mails.add(ANSWER, question("m2"), "en")

    async def fail_for_one(mail: WebhookDelivery) -> VisitorMail:
        if mail.message_id == "m1":
            raise KeyError("no such text")
        return await write(mail)

    await mails.send_due(fail_for_one)

    assert ["m2" in message.get_content() for message in server.messages] == [True]
    assert "no such text" in await mails.describe_failures()
