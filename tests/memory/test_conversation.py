import json
from itertools import permutations
from typing import Any

import pytest

from broker.keys import record_of
from envelope.conversation import ClarificationReason, Pause, Preferences, Turn
from envelope.memory_access import Append, Delete, Increment, MemoryWrite, SetFields
from envelope.question import Question
from memory.conversation import (
    EARLIER_TOKENS,
    QUESTION_CHARACTERS,
    SUMMARY_CHARACTERS,
    Ended,
    KeptPayload,
    RedisMemory,
    RedisPeople,
    SummaryLine,
    describe_earlier,
)
from memory.errors import MemoryUnavailableError
from memory.key_names import conversation_keys
from memory.model_calls import MOST_SHARED, RedisCacheStore, RedisCallStore

END = 9
QUESTION = Question(tenant="acme", assistant="docs", conversation_id="c/1:x", message_id="m")
OTHER = QUESTION.model_copy(update={"conversation_id": "c/2"})
PAUSE = Pause(
    pause_id="p", original_question="q", original_text="q",
    reason=ClarificationReason.AMBIGUOUS_QUERY, asked="?", options=("a", "b"), round=2,
)  # fmt: skip


async def apply_writes(client: Any, writes: tuple[MemoryWrite, ...]) -> None:
    """Apply writes as the broker's finish does."""
    for write in writes:
        match write:
            case Append(key=key, values=values, keep=keep):
                await client.rpush(key, *values)
                await client.ltrim(key, -keep, -1)
            case SetFields(key=key, fields=fields):
                await client.hset(key, mapping=fields)
            case Increment(key=key, fields=amounts):
                for name, amount in amounts.items():
                    await client.hincrbyfloat(key, name, amount)
            case Delete(key=key):
                await client.delete(key)


def turns(*texts: str) -> tuple[Turn, ...]:
    return tuple(Turn(speaker="user", text=text) for text in texts)


async def test_nothing_is_remembered_of_a_new_conversation(client: Any) -> None:
    remembered = await RedisMemory(client, shards=4).recall(QUESTION)

    assert remembered.history == ()
    assert remembered.preferences == Preferences()
    assert remembered.pause is None


async def test_changes_at_the_end_of_a_message_are_recalled(client: Any) -> None:
    memory = RedisMemory(client, shards=4)
    ended = Ended(
        turns=turns("one", "two"),
        preferences=Preferences(language="de", explicit=True),
        pause=PAUSE,
        statistics={"questions": 1},
    )

    await apply_writes(client, memory.writes(QUESTION, ended))

    remembered = await memory.recall(QUESTION)
    assert [turn.text for turn in remembered.history] == ["one", "two"]
    assert remembered.preferences == Preferences(language="de", explicit=True)
    assert remembered.pause == PAUSE
    assert remembered.statistics == {"questions": 1.0}


async def test_a_conversation_never_sees_another(client: Any) -> None:
    memory = RedisMemory(client, shards=4)

    await apply_writes(client, memory.writes(QUESTION, Ended(turns=turns("secret"), pause=PAUSE)))

    assert (await memory.recall(OTHER)).history == ()
    assert (await memory.recall(OTHER)).pause is None


async def test_agents_see_a_window_and_older_turns_are_summarised(client: Any) -> None:
    memory = RedisMemory(client, shards=4, window=2, keep=4)
    await apply_writes(client, memory.writes(QUESTION, Ended(turns=turns("1", "2", "3", "4"))))
    before = await memory.recall(QUESTION)

    dropped = await memory.overflowing(QUESTION, kept=before.kept, added=2)
    ended = Ended(turns=turns("5", "6"), dropped=dropped)
    await apply_writes(client, memory.writes(QUESTION, ended))

    after = await memory.recall(QUESTION)
    assert [turn.text for turn in after.history] == ["5", "6"]
    assert after.kept == 4
    assert after.summary == (SummaryLine("1"), SummaryLine("2"))


async def test_no_question_is_missing_between_the_summary_and_the_window(client: Any) -> None:
    memory = RedisMemory(client, shards=4)
    for number in range(1, 41):
        before = await memory.recall(QUESTION)
        dropped = await memory.overflowing(QUESTION, kept=before.kept, added=2)
        asked = Turn(speaker="user", text=f"What is part {number}?", groups=("hr",))
        answer = Turn(speaker="assistant", text=f"Part {number} is " + "long " * 200)
        ended = Ended(turns=(asked, answer), dropped=dropped)
        await apply_writes(client, memory.writes(QUESTION, ended))

    recalled = await memory.recall(QUESTION)

    lines = [
        json.loads(line)
        for line in describe_earlier(recalled.summary, recalled.earlier).split("\n")
    ]
    questions = [line for line in lines if isinstance(line, str)]
    answers = [line["answer"] for line in lines if isinstance(line, dict)]
    assert questions == [f"What is part {number}?" for number in range(1, 38)]
    assert [line.partition(" is ")[0] for line in answers] == [
        f"Part {number}" for number in range(38 - len(answers), 38)
    ]
    assert [turn.text for turn in recalled.history[::2]] == [
        f"What is part {n}?" for n in (38, 39, 40)
    ]
    assert 5 < len(answers) < 22


@pytest.mark.parametrize("sign", ["a", "\u00e4", "\u6f22", '"'])
def test_long_questions_share_the_budget_of_earlier_turns(sign: str) -> None:
    told = describe_earlier((), turns(*(f"{number} {sign * 5_000}" for number in range(60))))

    lines = [json.loads(line) for line in told.split("\n")]
    assert [line.split()[0] for line in lines] == [str(number) for number in range(60)]
    assert len(told.encode()) < 2 * 4 * EARLIER_TOKENS


async def test_a_summary_keeps_the_groups_of_each_turn_and_drops_whole_lines(client: Any) -> None:
    memory = RedisMemory(client, shards=4, window=2, keep=1)
    texts = [f"{number}\u2028{'x' * QUESTION_CHARACTERS}" for number in range(40)]
    for text in texts:
        dropped = await memory.overflowing(QUESTION, kept=1, added=1)
        ended = Ended(turns=(Turn(speaker="user", text=text, groups=("hr",)),), dropped=dropped)
        await apply_writes(client, memory.writes(QUESTION, ended))

    summary = (await memory.recall(QUESTION)).summary

    kept = texts[-1 - len(summary) : -1]
    assert summary == tuple(SummaryLine(text[:QUESTION_CHARACTERS], ("hr",)) for text in kept)
    assert SUMMARY_CHARACTERS / 2 < sum(len(line.text) for line in summary) < SUMMARY_CHARACTERS


async def test_a_summary_of_an_earlier_version_is_read_without_its_cut_line(client: Any) -> None:
    memory = RedisMemory(client, shards=4)
    key = conversation_keys(QUESTION, 4).summary
    await client.hset(key, "text", 'n of a question"\n"And \\"this\\"?"\n"That?"')

    summary = (await memory.recall(QUESTION)).summary

    assert summary == (SummaryLine('And "this"?'), SummaryLine("That?"))


async def test_a_closed_pause_is_gone(client: Any) -> None:
    memory = RedisMemory(client, shards=4)
    await apply_writes(client, memory.writes(QUESTION, Ended(pause=PAUSE)))

    await apply_writes(client, memory.writes(QUESTION, Ended(close_pause=True)))

    assert (await memory.recall(QUESTION)).pause is None


@pytest.mark.parametrize(("forget", "language"), [("history", "de"), ("all", None)])
async def test_forgetting_removes_the_asked_questions(
    client: Any, forget: str, language: str | None
) -> None:
    memory = RedisMemory(client, shards=4)
    ended = Ended(turns=turns("one"), preferences=Preferences(language="de"), pause=PAUSE)
    await apply_writes(client, memory.writes(QUESTION, ended))

    await apply_writes(client, memory.writes(QUESTION, Ended(forget=forget)))

    remembered = await memory.recall(QUESTION)
    assert remembered.history == ()
    assert remembered.pause is None
    assert remembered.preferences.language == language


async def test_a_paid_call_is_found_until_its_question_ends(client: Any) -> None:
    store = RedisCallStore(client, shards=4, record_of=record_of(4))
    memory = RedisMemory(client, shards=4)
    call = Call("hash")
    await store.put(call, b"answer")

    assert await store.get(call) == b"answer"
    assert await store.get(Call("other")) is None
    await apply_writes(client, memory.writes(QUESTION, Ended()))
    assert await store.get(call) is None


async def test_a_shared_answer_stays_with_its_tenant_and_dies(client: Any) -> None:
    store = RedisCacheStore(client, shards=4, record_of=record_of(4))
    await store.put(Shared("acme"), b"answer", ttl_seconds=60)

    assert await store.get(Shared("acme")) == b"answer"
    assert await store.get(Shared("evil")) is None
    keys = await client.keys("*")
    assert len(keys) == 2
    assert all([0 < await client.ttl(key) <= 60 for key in keys])


async def test_a_shared_answer_is_forgotten_with_the_conversation_that_paid_for_it(
    client: Any,
) -> None:
    store = RedisCacheStore(client, shards=4, record_of=record_of(4))
    memory = RedisMemory(client, shards=4)
    await store.put(Shared("acme"), b"answer", ttl_seconds=60)

    await apply_writes(client, memory.writes(QUESTION, Ended(forget="all")))

    assert await store.get(Shared("acme")) is None
    [left] = await client.keys("*")
    assert b"answer" not in await client.dump(left)


async def test_an_answer_that_comes_after_the_end_of_its_question_is_not_shared(
    client: Any,
) -> None:
    store = RedisCacheStore(client, shards=4, record_of=record_of(4))
    record = record_of(4)(QUESTION)
    await client.hset(record, "o", "superseded")

    await store.put(Shared("acme"), b"answer", ttl_seconds=60)

    assert await client.keys("*") == [record.encode()]


async def test_a_conversation_that_never_rests_shares_a_bounded_number_of_answers(
    client: Any,
) -> None:
    store = RedisCacheStore(client, shards=4, record_of=record_of(4))

    for number in range(MOST_SHARED + 20):
        await store.put(Shared("acme", f"hash-{number}"), b"answer", ttl_seconds=60)

    [shared] = await client.keys("*:shared")
    assert await client.hlen(shared) == 20
    assert await store.get(Shared("acme", f"hash-{MOST_SHARED + 1}")) == b"answer"
    assert await store.get(Shared("acme", "hash-1")) is None


async def test_a_client_that_keeps_the_conversation_leaves_its_question_back_for_a_day(
    client: Any,
) -> None:
    memory = RedisMemory(client, shards=4)
    writes = memory.writes(QUESTION, Ended(pause=PAUSE, brief=True))

    assert [write.ttl_seconds for write in writes if isinstance(write, SetFields)] == [86_400]
    assert not any(isinstance(write, Append) for write in writes)


async def test_redis_away_is_one_clear_error() -> None:
    from broker.transport.connect import connect

    away = connect("unix:///nowhere/at/all.sock")

    with pytest.raises(MemoryUnavailableError, match="Redis does not respond"):
        await RedisMemory(away, shards=1).recall(QUESTION)
    await away.aclose()


class Call:
    question = QUESTION
    stage = "response"
    attempt = 0

    def __init__(self, prompt_hash: str) -> None:
        self.prompt_hash = prompt_hash


class Shared:
    assistant = "docs"
    question = QUESTION

    def __init__(self, tenant: str, content_hash: str = "h") -> None:
        self.tenant = tenant
        self.content_hash = content_hash


async def test_a_kept_payload_is_given_to_the_first_message_that_claims_it_and_to_no_other(
    client: Any,
) -> None:
    memory = RedisMemory(client, shards=4)
    await apply_writes(client, memory.writes(QUESTION, Ended(kept=KeptPayload("p", "{}", 60))))
    later = QUESTION.model_copy(update={"message_id": "n"})

    claimed = [await memory.claim_pause(QUESTION, "p") for _ in range(2)]

    assert claimed == [b"{}", b"{}"], "a redelivery of the message goes on"
    assert await memory.claim_pause(later, "p") is None
    assert await memory.claim_pause(QUESTION, "another") is None
    assert await memory.claim_pause(OTHER, "p") is None


async def test_a_closed_pause_erases_the_payload_that_it_kept(client: Any) -> None:
    memory = RedisMemory(client, shards=4)
    await apply_writes(client, memory.writes(QUESTION, Ended(kept=KeptPayload("p", "{}", 60))))

    await apply_writes(client, memory.writes(QUESTION, Ended(close_pause=True)))

    assert await memory.claim_pause(QUESTION, "p") is None
    assert await client.keys("*kept*") == []


async def test_in_every_order_of_replies_crashes_and_ends_one_message_alone_receives_a_payload(
    client: Any,
) -> None:
    """Each reply is delivered twice, as after a crash; the end of the winner closes the pause."""
    memory = RedisMemory(client, shards=4)
    replies = [QUESTION.model_copy(update={"message_id": name}) for name in ("n", "o")]
    kept = memory.writes(QUESTION, Ended(kept=KeptPayload("p", "{}", 60)))
    for order in sorted(set(permutations((0, 0, 1, 1, END)))):
        await apply_writes(client, kept)
        received: list[int] = []
        for step in order:
            if step == END:
                await apply_writes(client, memory.writes(QUESTION, Ended(close_pause=True)))
            elif await memory.claim_pause(replies[step], "p") is not None:
                received.append(step)
        claims = order[: order.index(END)]
        assert received == [step for step in claims if step == claims[0]], order
        assert await client.keys("*kept*") == []


async def test_a_choice_changes_the_language_or_the_form_and_leaves_the_other(client: Any) -> None:
    memory, people = RedisMemory(client, shards=4), RedisPeople(client, lambda _question: 60)
    german, short = Preferences(language="de", explicit=True), Preferences(style="shorter")
    for chosen in (german, short):
        await apply_writes(client, memory.writes(QUESTION, Ended(preferences=chosen)))
        await people.keep(QUESTION, "ada", chosen)

    both = Preferences(language="de", explicit=True, style="shorter")
    assert (await memory.recall(QUESTION)).preferences == both
    assert await people.read(QUESTION, "ada") == both
    assert await people.read(QUESTION, "bob") == Preferences()
    assert await people.forget(QUESTION, "ada")
    assert not await people.forget(QUESTION, "ada")
    assert await client.keys("rd:person:*") == []
