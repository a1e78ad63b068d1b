"""`refdesk trace` shows sentences for people, and says when a newer release wrote the journal."""

from broker.journal_events import JOURNAL_SCHEMA_VERSION
from broker.values import Fields, JournalEntry
from deploy.cli.operations.trace import trace_lines
from tests.support.broker_harness import question


def trace_lines_of(kind: str, **fields: Fields | str | int) -> str:
    return "\n".join(trace_lines(question(), [JournalEntry(kind, dict(fields))]))


def test_a_routing_is_shown_with_the_sentence_of_its_event() -> None:
    shown = trace_lines_of(
        "routed", stage="search", event="ambiguous_results", target="clarification"
    )

    assert "search, poor results: several topics match -> clarification" in shown


def test_an_event_that_this_release_does_not_know_is_shown_as_its_slug() -> None:
    assert "search, exploded -> final" in trace_lines_of(
        "routed", stage="search", event="exploded", target="final"
    )


def test_a_journal_of_a_newer_release_is_named_as_such() -> None:
    newer = JOURNAL_SCHEMA_VERSION + 1

    assert f"schema version {newer}" in trace_lines_of(
        "accepted", schema_version=newer, text="How?"
    )


def test_a_journal_of_this_release_and_of_the_former_one_has_no_warning() -> None:
    present = trace_lines_of("accepted", schema_version=JOURNAL_SCHEMA_VERSION, text="How?")

    assert "schema version" not in present
    assert "schema version" not in trace_lines_of("accepted", text="How?")
