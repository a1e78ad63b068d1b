"""What an agent returns becomes a settlement; what it must not write or read is a failure."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel, Field

from agents.agent import Agent
from broker.values import Delivery, Forward, Retry, Settlement
from envelope.envelope import ContractError, Envelope, decode
from envelope.outcome import GaveUp, RetryAfter, Wrote
from envelope.role import Role
from llm.errors import ModelTimeout
from llm.vendors.model_transport import RetryRules, Transport
from tests.support.broker_harness import carrying
from worker.agent_handler import AgentHandler, make_poison_notice
from worker.errors import RunFailedError

ENVELOPE = carrying()
DELIVERY = Delivery(
    entry_id="1-1",
    role="search",
    shard=0,
    consumer="w1",
    count=1,
    question=ENVELOPE.question,
    frame=ENVELOPE.encode(),
    remaining_seconds=30.0,
)


class SearchReads(BaseModel):
    text: str = Field(max_length=10_000)


class SearchWrites(BaseModel):
    search_quality: str | None = None
    search_error: str | None = None
    response: str | None = None


class FixedAgent(Agent[SearchReads, SearchWrites]):
    """An agent that returns the same outcome for every envelope."""

    role = Role.SEARCH
    reads = SearchReads
    writes = SearchWrites

    def __init__(self, outcome: Any) -> None:
        self._outcome = outcome

    async def work(self, reads: SearchReads) -> Any:
        return self._outcome


async def run(
    outcome: object,
    *,
    envelope: Envelope = ENVELOPE,
    remaining_seconds: float = 30.0,
    assistants: Mapping[tuple[str, str], Agent[Any, Any]] | None = None,
) -> Settlement:
    handler = AgentHandler(FixedAgent(outcome), limit_seconds=5.0, assistants=assistants)
    return await handler.handle(replace(DELIVERY, remaining_seconds=remaining_seconds), envelope)


def read_envelope(settlement: Settlement) -> Envelope:
    """Return the envelope that a settlement sends to the manager."""
    assert isinstance(settlement, Forward)
    [send] = settlement.sends
    assert send.role == "manager"
    return send.decoded if isinstance(send.decoded, Envelope) else decode(send.frame)


async def test_attributes_that_were_not_set_are_not_written() -> None:
    sent = read_envelope(await run(Wrote(SearchWrites(search_quality="good"))))

    assert sent.payload == {**ENVELOPE.payload, "search_quality": "good"}
    assert sent.hop is not None
    assert sent.hop.wrote == ("search_quality",)


async def test_an_agent_that_asks_for_more_time_than_is_left_gives_up_with_its_reason() -> None:
    later: RetryAfter[SearchWrites] = RetryAfter(10.0, "the index is being written")

    in_time = await run(later, remaining_seconds=30.0)
    too_late = read_envelope(await run(later, remaining_seconds=5.0))

    assert isinstance(in_time, Retry)
    assert (in_time.seconds, in_time.reason) == (10.0, "the index is being written")
    assert too_late.hop is not None
    assert too_late.hop.status == "gave_up"
    assert too_late.hop.reason == "no time left: the index is being written"


async def test_an_agent_without_time_for_a_retry_returns_its_partial_result() -> None:
    partial = Wrote(SearchWrites(search_quality="good"))
    later = RetryAfter(10.0, "the model is busy", otherwise=partial)

    in_time = await run(later, remaining_seconds=30.0)
    too_late = read_envelope(await run(later, remaining_seconds=15.0))

    assert isinstance(in_time, Retry)
    assert too_late.payload["search_quality"] == "good"


async def test_an_agent_whose_model_takes_all_the_time_that_is_left_can_still_send_something() -> (
    None
):
    transport = Transport("slow", 60.0, RetryRules(attempts=1), limiter=None)

    class Asking(FixedAgent):
        async def work(self, reads: SearchReads) -> Any:
            with pytest.raises(ModelTimeout):
                await transport.within(self.run, lambda _seconds: asyncio.Event().wait())
            return await super().work(reads)

    handler = AgentHandler(Asking(Wrote(SearchWrites(search_quality="good"))), limit_seconds=5.0)
    sent = read_envelope(await handler.handle(replace(DELIVERY, remaining_seconds=2.5), ENVELOPE))

    assert sent.payload["search_quality"] == "good"


async def test_a_question_for_an_unserved_assistant_names_the_missing_setting() -> None:
    wrote = Wrote(SearchWrites(search_quality="good"))
    other, own = ("acme", "other"), (ENVELOPE.tenant, ENVELOPE.assistant)

    unserved = read_envelope(await run(wrote, assistants={other: FixedAgent(wrote)}))
    served = read_envelope(await run(GaveUp("unused"), assistants={own: FixedAgent(wrote)}))

    assert unserved.hop is not None
    assert (unserved.hop.status, "ASSISTANTS" in unserved.hop.reason) == ("gave_up", True)
    assert served.payload["search_quality"] == "good"


async def test_a_payload_that_the_agent_cannot_read_names_the_attribute_and_not_its_text() -> None:
    envelope = ENVELOPE.replace(payload={"text": "secret " * 2000})

    with pytest.raises(ContractError, match=r"search expected 'text' in the payload") as raised:
        await run(Wrote(SearchWrites()), envelope=envelope)

    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (Wrote(SearchWrites(response="an answer")), "search wrote attributes of other roles"),
        (Wrote(SearchReads(text="no writes")), "expected Wrote, RetryAfter or GaveUp of search"),
        ("an answer", "found 'str'"),
    ],
)
async def test_an_outcome_that_breaks_the_contract_is_a_failure(
    outcome: object, message: str
) -> None:
    with pytest.raises((ContractError, RunFailedError), match=message):
        await run(outcome)


def test_the_manager_learns_that_an_entry_killed_its_workers() -> None:
    notice = make_poison_notice(DELIVERY, "3 workers died")

    assert notice is not None
    sent = decode(notice.frame)
    assert sent.hop is not None
    assert (notice.role, sent.hop.status, sent.hop.reason) == (
        "manager",
        "failed",
        "3 workers died",
    )


@pytest.mark.parametrize("changes", [{"role": "manager"}, {"frame": b"no frame"}])
def test_no_notice_is_made_for_entries_of_the_manager_or_without_a_readable_frame(
    changes: dict[str, Any],
) -> None:
    assert make_poison_notice(replace(DELIVERY, **changes), "3 workers died") is None


class GroupReads(BaseModel):
    groups: tuple[str, ...] = ()


class GroupAgent(Agent[GroupReads, SearchWrites]):
    """An agent that writes the groups that it reads."""

    role = Role.SEARCH
    reads = GroupReads
    writes = SearchWrites

    async def work(self, reads: GroupReads) -> Wrote[SearchWrites]:
        return Wrote(SearchWrites(search_error=",".join(reads.groups)))


@pytest.mark.parametrize("given", [(), ("sales",)])
async def test_groups_in_the_payload_are_not_groups_of_the_user(given: tuple[str, ...]) -> None:
    envelope = ENVELOPE.with_groups(given).replace(payload={"text": "?", "groups": ["hr"]})

    settlement = await AgentHandler(GroupAgent(), limit_seconds=5.0).handle(DELIVERY, envelope)

    sent = read_envelope(settlement)
    assert sent.payload["search_error"] == ",".join(given)
    assert sent.groups == given


class GroupWrites(BaseModel):
    groups: tuple[str, ...] = ()


class GreedyAgent(Agent[GroupReads, GroupWrites]):
    """An agent that tries to give the person another group."""

    role = Role.SEARCH
    reads = GroupReads
    writes = GroupWrites

    async def work(self, reads: GroupReads) -> Wrote[GroupWrites]:
        return Wrote(GroupWrites(groups=("hr",)))


async def test_no_agent_changes_the_groups_of_the_person() -> None:
    with pytest.raises(ContractError, match="attributes of other roles: groups"):
        await AgentHandler(GreedyAgent(), limit_seconds=5.0).handle(DELIVERY, ENVELOPE)


async def test_an_agent_that_used_up_the_time_of_its_question_is_not_retried() -> None:
    class HangingAgent(FixedAgent):
        async def work(self, reads: SearchReads) -> Any:
            await asyncio.Event().wait()

    handler = AgentHandler(HangingAgent(None), limit_seconds=5.0)
    late = replace(DELIVERY, remaining_seconds=0.51)

    envelope = read_envelope(await handler.handle(late, ENVELOPE))

    assert envelope.hop is not None
    assert (envelope.hop.status, envelope.hop.reason) == (
        "gave_up", "search took longer than the time that was left"
    )  # fmt: skip
