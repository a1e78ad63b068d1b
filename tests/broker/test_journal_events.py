"""Journals name the version of their schema; those of the former version are read as new ones."""

import pytest

from broker.entry_codec import encode_accepted, json_fields
from broker.journal_events import (
    JOURNAL_KINDS,
    JOURNAL_SCHEMA_VERSION,
    EventFields,
    read_schema_version,
    upgrade_event,
)
from broker.keys import question_keys
from tests.support.broker_harness import BrokerHarness, question

OF_VERSION_1 = [
    (
        ("wrote", {"role": "lang", "status": "wrote", "writes": {}}),
        ("agent_run", {"role": "lang", "status": "completed", "writes": {}}),
    ),
    (
        ("wrote", {"role": "lang", "status": "gave_up", "writes": {}}),
        ("agent_run", {"role": "lang", "status": "gave_up", "writes": {}}),
    ),
    (
        ("buried", {"role": "lang", "reason": "attempts_spent", "error": "x"}),
        ("dead_lettered", {"role": "lang", "reason": "attempts_exhausted", "error": "x"}),
    ),
    (
        ("buried", {"role": "lang", "reason": "poison", "error": "x"}),
        ("dead_lettered", {"role": "lang", "reason": "poison", "error": "x"}),
    ),
    (
        (
            "routed",
            {
                "row": "search: poor: several places compete",
                "after": "search",
                "did": "poor: several places compete",
                "read": {"search_quality": "poor"},
                "to": "clarification",
                "counters": {},
            },
        ),
        (
            "routed",
            {
                "row": "search.ambiguous_results",
                "stage": "search",
                "event": "ambiguous_results",
                "result": {"search_quality": "poor"},
                "target": "clarification",
                "counters": {},
            },
        ),
    ),
]


@pytest.mark.parametrize(("before", "now"), OF_VERSION_1)
def test_an_event_of_version_1_is_read_in_the_present_version(
    before: tuple[str, EventFields], now: tuple[str, EventFields]
) -> None:
    assert upgrade_event(*before) == now


@pytest.mark.parametrize("now", [now for _, now in OF_VERSION_1])
def test_an_event_of_the_current_version_is_unchanged(now: tuple[str, EventFields]) -> None:
    assert upgrade_event(*now) == now
    assert now[0] in JOURNAL_KINDS


def test_a_routing_that_names_no_known_event_keeps_what_it_names() -> None:
    kind, fields = upgrade_event("routed", {"after": "start", "did": "exploded", "to": "final"})

    assert (kind, fields["event"], fields["row"]) == ("routed", "exploded", "start.exploded")


def test_a_journal_names_its_schema_version_in_its_first_event() -> None:
    fields = json_fields(encode_accepted({"text": "How?"}))

    assert fields == {"schema_version": JOURNAL_SCHEMA_VERSION, "text": "How?"}
    assert read_schema_version("accepted", fields) == JOURNAL_SCHEMA_VERSION
    assert read_schema_version("accepted", {"text": "How?"}) == 1
    assert read_schema_version("finished", {}) is None


async def test_a_journal_of_version_1_in_redis_is_read_by_every_reader(
    harness: BrokerHarness,
) -> None:
    names = question_keys(question(), 0)
    await harness.client.xadd(names.journal, {"k": "accepted", "j": '{"text":"How?"}'})
    await harness.client.xadd(
        names.journal,
        {
            "k": "wrote",
            "j": '{"role":"lang","status":"wrote"}',
            "k1": "routed",
            "j1": '{"row":"lang: done","after":"lang","did":"done","to":"translation"}',
        },
    )

    journal = await harness.broker.replies.read_journal(question())

    assert [entry.kind for entry in journal] == ["accepted", "agent_run", "routed"]
    assert journal[1].fields["status"] == "completed"
    assert journal[2].fields["target"] == "translation"
