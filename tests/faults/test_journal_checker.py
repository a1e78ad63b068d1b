"""The walk along the tree of a question with branches."""

from typing import Any

import pytest

from broker.values import JournalEntry
from tests.faults.journal_checker import problems


def entry(kind: str, **fields: Any) -> JournalEntry:
    return JournalEntry(kind, fields)


def make_routed(after: str, did: str, to: str, **more: Any) -> JournalEntry:
    return entry("routed", row=f"{after}.{did}", stage=after, event=did, target=to, **more)


def ran(role: str, **more: Any) -> JournalEntry:
    return entry("agent_run", role=role, status="completed", **more)


BEFORE = [
    entry("accepted"),
    make_routed("start", "question", "lang"),
    *(
        step
        for role, following in (("lang", "translation"), ("translation", "essence"),
                                ("essence", "guardrails"))
        for step in (ran(role), make_routed(role, "completed", following))
    ),
    ran("guardrails"),
]  # fmt: skip
SCATTER = make_routed("guardrails", "within_scope", "act", branches=["t1", "t2"])
FIRST = [ran("tool", branch="t1"), make_routed("call", "completed", "return", branch="t1")]
SECOND = [ran("tool", branch="t2"), make_routed("call", "completed", "return", branch="t2")]
AFTER = [
    make_routed("act", "gathered", "response"),
    ran("response"),
    make_routed("response", "completed", "quality"),
    ran("quality"),
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
        ([*FIRST, *SECOND, ran("tool", branch="t9")],
         ("doubled", "agent_run in the branch t9, which is not open")),
        ([*FIRST, ran("tool", branch="t2"), ran("tool", branch="t2"), SECOND[1]],
         ("doubled", "agent_run by tool twice")),
        ([FIRST[0], make_routed("call", "completed", "response", branch="t1"), *SECOND],
         ("illegal", "went from 'call.completed' to response")),
    ],
)  # fmt: skip
def test_what_no_branch_may_do_is_found(
    middle: list[JournalEntry], problem: tuple[str, str]
) -> None:
    assert problem in list(problems([*BEFORE, SCATTER, *middle, *AFTER]))


def test_a_join_that_goes_on_twice_is_found() -> None:
    found = list(problems([*BEFORE, SCATTER, *FIRST, *SECOND, AFTER[0], *AFTER]))

    assert ("doubled", "was routed after act while it was at response ") in found
