"""What the steps of the swarm leave in the payload.

Plans, ledgers and outputs travel as objects whose models are those of the package `swarm`.
"""

from enum import StrEnum


class PlanStep(StrEnum):
    """What follows a plan."""

    WORK = "work"
    APPROVE = "approve"
    SEARCH = "search"


class LedgerStep(StrEnum):
    """What follows when the ledger was brought up to date."""

    WORK = "work"
    ASK_INFORMATION = "ask_information"
    ASK_APPROVAL = "ask_approval"
    REPLAN = "replan"
    FINISH = "finish"
