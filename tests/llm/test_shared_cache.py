import asyncio
from decimal import Decimal
from typing import Any

import pytest

from envelope.question import Question as Message
from llm.chain import ChainLink, FallbackChain
from llm.errors import ModelUnavailable
from llm.port import (
    ModelAnswer,
    ModelMessage,
    ToolConversation,
    ToolMessage,
    ToolUse,
    Usage,
    UserMessage,
    record_calls,
)
from llm.stored_model import CacheKey, CallKey, SharedCache, StoredModel
from tests.llm.sample_task import BLUE, COLOUR, SKY, Colour, PlainPrompts, Question
from tests.support.runs import start_run
from tests.support.scripted_model import Scripted, ScriptedModel, gate

GREY = Colour(name="grey")


class FakeStore:
    """A cache in a dictionary."""

    def __init__(self) -> None:
        self.kept: dict[CacheKey, bytes] = {}
        self.ttl_seconds: list[int] = []

    async def get(self, key: CacheKey) -> bytes | None:
        return self.kept.get(key)

    async def put(self, key: CacheKey, answer: bytes, *, ttl_seconds: int) -> None:
        self.ttl_seconds.append(ttl_seconds)
        self.kept[key] = answer


@pytest.fixture
def fake_documents() -> FakeStore:
    return FakeStore()


def make_cached_model(
    fake_documents: FakeStore, *script: Scripted, cost_usd: Decimal | None = Decimal("0.25")
) -> tuple[StoredModel, SharedCache, ScriptedModel]:
    inner = ScriptedModel(script, usage=Usage(10, 5), cost_usd=cost_usd)
    cache = SharedCache(fake_documents, ttl_seconds=60)
    return StoredModel(inner, prompts=PlainPrompts(), cache=cache), cache, inner


async def ask(
    model: StoredModel,
    *,
    message_id: str = "m",
    tenant: str = "t",
    assistant: str = "a",
    text: str = SKY.text,
) -> ModelAnswer[Colour]:
    message = Message(
        tenant=tenant, assistant=assistant, conversation_id=message_id, message_id=message_id
    )
    run = start_run(message, stage="essence", attempt=0)
    return await model.ask(COLOUR, Question(text=text), run)


async def test_the_same_thing_asked_in_another_conversation_is_a_hit_that_costs_nothing(
    fake_documents: FakeStore,
) -> None:
    model, cache, inner = make_cached_model(fake_documents, BLUE)

    await ask(model)
    with record_calls() as calls:
        again = await ask(model, message_id="other")

    assert len(inner.calls) == 1
    assert (again.output, again.from_store, again.cost_usd) == (BLUE, True, Decimal(0))
    assert [(call.from_store, call.usage, call.cost_usd) for call in calls] == [
        (True, Usage(), Decimal(0))
    ]
    assert [(call.from_cache, call.saved_usd) for call in calls] == [(True, Decimal("0.25"))]
    assert (cache.counts.hits, cache.counts.misses) == (1, 1)
    assert cache.counts.saved_usd == Decimal("0.25")
    assert fake_documents.ttl_seconds == [60]


@pytest.mark.parametrize(
    "change", [{"tenant": "other"}, {"assistant": "other"}, {"text": "And the sea?"}]
)
async def test_another_tenant_assistant_or_content_never_hits(
    fake_documents: FakeStore, change: dict[str, str]
) -> None:
    model, _cache, _ = make_cached_model(fake_documents, BLUE, GREY)

    await ask(model)
    other = await ask(model, **change)

    assert (other.output, other.from_store) == (GREY, False)


async def test_simultaneous_equal_requests_are_sent_once(fake_documents: FakeStore) -> None:
    closed = gate(BLUE)
    model, cache, inner = make_cached_model(fake_documents, closed)

    async with asyncio.TaskGroup() as group:
        asking = [group.create_task(ask(model, message_id=f"m{n}")) for n in range(5)]
        await closed.reached.wait()
        closed.opened.set()

    assert len(inner.calls) == 1
    assert [task.result().output for task in asking] == [BLUE] * 5
    assert (cache.counts.hits, cache.counts.misses) == (4, 1)


async def test_a_waiting_request_is_sent_if_the_first_fails_or_is_cancelled(
    fake_documents: FakeStore,
) -> None:
    closed = gate(ModelUnavailable("down"))
    never = gate(GREY)
    model, _cache, inner = make_cached_model(fake_documents, closed, never, BLUE)

    async def failing() -> None:
        with pytest.raises(ModelUnavailable):
            await ask(model)

    async with asyncio.TaskGroup() as group:
        group.create_task(failing())
        await closed.reached.wait()
        second = group.create_task(ask(model))
        third = group.create_task(ask(model))
        closed.opened.set()
        await never.reached.wait()
        second.cancel()

    assert second.cancelled()
    assert third.result().output == BLUE
    assert len(inner.calls) == 3


async def test_different_things_do_not_wait_for_each_other(fake_documents: FakeStore) -> None:
    closed = gate(BLUE)
    model, _cache, _ = make_cached_model(fake_documents, closed, GREY)

    async with asyncio.TaskGroup() as group:
        group.create_task(ask(model))
        await closed.reached.wait()
        other = await ask(model, text="And the sea?")
        closed.opened.set()

    assert other.output == GREY


async def test_a_hit_of_unknown_price_is_counted_apart(fake_documents: FakeStore) -> None:
    model, cache, _ = make_cached_model(fake_documents, BLUE, cost_usd=None)

    await ask(model)
    await ask(model)

    assert (cache.counts.hits, cache.counts.hits_of_unknown_price) == (1, 1)
    assert cache.counts.saved_usd == 0


async def test_without_a_known_tenant_nothing_is_cached(fake_documents: FakeStore) -> None:
    model, _cache, inner = make_cached_model(fake_documents, BLUE, GREY)

    await model.ask(COLOUR, SKY)
    await model.ask(COLOUR, SKY)

    assert (len(inner.calls), fake_documents.kept) == (2, {})


async def test_a_further_attempt_wants_another_answer_than_the_one_turned_down(
    fake_documents: FakeStore,
) -> None:
    model, _cache, _ = make_cached_model(fake_documents, BLUE, GREY)
    message = Message(tenant="t", assistant="a", conversation_id="c", message_id="m")

    run = start_run(message, stage="response", attempt=0)
    first = await model.ask(COLOUR, SKY, run)
    run = start_run(message, stage="response", attempt=1)
    second = await model.ask(COLOUR, SKY, run)

    assert (first.output, second.output) == (BLUE, GREY)


async def test_rule_based_answers_during_an_outage_are_not_shared(
    fake_documents: FakeStore,
) -> None:
    links = [
        ChainLink(ScriptedModel([ModelUnavailable("down"), GREY], name="m@openai")),
        ChainLink(ScriptedModel([BLUE], name="offline")),
    ]
    cache = SharedCache(fake_documents, ttl_seconds=60)
    model = StoredModel(FallbackChain(links), prompts=PlainPrompts(), cache=cache)

    answers = [(await ask(model, message_id=name)).output for name in ("m", "n", "o")]

    assert answers == [BLUE, GREY, GREY]


async def test_a_redelivered_hop_that_hit_the_cache_saves_nothing_more(
    fake_documents: FakeStore,
) -> None:
    class FakeCalls:
        kept: bytes | None = None

        async def get(self, key: CallKey) -> bytes | None:
            return self.kept

        async def put(self, key: CallKey, answer: bytes) -> None:
            self.kept = answer

    first, cache, _ = make_cached_model(fake_documents, BLUE)
    await ask(first)
    model = StoredModel(ScriptedModel([]), FakeCalls(), prompts=PlainPrompts(), cache=cache)
    model.name = first.name

    with record_calls() as hit:
        await ask(model, message_id="other")
    with record_calls() as replayed:
        await ask(model, message_id="other")

    assert [call.from_cache for call in (*hit, *replayed)] == [True, False]
    assert cache.counts.hits == 1


BRIEF = "What does an SMS cost?"
SEARCHES = ModelMessage(calls=(ToolUse(call_id="a", name="search", arguments={"query": "SMS"}),))
WRITES = ModelMessage(text="It costs 4 cents.")


async def step(
    model: StoredModel,
    *,
    message_id: str,
    result: str = "4 cents",
    attempt: int = 0,
    **changes: Any,
) -> str:
    """What the model writes after its call brought `result`."""
    message = Message(tenant="t", assistant="a", conversation_id="c", message_id=message_id)
    conversation = ToolConversation(
        task="work_on_task", messages=(UserMessage(text=BRIEF),), sharing=("staff",)
    ).extend(SEARCHES, ToolMessage(call_id="a", name="search", text=result))
    run = start_run(message, stage="work", attempt=attempt)
    answer = await model.converse(conversation.model_copy(update=changes), run)
    return answer.message.text


def make_stored(fake_documents: FakeStore, *script: Scripted) -> tuple[StoredModel, ScriptedModel]:
    inner = ScriptedModel(script, usage=Usage(10, 5), cost_usd=Decimal("0.25"))
    cache = SharedCache(fake_documents, ttl_seconds=60)
    return StoredModel(inner, NoCalls(), prompts=PlainPrompts(), cache=cache), inner


async def test_equal_calls_of_two_questions_are_paid_once_and_the_second_is_marked(
    fake_documents: FakeStore,
) -> None:
    model, inner = make_stored(fake_documents, WRITES)
    other_words = UserMessage(text="What does  an SMS cost"), SEARCHES
    similar = (*other_words, ToolMessage(call_id="a", name="search", text="4 cents"))

    first = await step(model, message_id="m1")
    with record_calls() as calls:
        again = await step(model, message_id="m2", messages=similar)

    assert first == again == WRITES.text
    assert len(inner.calls) == 1
    assert [(call.from_cache, call.cost_usd, call.saved_usd) for call in calls] == [
        (True, Decimal(0), Decimal("0.25"))
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"result": "5 cents"},
        {"sharing": ()},
        {"sharing": ("staff", "sales")},
        {"sharing": None},
        {"attempt": 1},
        {"messages": (UserMessage(text="What does an MMS cost?"),)},
    ],
)
async def test_a_worker_shares_nothing_across_results_groups_rejections_and_briefs(
    fake_documents: FakeStore, change: dict[str, Any]
) -> None:
    model, inner = make_stored(fake_documents, WRITES, SEARCHES)

    await step(model, message_id="m1")
    await step(model, message_id="m2", **change)

    assert len(inner.calls) == 2


class NoCalls:
    """Keeps no calls of running questions."""

    async def get(self, key: CallKey) -> bytes | None:
        return None

    async def put(self, key: CallKey, answer: bytes) -> None:
        return None
