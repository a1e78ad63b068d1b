"""Gaps that the records show are told to the webhooks, once each and without anybody's words."""

from pathlib import Path

from deploy.assembly.runtime import connect_runtime
from deploy.assembly.source_refresh import refresh_source
from deploy.assembly.webhooks import announce_gaps
from knowledge.source_registry import RegisteredSource, SourceSpec
from memory.webhook_queue import RedisWebhookQueue
from records.store import connect_store
from tests.records.test_gaps import ask, make_finder
from tests.support.app_harness import settings_of
from tests.support.empty_redis import play_redis

ENDPOINT = {
    "url": "https://hooks.acme.test",
    "secret": "whsec_bmV3IHNlY3JldCBvZiB0aGUgd2ViaG9va3Mh",
}


async def test_a_gap_is_told_once_from_its_third_question_on(tmp_path: Path) -> None:
    store = connect_store(f"sqlite:///{tmp_path / 'records.sqlite3'}")
    store.prepare()
    name = ("acme", "desk")
    question = "leave for invoices"
    settings = settings_of(tmp_path / "data", webhooks={"crm": ENDPOINT})
    endpoint = play_redis()
    finder = make_finder(store)
    async with connect_runtime(settings, endpoint=endpoint) as runtime:
        client = endpoint.client()
        queue = RedisWebhookQueue(client)
        store.write([ask(number, question, outcome="refused") for number in (1, 2)])
        await announce_gaps(runtime, finder, name)
        early = await queue.count_waiting()
        store.write([ask(3, question, outcome="refused")])
        await announce_gaps(runtime, finder, name)
        [told] = await queue.claim(count=5, lease_seconds=60)
        await queue.finish(told)
        await announce_gaps(runtime, finder, name)
        late = await queue.count_waiting()
        await client.aclose()
    store.close()

    assert (early, late) == (0, 0)
    assert (told.kind, told.data["questions"], told.data["reasons"]) == (
        "gap.found",
        3,
        {"refused": 3},
    )
    assert "invoices" not in told.model_dump_json()


async def test_a_source_that_cannot_be_read_again_is_told_once_a_day(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "data", webhooks={"crm": ENDPOINT})
    endpoint = play_redis()
    spec = SourceSpec(place="sftp://ada@127.0.0.1:9/docs")
    source = RegisteredSource(
        tenant=settings.tenant, assistant=settings.assistant, spec=spec, read_at=0.0
    )
    async with connect_runtime(settings, endpoint=endpoint) as runtime:
        client = endpoint.client()
        queue = RedisWebhookQueue(client)
        await refresh_source(runtime, source)
        await refresh_source(runtime, source)
        told = await queue.claim(count=5, lease_seconds=60)
        await client.aclose()

    assert [delivery.kind for delivery in told] == ["source.failed"]
    assert told[0].data["source"] == spec.root
    assert told[0].data["error"]
