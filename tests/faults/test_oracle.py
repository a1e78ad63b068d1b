"""The oracle accepts what may happen, and refuses every kind of broken promise."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker.values import JournalEntry
from tests.faults.journal_checker import problems
from tests.faults.ledger import Evidence, Ledger, Noted
from tests.faults.ledger import read_notes as read
from tests.faults.oracle import excusing, findings

KILLED, HEALTHY, OTHER = 7, 8, 9
NAME = "ask-1"


def line(kind: str, pid: int = HEALTHY, at: float = 1.0, **fields: Any) -> Noted:
    return Noted(kind, pid, at, fields)


def entry(kind: str, at: float = 1.0, **fields: Any) -> JournalEntry:
    return JournalEntry(kind, fields, id=f"{at}", at=at)


def make_routed(after: str, did: str, to: str, **more: Any) -> JournalEntry:
    return entry("routed", row=f"{after}.{did}", stage=after, event=did, target=to, **more)


def wrote(role: str, **more: Any) -> JournalEntry:
    return entry("agent_run", role=role, status="completed", **more)


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


def make_end(at: float = 2.0, **fields: Any) -> JournalEntry:
    return entry("finished", at=at, **{"text": "ask 1", "termination_reason": "", **fields})


STARTS = [
    line(
        "started", HEALTHY + number, number, name=NAME, role="lang", hop="1.0",
        entry=f"{number}000-0", count=1,
    )
    for number in range(4)
]  # fmt: skip


@pytest.mark.parametrize(
    ("evidence", "found"),
    [
        (replace(GOOD, ledger=[ACCEPTED, STARTED]), {"lost"}),
        (replace(GOOD, results={}), {"lost"}),
        (replace(GOOD, ledger=[*GOOD.ledger, REPORTED]), {"doubled"}),
        (replace(GOOD, results={NAME: 2}), {"doubled"}),
        (replace(GOOD, ledger=[ACCEPTED, STARTED, line("reported", name=NAME, outcome="failed")]),
         {"illegal"}),
        (make_journal_evidence(*JOURNAL[:-1], make_end(at=31.3, outcome="answered")), {"late"}),
        (make_noted_evidence(STARTED, STARTED), {"doubled"}),
        (make_noted_evidence(STARTED, replace(STARTED, kind="set back"), STARTED), set()),
        (make_noted_evidence(*STARTS[:3]), set()),
        (make_noted_evidence(*STARTS), {"overspent"}),
        (make_noted_evidence(*STARTS, replace(STARTS[0], kind="put off")), set()),
        (make_noted_evidence(*STARTS[:3], replace(STARTS[3], pid=HEALTHY)), set()),
        (make_noted_evidence(*STARTS, line("leaving", HEALTHY + 1, 1.9)), set()),
        (make_noted_evidence(*STARTS, line("leaving", HEALTHY + 1, 2.1)), {"overspent"}),
        (replace(GOOD, histories={"c1": []}), {"lost"}),
        (replace(GOOD, histories={"c1": 2 * list(GOOD.histories["c1"])}), {"doubled"}),
        (replace(GOOD, statistics={"c1": 2}), {"illegal"}),
    ],
    ids=[
        "not reported", "not on the result list", "reported twice", "twice on the result list",
        "another outcome than in the journal", "late", "a delivery started twice",
        "started again after Redis was away", "three starts", "four starts", "and one put off",
        "two of one process", "one handed back", "one lost before its process left",
        "not remembered", "remembered twice", "counted twice",
    ],
)  # fmt: skip
def test_a_broken_promise_is_found_by_its_kind(evidence: Evidence, found: set[str]) -> None:
    assert kinds(evidence) == found


@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        (JOURNAL[:-1], "lost"),
        ([*JOURNAL, FINISHED], "doubled"),
        ([*JOURNAL, wrote("search")], "doubled"),
        ([*JOURNAL[:3], make_routed("lang", "completed", "search"), *JOURNAL[4:]], "illegal"),
        ([*JOURNAL[:3], make_routed("lang", "exploded", "final"), FINISHED], "illegal"),
        ([*JOURNAL[:3], FINISHED], "illegal"),
    ],
    ids=[
        "no end", "two ends", "work after the end", "no such way", "no such event",
        "an end that nobody decided",
    ],
)  # fmt: skip
def test_a_journal_that_the_table_does_not_have_is_found(
    steps: list[JournalEntry], kind: str
) -> None:
    assert kind in kinds(make_journal_evidence(*steps))


@pytest.mark.parametrize("place", range(1, 8))
def test_a_step_that_is_there_twice_or_was_left_out_is_found(place: int) -> None:
    assert "doubled" in kinds(make_journal_evidence(*JOURNAL[: place + 1], *JOURNAL[place:]))
    assert kinds(make_journal_evidence(*JOURNAL[:place], *JOURNAL[place + 1 :])) != set()


def test_a_limit_or_the_last_resort_may_end_a_question_anywhere() -> None:
    ended = make_routed("lang", "completed", "final", termination_reason="deadline")
    resort = make_end(outcome="failed", text="sorry", termination_reason="deadline")
    reported = line("reported", name=NAME, outcome="failed", text="sorry")
    failed = replace(
        make_journal_evidence(*JOURNAL[:3], resort),
        ledger=[ACCEPTED, STARTED, reported], histories={}, statistics={},
    )  # fmt: skip

    assert findings(make_journal_evidence(*JOURNAL[:3], ended, FINISHED)) == []
    assert findings(failed) == []


def call(pid: int, *steps: str) -> list[Noted]:
    return [line(step, pid, call=f"{NAME}/essence/0") for step in steps]


@pytest.mark.parametrize(
    ("first", "found"),
    [
        (call(KILLED, "looked", "billed"), set()),
        (call(OTHER, "looked", "billed"), {"overspent"}),
        (call(KILLED, "looked", "billed", "stored"), {"overspent"}),
    ],
    ids=["in flight at a kill", "without a fault", "after its answer was stored"],
)
def test_a_call_is_billed_again_only_when_who_paid_it_died_before_it_was_stored(
    first: list[Noted], found: set[str]
) -> None:
    again = call(HEALTHY, "looked", "billed", "stored")

    assert kinds(make_noted_evidence(*first, *again)) == found


@pytest.mark.parametrize(
    ("forgotten_at", "found"), [(0.9, {"lost", "illegal"}), (1.0, set()), (1.1, set())]
)
def test_a_message_that_arrives_after_an_erasure_is_remembered(
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


def test_a_command_to_forget_that_failed_leaves_the_memory_as_it_was() -> None:
    name = "forget-2"
    asked = line(
        "accepted", name=name, conversation="c1", text="forget 2", deadline_seconds=30.0,
        merged_into=None,
    )  # fmt: skip
    told = line("reported", name=name, outcome="failed", text="apology")
    journal = [
        entry("accepted", 3.0),
        make_routed("start", "command", "command"),
        entry("agent_run", role="command", status="failed"),
        make_routed("command", "failed", "final"),
        make_end(4.0, outcome="failed", text="apology"),
    ]
    evidence = replace(
        GOOD,
        ledger=[*GOOD.ledger, asked, told],
        journals={NAME: JOURNAL, name: journal},
        results={NAME: 1, name: 1},
    )

    assert findings(evidence) == []
    assert kinds(replace(evidence, histories={}, statistics={})) == {"lost", "illegal"}


def test_whatever_is_left_over_is_found() -> None:
    left = replace(GOOD, leftovers={"rd:{0}:parked": 1}, waiting={"rd:{0}:parked": "of m1"})

    assert [str(finding) for finding in findings(left)] == [
        "left over: rd:{0}:parked holds 1: of m1"
    ]


def test_an_outage_excuses_what_it_may_lose_and_nothing_else() -> None:
    gone = replace(GOOD, journals={NAME: []}, results={}, histories={}, statistics={})
    twice = replace(GOOD, ledger=[*GOOD.ledger, REPORTED])

    assert excusing(findings(gone), gone, outages=[(0.9, 1.5)])[0] == []
    assert excusing(findings(gone), gone, outages=[(0.4, 0.5)])[0] != []
    assert excusing(findings(twice), twice, outages=[(0.9, 1.5)])[0] != []


def test_a_line_that_is_still_being_written_waits_until_it_is_whole(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ledger.note("started", name=NAME)
    ledger.close()
    whole = ledger.path.read_bytes()

    ledger.path.write_bytes(whole + whole[:20])
    assert [each.kind for each in read(ledger.path)] == ["started"]

    ledger.path.write_bytes(whole + whole)
    assert [each.kind for each in read(ledger.path)] == ["started", "started"]


BEFORE = [
    entry("accepted"),
    make_routed("start", "question", "lang"),
    *(
        step
        for role, following in (("lang", "translation"), ("translation", "essence"),
                                ("essence", "guardrails"))
        for step in (wrote(role), make_routed(role, "completed", following))
    ),
    wrote("guardrails"),
]  # fmt: skip
SCATTER = make_routed("guardrails", "within_scope", "act", branches=["t1", "t2"])
FIRST = [wrote("tool", branch="t1"), make_routed("call", "completed", "return", branch="t1")]
SECOND = [wrote("tool", branch="t2"), make_routed("call", "completed", "return", branch="t2")]
AFTER = [
    make_routed("act", "gathered", "response"),
    wrote("response"),
    make_routed("response", "completed", "quality"),
    wrote("quality"),
    make_routed("quality", "approved", "final"),
    entry("finished", outcome="answered", termination_reason=""),
]


@pytest.mark.parametrize(
    "branches",
    [[*FIRST, *SECOND], [SECOND[0], *FIRST, SECOND[1]]],
    ids=["in order", "mixed"],
)
def test_branches_return_in_any_order(branches: list[JournalEntry]) -> None:
    assert list(problems([*BEFORE, SCATTER, *branches, *AFTER])) == []


@pytest.mark.parametrize(
    ("middle", "problem"),
    [
        ([*FIRST], ("lost", "went on without the result of the branch t2")),
        ([*FIRST, *SECOND, *SECOND], ("doubled", "agent_run by tool while it was at return")),
        ([*FIRST, *SECOND, SCATTER],
         ("doubled", "was routed after guardrails while it was at act ")),
        ([*FIRST, *SECOND, wrote("tool", branch="t9")],
         ("doubled", "agent_run in the branch t9, which is not open")),
        ([*FIRST, wrote("tool", branch="t2"), wrote("tool", branch="t2"), SECOND[1]],
         ("doubled", "agent_run by tool twice")),
        ([FIRST[0], make_routed("call", "completed", "response", branch="t1"), *SECOND],
         ("illegal", "went from 'call.completed' to response")),
    ],
)  # fmt: skip
def test_forbidden_steps_of_a_branch_are_found(
    middle: list[JournalEntry], problem: tuple[str, str]
) -> None:
    assert problem in list(problems([*BEFORE, SCATTER, *middle, *AFTER]))


def test_a_join_that_goes_on_twice_is_found() -> None:
    results = list(problems([*BEFORE, SCATTER, *FIRST, *SECOND, AFTER[0], *AFTER]))

    assert ("doubled", "was routed after act while it was at response ") in results
