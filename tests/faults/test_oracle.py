"""The oracle accepts what may happen, and refuses every kind of broken promise."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker.values import JournalEntry
from tests.faults.finding import Evidence
from tests.faults.ledger import Ledger, Noted
from tests.faults.ledger import read_notes as read
from tests.faults.oracle import findings
from tests.faults.outages import excusing

KILLED, HEALTHY, OTHER = 7, 8, 9
NAME = "ask-1"


def line(kind: str, pid: int = HEALTHY, at: float = 1.0, **fields: Any) -> Noted:
    return Noted(kind, pid, at, fields)


def entry(kind: str, at: float = 1.0, **fields: Any) -> JournalEntry:
    return JournalEntry(kind, fields, id=f"{at}", at=at)


def make_routed(after: str, did: str, to: str, **more: Any) -> JournalEntry:
    return entry("routed", row=f"{after}.{did}", stage=after, event=did, target=to, **more)


def wrote(role: str) -> JournalEntry:
    return entry("agent_run", role=role, status="completed")


ACCEPTED = line(
    "accepted",
    name=NAME,
    conversation="c1",
    text="ask 1",
    deadline_seconds=30.0,
    merged_into=None,
)
REPORTED = line("reported", name=NAME, outcome="answered", text="ask 1")
STARTED = line("started", name=NAME, role="lang", hop="1.0", entry="5-0", count=1)
FINISHED = entry("finished", at=2.0, outcome="answered", text="ask 1", termination_reason="")
JOURNAL = [
    entry("accepted"),
    make_routed("start", "question", "lang"),
    wrote("lang"),
    make_routed("lang", "completed", "translation"),
    wrote("translation"),
    make_routed("translation", "completed", "essence"),
    wrote("essence"),
    make_routed("essence", "exit", "final"),
    FINISHED,
]
GOOD = Evidence(
    ledger=[ACCEPTED, STARTED, REPORTED],
    journals={NAME: JOURNAL},
    results={NAME: 1},
    histories={"c1": [("user", "ask 1"), ("assistant", "ask 1")]},
    statistics={"c1": 1},
    faulty=frozenset({KILLED}),
)


def make_journal_evidence(*entries: JournalEntry) -> Evidence:
    return replace(GOOD, journals={NAME: list(entries)})


def make_noted_evidence(*lines: Noted) -> Evidence:
    return replace(GOOD, ledger=[ACCEPTED, *lines, REPORTED])


def kinds(evidence: Evidence) -> set[str]:
    return {finding.kind for finding in findings(evidence)}


def test_a_good_run_has_no_findings() -> None:
    assert findings(GOOD) == []


def test_a_question_without_an_outcome_is_lost() -> None:
    silent = replace(GOOD, ledger=[ACCEPTED, STARTED])

    assert [str(finding) for finding in findings(silent)] == [
        "lost: ask-1 was reported 0 outcomes to its client"
    ]
    assert "lost" in kinds(make_journal_evidence(*JOURNAL[:-1]))
    assert "lost" in kinds(replace(GOOD, results={}))


def test_a_second_outcome_is_found_wherever_it_is() -> None:
    assert kinds(replace(GOOD, ledger=[*GOOD.ledger, REPORTED])) == {"doubled"}
    assert kinds(replace(GOOD, results={NAME: 2})) == {"doubled"}
    assert "doubled" in kinds(make_journal_evidence(*JOURNAL, FINISHED))


def test_another_reported_outcome_than_in_the_journal_is_illegal() -> None:
    reported = line("reported", name=NAME, outcome="failed", text="sorry")

    assert kinds(replace(GOOD, ledger=[ACCEPTED, STARTED, reported])) == {"illegal"}


@pytest.mark.parametrize("place", range(1, 8))
def test_a_step_that_is_there_twice_is_doubled(place: int) -> None:
    assert "doubled" in kinds(make_journal_evidence(*JOURNAL[: place + 1], *JOURNAL[place:]))


@pytest.mark.parametrize("place", range(2, 7))
def test_a_step_that_was_left_out_is_found(place: int) -> None:
    assert kinds(make_journal_evidence(*JOURNAL[:place], *JOURNAL[place + 1 :])) != set()


def test_a_way_that_the_table_does_not_have_is_illegal() -> None:
    assert "illegal" in kinds(
        make_journal_evidence(
            *JOURNAL[:3], make_routed("lang", "completed", "search"), *JOURNAL[4:]
        )
    )
    assert "illegal" in kinds(
        make_journal_evidence(*JOURNAL[:3], make_routed("lang", "exploded", "final"), FINISHED)
    )


def test_a_limit_may_end_a_question_anywhere() -> None:
    ended = make_routed("lang", "completed", "final", termination_reason="deadline")

    assert findings(make_journal_evidence(*JOURNAL[:3], ended, FINISHED)) == []


def test_an_end_that_nobody_decided_is_illegal_unless_it_is_the_last_resort() -> None:
    resort = entry("finished", outcome="failed", text="sorry", termination_reason="deadline")

    assert "illegal" in kinds(make_journal_evidence(*JOURNAL[:3], FINISHED))
    assert "illegal" not in kinds(make_journal_evidence(*JOURNAL[:3], resort)) - {"illegal"}


def test_work_after_the_end_is_doubled() -> None:
    assert "doubled" in kinds(make_journal_evidence(*JOURNAL, wrote("search")))


def test_an_end_after_the_deadline_is_late() -> None:
    late = entry("finished", at=31.3, outcome="answered", text="ask 1", termination_reason="")

    assert kinds(make_journal_evidence(*JOURNAL[:-1], late)) == {"late"}


def test_a_delivery_that_is_started_twice_is_doubled_unless_redis_was_away() -> None:
    set_back = replace_kind(STARTED, "set back")

    assert kinds(make_noted_evidence(STARTED, STARTED)) == {"doubled"}
    assert kinds(make_noted_evidence(STARTED, set_back, STARTED)) == set()


def test_a_hop_is_started_three_times_at_most() -> None:
    starts = [
        line("started", name=NAME, role="lang", hop="1.0", entry=f"{number}-0", count=1)
        for number in range(4)
    ]

    assert kinds(make_noted_evidence(*starts[:3])) == set()
    assert kinds(make_noted_evidence(*starts)) == {"overspent"}
    assert kinds(make_noted_evidence(*starts, replace_kind(starts[0], "put off"))) == set()


def call(kind: str, pid: int) -> Noted:
    return line(kind, pid, call=f"{NAME}/essence/0")


def test_a_call_in_flight_at_a_kill_may_be_billed_again() -> None:
    dies = [call("looked", KILLED), call("billed", KILLED)]
    again = [call("looked", HEALTHY), call("billed", HEALTHY), call("stored", HEALTHY)]

    assert kinds(make_noted_evidence(*dies, *again)) == set()


def test_a_call_is_not_billed_twice_without_a_fault() -> None:
    once = [call("looked", HEALTHY), call("billed", HEALTHY)]
    twice = [call("looked", OTHER), call("billed", OTHER)]

    assert kinds(make_noted_evidence(*once, *twice)) == {"overspent"}


def test_a_call_is_not_billed_once_its_answer_is_stored() -> None:
    paid = [call("looked", KILLED), call("billed", KILLED), call("stored", KILLED)]
    again = [call("looked", HEALTHY), call("billed", HEALTHY)]

    assert kinds(make_noted_evidence(*paid, *again)) == {"overspent"}


def test_a_memory_that_is_missing_or_there_twice_is_found() -> None:
    turns = list(GOOD.histories["c1"])

    assert kinds(replace(GOOD, histories={"c1": []})) == {"lost"}
    assert kinds(replace(GOOD, histories={"c1": [*turns, *turns]})) == {"doubled"}
    assert kinds(replace(GOOD, statistics={"c1": 2})) == {"illegal"}


@pytest.mark.parametrize(
    ("forgotten_at", "found"), [(0.9, {"lost", "illegal"}), (1.0, set()), (1.1, set())]
)
def test_what_came_in_after_all_was_forgotten_is_remembered(
    forgotten_at: float, found: set[str]
) -> None:
    # The question came at 1.0, by a journal of milliseconds.
    name = "forget-2"
    asked = line(
        "accepted", name=name, conversation="c1", text="forget 2", deadline_seconds=30.0,
        merged_into=None,
    )  # fmt: skip
    journal = [
        entry("accepted", 0.5),
        make_routed("start", "command", "command"),
        wrote("command"),
        make_routed("command", "completed", "final"),
        replace(FINISHED, at=forgotten_at),
    ]
    evidence = replace(
        GOOD,
        ledger=[asked, *GOOD.ledger, replace(REPORTED, fields={**REPORTED.fields, "name": name})],
        journals={NAME: JOURNAL, name: journal},
        results={NAME: 1, name: 1},
        histories={},
        statistics={},
    )

    assert kinds(evidence) == found


def test_whatever_is_left_over_is_found() -> None:
    left = replace(GOOD, leftovers={"rd:{0}:parked": 1}, waiting={"rd:{0}:parked": "of m1"})

    assert [str(finding) for finding in findings(left)] == [
        "left over: rd:{0}:parked holds 1: of m1"
    ]


def test_an_outage_excuses_what_it_may_lose_and_nothing_else() -> None:
    gone = replace(GOOD, journals={NAME: []}, results={}, histories={}, statistics={})
    twice = replace(GOOD, ledger=[*GOOD.ledger, REPORTED])

    assert excusing(findings(gone), gone, outages=[1.5])[0] == []
    assert excusing(findings(gone), gone, outages=[0.5])[0] != []
    assert excusing(findings(twice), twice, outages=[1.5])[0] != []


def replace_kind(noted_line: Noted, kind: str) -> Noted:
    return replace(noted_line, kind=kind)


def test_a_line_that_is_still_being_written_waits_until_it_is_whole(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ledger.note("started", name=NAME)
    ledger.close()
    whole = ledger.path.read_bytes()

    ledger.path.write_bytes(whole + whole[:20])
    assert [each.kind for each in read(ledger.path)] == ["started"]

    ledger.path.write_bytes(whole + whole)
    assert [each.kind for each in read(ledger.path)] == ["started", "started"]
