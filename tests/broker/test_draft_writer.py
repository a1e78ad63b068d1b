from broker.values import Fields, Retry
from tests.support.broker_harness import BrokerHarness, finish, question

FIRST: Fields = {"draft": "0.1", "text": "Open Rules."}
SECOND: Fields = {"draft": "0.1", "text": "Open Rules. Choose „New“."}


async def read_drafts(harness: BrokerHarness) -> list[Fields]:
    entries = await harness.broker.replies.read_journal(question())
    return [entry.fields for entry in entries if entry.kind == "draft"]


async def test_a_draft_reaches_all_followers_of_the_question(harness: BrokerHarness) -> None:
    await harness.submit()
    delivery = await harness.take()
    [accepted] = await harness.broker.replies.read_journal(question())

    written = await harness.broker.drafts.write_draft(delivery, FIRST)

    followed = await harness.broker.replies.read_journal(question(), after=accepted.id)
    assert [(entry.id, entry.kind, entry.fields) for entry in followed] == [
        (written, "draft", FIRST)
    ]


async def test_a_run_leaves_one_draft_however_many_it_wrote(harness: BrokerHarness) -> None:
    await harness.submit()
    delivery = await harness.take()

    first = await harness.broker.drafts.write_draft(delivery, FIRST)
    await harness.broker.drafts.write_draft(delivery, SECOND, replaces=first)

    assert await read_drafts(harness) == [SECOND]


async def test_nothing_is_drafted_for_a_question_that_has_ended(harness: BrokerHarness) -> None:
    await harness.submit()
    delivery = await harness.take()
    await harness.settle(delivery, finish())

    assert await harness.broker.drafts.write_draft(delivery, FIRST) == ""
    assert (await harness.kinds())[-1] == "finished"


async def test_a_worker_that_lost_its_entry_drafts_nothing(harness: BrokerHarness) -> None:
    await harness.submit()
    lost = await harness.take()
    held = await harness.reclaim()

    assert await harness.broker.drafts.write_draft(lost, FIRST) == ""
    assert await harness.broker.drafts.write_draft(held, SECOND) != ""
    assert await read_drafts(harness) == [SECOND]


async def test_a_run_that_is_repeated_leaves_its_draft_behind_it(harness: BrokerHarness) -> None:
    await harness.submit()
    delivery = await harness.take()
    await harness.broker.drafts.write_draft(delivery, FIRST)

    await harness.settle(delivery, Retry(b"again", "later", 30.0))

    assert await harness.broker.drafts.write_draft(delivery, SECOND) == ""


async def test_a_draft_is_erased_with_its_conversation(harness: BrokerHarness) -> None:
    await harness.submit()
    delivery = await harness.take()
    await harness.broker.drafts.write_draft(delivery, FIRST)

    await harness.broker.eraser.forget(question())

    assert await harness.broker.drafts.write_draft(delivery, SECOND) == ""
    words = [str(await harness.client.dump(key)) for key in await harness.client.keys("*")]
    assert not any("Open Rules" in word for word in words)


async def test_a_draft_does_not_keep_its_journal_longer(harness: BrokerHarness) -> None:
    await harness.submit()
    delivery = await harness.take()
    await harness.broker.drafts.write_draft(delivery, FIRST)
    await harness.settle(delivery, finish())

    [journal] = await harness.client.keys("*journal*")

    assert 0 < await harness.client.pttl(journal) <= 86_400_000
