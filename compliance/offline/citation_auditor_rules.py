"""Checks statements against the passages that they cite, by words, numbers and negations."""

from compliance.auditing.citation_audit import CitablePassage, audit_citations
from compliance.auditing.citation_reading import CitedClaim, ReadAnswer
from llm.tasks.specialists.citation_auditor import (
    CheckedStatement,
    CitedStatement,
    Inputs,
    Output,
)


def answer(inputs: Inputs) -> Output:
    """Return the findings about each statement."""
    return Output(statements=tuple(_check(one) for one in inputs.statements))


def _check(one: CitedStatement) -> CheckedStatement:
    name = one.citation or one.id
    passages = []
    if one.passage:
        passages.append(
            CitablePassage(
                one.place or name, one.passage, frozenset({name}), one.place, one.language
            )
        )
    claim = CitedClaim(one.statement, one.citation, "link", (name,))
    [found] = audit_citations(ReadAnswer((claim,), (), ()), passages).citations
    return CheckedStatement(
        id=one.id,
        exists=found.exists,
        says=found.says,
        omitted=found.omitted,
        is_well_formatted=found.is_well_formatted,
        problems=found.problems,
    )
