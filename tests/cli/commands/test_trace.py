"""`refdesk trace` shows sentences for people, and says when a newer release wrote the journal."""

from pydantic import JsonValue

from broker.journal_events import JOURNAL_SCHEMA_VERSION
from broker.values import Fields, JournalEntry
from cli.commands.trace import list_error_lines, list_trajectory_lines, trace_lines
from cli.printing import WIDTH
from envelope.specialists import ErrorSeverity, SpecialistError
from tests.gateway.test_trajectory import JOURNAL
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


def test_the_reasoning_of_a_plan_is_shown_whole_within_the_width_of_a_terminal() -> None:
    reasoning = "the question asks for a fine, and for the rule that a carrier has to keep " * 3

    shown = trace_lines_of(
        "agent_run",
        role="reason",
        status="completed",
        milliseconds=1,
        writes={"reasoning": reasoning},
    )

    lines = shown.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert " ".join(reasoning.split()) in " ".join(shown.replace("|", " ").split())


def make_branching_journal() -> list[JournalEntry]:
    """Two branches in one wave, then one that began a branch below it; their entries interleave."""

    def entry(kind: str, at: float, **fields: JsonValue) -> JournalEntry:
        return JournalEntry(kind, fields, f"{at * 1000:.0f}-0", at)

    def make_routing(at: float, stage: str, target: str, **fields: JsonValue) -> JournalEntry:
        return entry("routed", at, stage=stage, event="completed", target=target, **fields)

    call: dict[str, JsonValue] = {"model": "m@openai", "task": "reason", "milliseconds": 9.0}
    return [
        entry("accepted", 1.0, text="How?"),
        make_routing(1.1, "reason", "act", branches=["t1", "t2"]),
        entry("agent_run", 1.2, role="tool", status="completed", milliseconds=1, branch="t2",
              writes={"multi_tool_results": {"two": "x" * 300}}),
        entry("model_call", 1.3, cost_usd="0.25", branch="t1", **call),
        entry("agent_run", 1.3, role="tool", status="completed", milliseconds=2, branch="t1"),
        make_routing(1.4, "call", "return", branch="t2"),
        entry("routed", 1.5, stage="call", event="failed", target="return", branch="t1"),
        make_routing(1.6, "act", "act", branches=["t3"]),
        make_routing(1.7, "call", "inner", branch="t3", branches=["t3/w1"]),
        entry("model_call", 1.8, cost_usd="0.5", branch="t3/w1", **call),
        entry("agent_run", 1.8, role="worker", status="completed", milliseconds=3, branch="t3/w1"),
        entry("finished", 2.0, outcome="answered"),
    ]  # fmt: skip


def test_branches_are_shown_below_their_scatter_with_waves_times_and_cost() -> None:
    lines = trace_lines(question(), make_branching_journal())

    shown = [line[13:] for line in lines[1:]]
    heads = [line for line in shown if "wave" in line]
    assert heads == [
        "|  wave 1, t1: failed in 400 ms, 1 calls, 0.250000 USD",
        "|  wave 1, t2: completed in 300 ms",
        "|  wave 2, t3: no result in 200 ms, 1 calls, 0.500000 USD",
        "|  |  wave 1, t3/w1: no result in 100 ms, 1 calls, 0.500000 USD",
    ]
    first, second = shown.index(heads[0]), shown.index(heads[1])
    assert "asked m@openai" in shown[first + 1]
    assert shown[first + 1].startswith("|  |")
    assert any("multi_tool_results" in line for line in shown[second + 1 : shown.index(heads[2])])
    assert all(len(line) <= 80 for line in lines)
    assert lines[-1].startswith("3 hops, 1000 ms, 2 model calls, 0.750000 USD")


def test_entries_of_a_branch_that_never_began_are_not_lost() -> None:
    journal = [entry for entry in make_branching_journal() if "branches" not in entry.fields]

    lines = trace_lines(question(), journal)

    assert sum("in 3 ms" in line for line in lines) == 1
    assert not any("wave" in line for line in lines)


ERROR = SpecialistError(
    error_id="RD-2026-01-13-12345",
    specialist="compliance",
    text="ModelError: it hangs",
    severity=ErrorSeverity.MEDIUM,
    phase="verification",
).model_dump(mode="json")


ACCEPTED = JournalEntry("accepted", {"text": "Does it comply? " * 50})


def test_an_operator_sees_id_severity_phase_and_the_shortened_question() -> None:
    wrote = JournalEntry("agent_run", {"role": "compliance", "writes": {"errors": [ERROR]}})
    ended = JournalEntry("finished", {"errors": [ERROR]})

    question, head, text = list_error_lines([ACCEPTED, wrote, ended])

    assert len(question) == 200
    assert head.split() == ["RD-2026-01-13-12345", "medium", "verification", "compliance"]
    assert text.strip() == "ModelError: it hangs"


def test_a_message_without_errors_says_so() -> None:
    assert list(list_error_lines([ACCEPTED]))[1:] == ["no errors"]


def test_a_failed_model_call_and_an_agent_without_a_result_are_errors_of_any_message() -> None:
    call = {"model": "big@vendor", "task": "judge", "error": "ModelTimeout: no answer in 30 s"}
    gave_up = {"role": "plan", "status": "gave_up", "reason": "expected a plan, found no worker"}
    entries = [JournalEntry("model_call", dict(call)), JournalEntry("agent_run", dict(gave_up))]

    assert list(list_error_lines([ACCEPTED, *entries, entries[0]]))[1:] == [
        "big@vendor for judge: ModelTimeout: no answer in 30 s",
        "plan gave_up: expected a plan, found no worker",
    ]


def test_steps_metrics_and_agents_fit_a_terminal() -> None:
    lines = list(list_trajectory_lines(JOURNAL))

    assert all(len(line) <= WIDTH for line in lines)
    assert lines[0] == "     100 ms ? triage 1: a contract and a law"
    assert '> compliance 1: graph_search {"query": "subcontractor"}' in lines[2]
    assert "< compliance 1: lawyer (hallucination)" in lines[6]
    assert "7 steps, 3 calls to 2 tools, 1 repeated" in lines
    assert lines[-1].split() == ["triage", "1", "5.0", "0", "0.000000", "0"]
