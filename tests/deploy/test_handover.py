"""A person takes a conversation over: asked by e-mail, answering in the conversation."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.assembly.gateways.handover import (
    list_receivers,
    make_mail_replies,
    make_stored_handover,
)
from deploy.assembly.gateways.http_gateway import open_http_app
from deploy.assembly.runtime import ROLES, Runtime, connect_runtime, desk, run_workers
from deploy.errors import CommandError
from envelope.question import Question
from gateway.api_keys import Scope, StoredKeys, make_key
from gateway.conversations import Conversations
from gateway.desk import Message
from gateway.errors import BusyError, HandOverLimitedError
from gateway.http.access import Principal
from gateway.http.links import SourceLinks
from gateway.stored_handover import StoredHandOver
from knowledge.embedding import Embedder
from memory.chat_state import RedisPushMemory
from notifications.handover import LINK_SECONDS, Case, HandOverError, Receiver, Tickets
from notifications.mail_replies import MailboxError
from records.record import make_record
from tests.support.app_harness import open_knowledge_with, settings_of
from tests.support.empty_redis import play_redis
from tests.support.mail_server import MailServer, run_mail_server
from tests.support.mailbox_server import PASSWORD, USER, MailboxServer, run_mailbox_server
from tests.support.waiting import wait_until

CONVERSATION = "/v1/conversations/c1"
HANDOVER = f"{CONVERSATION}/handover"
SECRET = "whsec_bmV3IHNlY3JldCBvZiB0aGUgd2ViaG9va3Mh"  # noqa: S105 - of nothing
VISITOR = "visitor@example.com"
ANSWER = "You may take the bicycle: https://acme.test/keys. <b>Ask Ada.</b>"


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with run_mail_server() as server:
        yield server


@asynccontextmanager
async def open_runtime(
    data: Path, embedder: Embedder, port: int, **more: Any
) -> AsyncIterator[Runtime]:
    settings = settings_of(
        data,
        handover_email="desk@acme.test",
        smtp_host="127.0.0.1",
        smtp_port=port,
        smtp_security="none",
        public_url="http://desk.test",
        **more,
    )
    async with (
        open_knowledge_with(settings, embedder) as knowledge,
        connect_runtime(settings, endpoint=play_redis()) as runtime,
        run_workers(runtime, ROLES, knowledge),
    ):
        yield replace(runtime, knowledge=knowledge)


@pytest.fixture
async def runtime(
    unrestricted: Path, embedder: Embedder, mail: MailServer
) -> AsyncIterator[Runtime]:
    async with open_runtime(unrestricted, embedder, mail.port) as opened:
        yield opened


@asynccontextmanager
async def open_client(runtime: Runtime, **fields: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client with a new key; without it, as the person whom the address was sent to."""
    client = runtime.endpoint.client()
    key, token = make_key("secret", tenant=runtime.settings.tenant, **fields)
    await StoredKeys(client).put(key)
    await client.aclose()
    async with open_http_app(runtime, asyncio.Event()) as app:
        headers = {"Authorization": f"Bearer {token}"}
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://desk.test", headers=headers
        ) as made:
            yield made


async def ask(client: httpx.AsyncClient, text: str = "May I take the company bicycle?") -> str:
    answer = await client.post(f"{CONVERSATION}/messages", json={"text": text, "message_id": "m1"})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["message_id"])


def path_in(mail: MailServer) -> str:
    """The address in the last message."""
    return path_of(mail.messages[-1])


def path_of(message: EmailMessage) -> str:
    link = re.search(r"http://desk\.test(/v1/handover/\S+)", message.get_content())
    assert link is not None
    return link[1]


async def open_page(client: httpx.AsyncClient, path: str, text: str = "") -> httpx.Response:
    """Open the page, or send its form, without the key."""
    if text:
        return await client.post(path, data={"text": text}, headers={"Authorization": ""})
    return await client.get(path, headers={"Authorization": ""})


async def test_a_person_is_asked_by_mail_and_their_answer_is_in_the_conversation(
    runtime: Runtime, mail: MailServer
) -> None:
    async with open_client(runtime) as client:
        message_id = await ask(client)
        asked = await client.post(HANDOVER, json={"message_id": message_id, "note": "Is Ada in?"})
        path = path_in(mail)
        page = await open_page(client, path)
        sent = await open_page(client, path, ANSWER)
        repeated = await open_page(client, path, ANSWER)

        async def look() -> list[dict[str, Any]]:
            messages = (await client.get(CONVERSATION)).json()["messages"]
            return messages if messages[-1]["status"] == "ended" and len(messages) > 2 else []

        messages = await wait_until(look)

    assert asked.json()["sent"] is True
    assert mail.recipients == [["desk@acme.test"]]
    assert "May I take the company bicycle?" in mail.messages[0].get_content()
    assert "Is Ada in?" in mail.messages[0].get_content()
    assert "May I take the company bicycle?" in page.text
    assert (page.status_code, sent.status_code, repeated.status_code) == (200, 200, 200)
    assert [message["text"] for message in messages[1:]] == ["Is Ada in?", "A person answered:"]
    assert messages[2]["answer"]["text"] == f"A person answered:\n\n{ANSWER}"
    assert messages[2]["answer"]["links"] == ["https://acme.test/keys"]


async def leave_address(client: httpx.AsyncClient, address: str = VISITOR) -> httpx.Response:
    """Ask, and ask for a person with an address."""
    wanted = {"message_id": await ask(client), "note": "Please.", "address": address}
    return await client.post(HANDOVER, json=wanted)


def list_to(mail: MailServer, address: str) -> list[EmailMessage]:
    return [
        message
        for message, to in zip(mail.messages, mail.recipients, strict=True)
        if to == [address]
    ]


async def find_notice(runtime: Runtime) -> str:
    """Return what the job that sends e-mail to visitors reports to staff."""
    return next(job.notice for job in runtime.jobs.states if job.name == "visitor_mail")


async def find_third(mail: MailServer) -> bool:
    """Return whether a link and two answers were sent to the visitor."""
    return len(list_to(mail, VISITOR)) >= 3


async def test_a_request_for_a_person_is_a_message_of_the_conversation_and_recorded_as_one(
    runtime: Runtime, mail: MailServer
) -> None:
    async with open_client(runtime) as client:
        message_id = await ask(client)
        await client.post(HANDOVER, json={"message_id": message_id})
        asked = await client.post(HANDOVER, json={"message_id": message_id})
        answers = await wait_until(lambda: list_answers(client, requests=True))
        messages = (await client.get(CONVERSATION)).json()["messages"]
        question = name_question(runtime, asked.json()["message_id"])
        journal = await runtime.broker.replies.read_journal(question)

    record = make_record(question, journal)
    assert len(mail.messages) == 1
    assert answers == ["Your conversation was sent to a person. Their answer will appear here."]
    assert (messages[1]["text"], messages[1]["answer"]["handover"]) == ("Ask a person", "requested")
    assert record is not None
    assert (record.reason, record.way, record.question) == ("person", "command", "Ask a person")


async def test_a_visitor_who_left_receives_answers_once_they_have_confirmed_their_address(
    runtime: Runtime, mail: MailServer
) -> None:
    async with open_client(runtime) as client:
        asked = await leave_address(client)
        [case, link] = mail.messages
        path = path_in(mail)
        await open_page(client, path_of(case), "Before the address is confirmed.")
        await wait_until(lambda: list_answers(client))
        requests = await list_answers(client, requests=True)
        before = len(list_to(mail, VISITOR))
        shown = await open_page(client, path)
        confirmed = await client.post(path, headers={"Authorization": ""})
        repeated = await client.post(path, headers={"Authorization": ""})
        await open_page(client, path_of(case), ANSWER)
        await wait_until(lambda: find_third(mail))

    assert asked.json()["sent"] is True
    assert "To receive the answer by e-mail" in requests[0]
    assert f"> {VISITOR}" in case.get_content()
    assert "bicycle" not in link.get_content()
    assert "Please." not in link.get_content()
    assert before == 1
    assert "bicycle" not in shown.text
    assert (confirmed.status_code, repeated.status_code) == (200, 200)
    contents = [message.get_content() for message in list_to(mail, VISITOR)[1:]]
    received = [content.replace("\r\n", "\n") for content in contents]
    assert len(received) == 2
    assert "A person answered:\n\nBefore the address is confirmed." in received[0]
    assert ANSWER in received[1]


async def test_staff_see_that_an_answer_was_not_accepted_by_the_mail_server(
    runtime: Runtime, mail: MailServer
) -> None:
    async with open_client(runtime) as client:
        await leave_address(client)
        [case, _] = mail.messages
        await client.post(path_in(mail), headers={"Authorization": ""})
        mail.refusals = ["451 Try again later"]
        await open_page(client, path_of(case), ANSWER)

        notice = await wait_until(lambda: find_notice(runtime))

    assert "E-mails to visitors that the mail server did not accept: 1 will be sent again" in notice
    assert len(list_to(mail, VISITOR)) == 1


async def test_the_link_of_an_address_neither_reads_a_conversation_nor_confirms_another_one(
    runtime: Runtime, mail: MailServer
) -> None:
    async with open_client(runtime) as client:
        await leave_address(client)
        path = path_in(mail)
        answered = await open_page(client, path, "Evil")
        again = {"message_id": "m2", "text": "And now?"}
        await client.post(f"{CONVERSATION}/messages", json=again)
        other = {"message_id": "m2", "address": "eve@example.com"}
        await client.post(HANDOVER, json=other)
        confirmed = await client.post(path, headers={"Authorization": ""})
        conversation = (await client.get(CONVERSATION)).text

    assert answered.status_code == 200
    assert "Evil" not in conversation
    assert confirmed.status_code == 404


async def test_an_erased_address_is_sent_nothing_and_cannot_be_confirmed(
    runtime: Runtime, mail: MailServer
) -> None:
    redis = runtime.endpoint.client()
    async with open_client(runtime) as client:
        await leave_address(client)
        path = path_in(mail)
        await client.delete(CONVERSATION)
        confirmed = await client.post(path, headers={"Authorization": ""})
        stored = [key async for key in redis.scan_iter("rd:handover:*")]

    await redis.aclose()
    assert confirmed.status_code == 404
    assert stored == []


async def test_one_address_and_one_visitor_receive_a_few_links_in_a_day(
    runtime: Runtime, mail: MailServer
) -> None:
    handover = await make_stored(runtime, list_receivers(runtime.settings))
    async with open_client(runtime) as client:
        question = name_question(runtime, await ask(client))
    results = []
    for number in range(6):
        one = question.model_copy(update={"message_id": f"m{number}"})
        who = f"visitor {number}"
        await handover.request(one, note="", language="en", visitor=who, address=VISITOR)
        results.append(await handover.ask_to_confirm(one, language="en", visitor=who))

    assert results == ["asked"] * 3 + ["failed"] * 3
    assert len(list_to(mail, VISITOR)) == 3


@pytest.mark.parametrize("address", ["ada", "a@b\r\nBcc: c@d.test", "a@b.test, c@d.test"])
async def test_an_invalid_address_is_refused(
    runtime: Runtime, mail: MailServer, address: str
) -> None:
    async with open_client(runtime) as client:
        asked = await leave_address(client, address)

    assert asked.status_code == 422 or asked.status_code == 400
    assert mail.messages == []


async def test_a_form_that_is_not_the_one_of_the_page_is_refused(
    runtime: Runtime, mail: MailServer
) -> None:
    async with open_client(runtime) as client:
        await client.post(HANDOVER, json={"message_id": await ask(client)})
        form = {"text": "Yes.", **{f"field{number}": "" for number in range(9)}}
        answer = await client.post(path_in(mail), data=form, headers={"Authorization": ""})

    assert answer.status_code == 400
    assert "the form cannot be read" in answer.text


async def test_the_visitor_is_told_if_nothing_could_be_sent(
    unrestricted: Path, embedder: Embedder
) -> None:
    with run_mail_server() as stopped:
        port = stopped.port
    async with (
        open_runtime(unrestricted, embedder, port) as runtime,
        open_client(runtime) as client,
    ):
        message_id = await ask(client)
        asked = await client.post(HANDOVER, json={"message_id": message_id})

    text = "Your conversation could not be sent to a person. Please try again later."
    assert (asked.json()["sent"], asked.json()["text"]) == (False, text)


async def test_no_text_of_a_visitor_becomes_a_header_of_a_message(
    runtime: Runtime, mail: MailServer
) -> None:
    evil = "Bicycle?\r\nBcc: evil@evil.test\r\n\r\nSubject: won\u2028X: y"
    async with open_client(runtime) as client:
        message_id = await ask(client, evil)
        asked = await client.post(HANDOVER, json={"message_id": message_id, "note": evil})

    assert asked.json()["sent"] is True
    [message] = mail.messages
    assert mail.recipients == [["desk@acme.test"]]
    assert set(message.keys()) == {
        "From", "To", "Subject", "Auto-Submitted", "X-Auto-Response-Suppress", "Content-Type",
        "Content-Transfer-Encoding", "MIME-Version", "X-Peer", "X-MailFrom", "X-RcptTo",
    } & set(message.keys())  # fmt: skip
    assert "Bcc" not in message
    assert message["Subject"].startswith("Refdesk, a visitor: “Bicycle? Bcc: evil@evil.test")


async def test_a_conversation_is_sent_once_for_a_message_however_often_it_is_asked(
    runtime: Runtime, mail: MailServer
) -> None:
    async with open_client(runtime) as client:
        message_id = await ask(client)

        async def request(note: str) -> tuple[int, bool]:
            answer = await client.post(HANDOVER, json={"message_id": message_id, "note": note})
            return answer.status_code, answer.json().get("sent", False)

        at_once = await asyncio.gather(*(request(f"Note {number}") for number in range(20)))
        later = await request("Later")

    assert (200, True) in at_once
    assert {status for status, _ in at_once} <= {200, 429, 503}
    assert later == (200, True)
    assert len(mail.messages) == 1


async def test_a_conversation_that_was_not_sent_can_be_sent_again(
    runtime: Runtime, mail: MailServer
) -> None:
    handover = await make_stored(runtime, [Failing()])
    working = await make_stored(runtime, list_receivers(runtime.settings))
    async with open_client(runtime) as client:
        question = name_question(runtime, await ask(client))

    failed = await handover.request(question, note="", language="en", visitor="ada")
    sent = await working.request(question, note="", language="en", visitor="ada")

    assert (failed, sent, len(mail.messages)) == (False, True, 1)


@pytest.mark.parametrize(
    ("limits", "visitors"),
    [
        ({"handover_visitor_per_day": 2}, ("ada", "ada", "ada")),
        ({"handover_tenant_per_day": 2}, ("ada", "bob", "eve")),
    ],
)
async def test_a_visitor_and_a_tenant_have_a_limit_of_a_day(
    runtime: Runtime, mail: MailServer, limits: dict[str, int], visitors: tuple[str, ...]
) -> None:
    limited = replace(runtime, settings=runtime.settings.model_copy(update=limits))
    handover = await make_stored(limited, list_receivers(runtime.settings))
    async with open_client(runtime) as client:
        question = name_question(runtime, await ask(client))
    asked = [question.model_copy(update={"message_id": f"m{at}"}) for at in range(3)]

    for one, visitor in zip(asked[:2], visitors[:2], strict=True):
        assert await handover.request(one, note="", language="en", visitor=visitor)
    with pytest.raises(HandOverLimitedError):
        await handover.request(asked[2], note="", language="en", visitor=visitors[2])

    assert len(mail.messages) == 2


async def test_a_conversation_that_is_being_sent_is_not_sent_a_second_time(
    runtime: Runtime, mail: MailServer
) -> None:
    slow = Slow()
    handover = await make_stored(runtime, [slow])
    other = await make_stored(runtime, list_receivers(runtime.settings))
    async with open_client(runtime) as client:
        question = name_question(runtime, await ask(client))

    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(handover.request(question, note="", language="en", visitor="ada"))
        await slow.begun.wait()
        with pytest.raises(BusyError):
            await other.request(question, note="", language="en", visitor="ada")
        slow.may_end.set()

    assert (first.result(), mail.messages) == (True, [])


class Failing:
    """A receiver that accepts nothing."""

    name = "failing"

    async def send(self, case: Case) -> None:
        raise HandOverError("no such mailbox")


class Slow:
    """A receiver that accepts a conversation when it may."""

    name = "slow"

    def __init__(self) -> None:
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()

    async def send(self, case: Case) -> None:
        self.begun.set()
        await self.may_end.wait()


async def make_stored(runtime: Runtime, receivers: Sequence[Receiver]) -> StoredHandOver:
    client = runtime.endpoint.client()
    return make_stored_handover(
        runtime,
        client,
        Conversations(client, shards=runtime.settings.shards, ttl_seconds=60),
        receivers,
        Tickets(await StoredKeys(client).handover_secret()),
    )


def name_question(runtime: Runtime, message_id: str) -> Question:
    settings = runtime.settings
    return Question(
        tenant=settings.tenant,
        assistant=settings.assistant,
        conversation_id="c1",
        message_id=message_id,
    )


@pytest.mark.parametrize(
    "receiver",
    [
        {"handover_email": "desk@acme.test", "smtp_host": "127.0.0.1"},
        {"handover_slack_channel": "C0123", "slack_bot_token": "xoxb-1"},
        {"handover_webhook": {"url": "https://acme.test/x", "secret": SECRET}},
    ],
)
def test_without_the_address_of_this_server_nothing_is_handed_over(
    tmp_path: Path, receiver: dict[str, Any]
) -> None:
    with pytest.raises(CommandError, match="require PUBLIC_URL"):
        list_receivers(settings_of(tmp_path, **receiver))


async def test_the_link_is_that_of_this_server_and_no_line_of_a_visitor_looks_like_it(
    runtime: Runtime, mail: MailServer
) -> None:
    forged = "Answer here, within seven days: https://evil.test/x"
    note = f"Hello.\u2028{forged}\r{forged}\n{forged}"
    async with open_client(runtime) as client:
        message_id = await ask(client, f"May I?\n\n{forged}")
        await client.post(
            HANDOVER,
            json={"message_id": message_id, "note": note},
            headers={"Host": "evil.test"},
        )

    lines = mail.messages[0].get_content().splitlines()
    assert [line for line in lines if "evil.test" in line and not line.startswith("> ")] == []
    [link] = [line for line in lines if line.startswith("Answer here")]
    assert "http://desk.test/v1/handover/" in link


async def test_a_forged_or_expired_address_shows_and_sends_nothing(
    runtime: Runtime, mail: MailServer
) -> None:
    async with open_client(runtime) as client:
        message_id = await ask(client)
        await client.post(HANDOVER, json={"message_id": message_id})
        path = path_in(mail)
        redis = runtime.endpoint.client()
        keys = StoredKeys(redis)
        secret = await keys.handover_secret()
        name = runtime.settings.tenant, runtime.settings.assistant
        asked = Question(
            tenant=name[0], assistant=name[1], conversation_id="c1", message_id=message_id
        )
        late = Tickets(secret, now=lambda: -LINK_SECONDS).write(asked, "en")
        foreign = Tickets(b"another secret").write(asked, "en")
        body, _, signature = path.rpartition("/")[2].partition(".")
        other = (
            Tickets(secret)
            .write(asked.model_copy(update={"conversation_id": "c2"}), "en")
            .partition(".")[0]
        )
        link = SourceLinks(secret=await keys.link_secret(), address="http://desk.test").of(
            Principal(name[0], frozenset(Scope)), asked
        )({"chunk_id": "docs/leave#0"})
        assert link is not None
        await redis.aclose()
        tickets = [
            late, foreign, f"{other}.{signature}", body, f"{body}.", "x",
            link.rpartition("/")[2].partition("#")[0],
        ]  # fmt: skip
        pages = [await open_page(client, f"/v1/handover/{ticket}") for ticket in tickets]
        answers = [await open_page(client, f"/v1/handover/{ticket}", "Evil") for ticket in tickets]
        conversation = (await client.get(CONVERSATION)).text

    assert [page.status_code for page in pages] == [404] * len(tickets)
    assert [answer.status_code for answer in answers] == [401] * len(tickets)
    assert "Evil" not in conversation


async def test_an_erased_conversation_can_be_neither_read_nor_answered(
    runtime: Runtime, mail: MailServer
) -> None:
    async with open_client(runtime) as client:
        message_id = await ask(client)
        await client.post(HANDOVER, json={"message_id": message_id})
        path = path_in(mail)
        erased = await client.delete(CONVERSATION)
        page = await open_page(client, path)
        answer = await open_page(client, path, ANSWER)
        conversation = await client.get(CONVERSATION)

    assert erased.status_code == 204
    assert (page.status_code, answer.status_code) == (404, 404)
    assert "bicycle" not in page.text
    assert ANSWER not in conversation.text


async def test_nobody_types_the_answer_of_a_person(runtime: Runtime) -> None:
    async with open_client(runtime) as client:
        answers = [
            (await client.post(f"{CONVERSATION}/messages", json={"text": text})).json()["text"]
            for text in ("/person reply en Evil", "/person_reply en Evil", "/person-reply en Evil")
        ]

    assert not [text for text in answers if text.startswith("A person answered")]


async def test_a_key_that_may_not_follow_a_message_cannot_hand_it_over(
    runtime: Runtime, mail: MailServer
) -> None:
    async with open_client(runtime) as client:
        message_id = await ask(client)
    async with open_client(runtime, scopes=frozenset({Scope.ASK})) as other:
        unseen = await other.post(HANDOVER, json={"message_id": message_id})
    async with open_client(runtime, scopes=frozenset({Scope.FEEDBACK})) as unscoped:
        refused = await unscoped.post(HANDOVER, json={"message_id": message_id})

    assert (unseen.status_code, refused.status_code) == (404, 403)
    assert mail.messages == []


async def test_in_a_chat_the_answer_is_posted_where_the_question_was_asked(
    runtime: Runtime, mail: MailServer
) -> None:
    settings, client = runtime.settings, runtime.endpoint.client()
    chat = desk(runtime, "telegram")
    message = Message("May I take the bicycle?", "telegram/7", "1")
    await chat.ask(message)
    question = chat.question(message)
    memory = RedisPushMemory(client, "telegram", question_seconds=60, conversation_seconds=60)
    await memory.note(question, post='{"chat": "7"}')
    handover = make_stored_handover(
        runtime,
        client,
        Conversations(client, shards=settings.shards, ttl_seconds=60),
        list_receivers(settings),
        Tickets(await StoredKeys(client).handover_secret()),
    )

    sent = await handover.request(question, note="", language="de", visitor="ada")
    ticket = path_in(mail).rpartition("/")[2]
    assert await handover.reply(ticket, ANSWER)

    results = runtime.broker.result_list("telegram", "test")
    [result] = await wait_until(lambda: results.take(slots=4, block_seconds=0.5))
    assert sent
    assert result.reply["text"] == f"Ein Mensch hat geantwortet:\n\n{ANSWER}"
    fields = await memory.fields(result.question)
    assert (fields["post"], fields["fixed"]) == ('{"chat": "7"}', "person")
    await client.aclose()


@pytest.fixture
async def mailbox() -> AsyncIterator[MailboxServer]:
    async with run_mailbox_server() as server:
        yield server


@pytest.fixture
async def reading(
    unrestricted: Path, embedder: Embedder, mail: MailServer, mailbox: MailboxServer
) -> AsyncIterator[Runtime]:
    """A desk that reads replies by e-mail; `USER` of the server is its mailbox."""
    async with open_runtime(
        unrestricted,
        embedder,
        mail.port,
        imap_host="127.0.0.1",
        imap_port=mailbox.port,
        imap_security="none",
        imap_user=USER,
        imap_password=PASSWORD,
        handover_people=("Ada@acme.test",),
    ) as opened:
        yield opened


def answer(mail: MailServer, text: str, *, mail_id: str = "<1@acme.test>") -> EmailMessage:
    """What Ada's mail program sends when she replies to the last message."""
    asked = mail.messages[-1]
    made = EmailMessage()
    made["From"], made["To"], made["Message-ID"] = "Ada <ada@acme.test>", asked["Reply-To"], mail_id
    quoted = "".join(f"> {line}\n" for line in asked.get_content().splitlines())
    made.set_content(f"{text}\n\nOn Tue, 24 Nov 2026, {asked['From']} wrote:\n\n{quoted}")
    return made


async def list_answers(client: httpx.AsyncClient, *, requests: bool = False) -> list[str]:
    """The texts of people, or of requests for them, once all messages have ended."""

    async def look() -> list[dict[str, Any]]:
        messages = (await client.get(CONVERSATION)).json()["messages"]
        return messages if all(message["status"] == "ended" for message in messages) else []

    answers = [message["answer"] for message in await wait_until(look)]
    name, value = ("handover", "requested") if requests else ("answered_by", "person")
    return [answer["text"] for answer in answers if answer.get(name) == value]


async def test_a_reply_by_mail_is_in_the_conversation_without_what_it_quotes(
    reading: Runtime, mail: MailServer, mailbox: MailboxServer
) -> None:
    async with open_client(reading) as client:
        await client.post(HANDOVER, json={"message_id": await ask(client)})
    await mailbox.put(answer(mail, ANSWER))
    async with open_client(reading) as client:
        answers = await wait_until(lambda: list_answers(client))

    assert re.fullmatch(r"desk\+[a-z2-7]{32}@acme\.test", mail.messages[0]["Reply-To"])
    assert answers == [f"A person answered:\n\n{ANSWER}"]


async def test_a_process_that_dies_after_it_stored_a_reply_leaves_it_once(
    reading: Runtime, mail: MailServer, mailbox: MailboxServer
) -> None:
    client_of_redis = reading.endpoint.client()
    handover = make_stored_handover(
        reading,
        client_of_redis,
        Conversations(client_of_redis, shards=reading.settings.shards, ttl_seconds=60),
        (),
        Tickets(await StoredKeys(client_of_redis).handover_secret()),
    )

    async def deliver_and_die(token: str, text: str, mail_id: str) -> bool:
        await handover.deliver_mail(token, text, mail_id)
        raise ConnectionResetError("killed before the mail was marked as read")

    async with open_client(reading) as client:
        message_id = await ask(client)
        await client.post(HANDOVER, json={"message_id": message_id})
        await mailbox.put(answer(mail, "The same words."))
        with pytest.raises(MailboxError, match="killed"):
            await make_mail_replies(
                reading.settings, handover.is_address, deliver_and_die, print
            ).poll()
        # Meanwhile the visitor asks again: the address leads to a newer message.
        await client.post(HANDOVER, json={"message_id": message_id, "note": "Anybody?"})
        read_again = await make_mail_replies(
            reading.settings, handover.is_address, handover.deliver_mail, print
        ).poll()
        await mailbox.put(answer(mail, "The same words.", mail_id="<2@acme.test>"))
        further = await make_mail_replies(
            reading.settings, handover.is_address, handover.deliver_mail, print
        ).poll()
        answers = await list_answers(client)

    await client_of_redis.aclose()
    assert (read_again, further) == (1, 1)
    assert answers == ["A person answered:\n\nThe same words."] * 2


async def test_after_an_erasure_a_reply_by_mail_arrives_nowhere(
    reading: Runtime, mail: MailServer, mailbox: MailboxServer
) -> None:
    redis = reading.endpoint.client()
    async with open_client(reading) as client:
        await client.post(HANDOVER, json={"message_id": await ask(client)})
        kept = [key async for key in redis.scan_iter("rd:handover:*")]
        await client.delete(CONVERSATION)
        gone = [key async for key in redis.scan_iter("rd:handover:*")]
    await mailbox.put(answer(mail, ANSWER))
    async with open_client(reading) as client:
        await wait_until(mailbox.is_read)
        conversation = await client.get(CONVERSATION)

    await redis.aclose()
    assert (len(kept), len(gone)) == (2, 0)
    assert "bicycle" not in conversation.text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"handover_email": "desk@acme.test"}, "HANDOVER_EMAIL requires SMTP_HOST"),
        ({"handover_slack_channel": "C123"}, "HANDOVER_SLACK_CHANNEL requires SLACK_BOT_TOKEN"),
        ({"imap_host": "mail.acme.test"}, "IMAP_HOST requires HANDOVER_EMAIL"),
    ],
)
def test_a_receiver_without_what_it_needs_is_refused(
    changes: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(CommandError, match=message):
        list_receivers(settings_of(tmp_path, **changes))
