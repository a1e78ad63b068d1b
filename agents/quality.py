"""Checks every claim of an answer against the source it cites, before the answer leaves.

The score is `0.5 * grounded + 0.35 * completeness + 0.15 * language`: the share of supported
claims, how far the question is met, and 1 or 0 for the user's language. An answer with a claim that
is not supported scores at most 0.69 times its grounded share; without a judge no claim counts as
supported, and the score is 0. Neither can pass for approved.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field

from agents.agent import Agent
from citations.citing import evidence_of, is_lead
from citations.claims import Unit, UnitKind, citations, marker, split_units, without_citations
from citations.feedback import complaints
from citations.links import Allowed, keep_links, plain_line
from citations.sources import collect_allowed, references_of
from envelope.conversation import ClarificationReason
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.sources import ClaimCheck, SourceReference, SourceUsed, ValidationResult
from llm.answer_checks.leads import stands_in
from llm.errors import ModelError
from llm.offline.support import foreign_facts, support
from llm.port import Model
from llm.tasks.judge import TASK, Claim, ClaimVerdict, Inputs, Output

GROUNDED_WEIGHT, COMPLETE_WEIGHT, LANGUAGE_WEIGHT = 0.5, 0.35, 0.15
UNGROUNDED_MOST = 0.69
LEAST_SUPPORT = 0.3
"""Below this share of its words in the cited text, no verdict makes a claim supported."""
_SHOWN_FACTS = 4
_SURE_OF_LANGUAGE = 40
_FRAME_BLOCKS = 4
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})")

Decision = Literal["approve", "research", "regenerate"]
LanguageOf = Callable[[str], str | None]
"""Tells the language of a text, ISO 639-1, or None when it cannot."""


class Reads(BaseModel, frozen=True):
    """The answer, its sources, and the question."""

    response: str = ""
    search_context: str = ""
    canonical_question: str
    source_references: tuple[SourceReference, ...] = ()
    sources_used: tuple[SourceUsed, ...] = ()
    language: str = "en"
    attempt: int = 0
    assumption: str = ""


class Writes(BaseModel, frozen=True):
    """The score, what is to be done, and what was found about each claim."""

    quality_score: float = Field(ge=0, le=1)
    quality_decision: Decision
    quality_analysis: str
    validation_result: ValidationResult
    needs_clarification: bool = False
    clarification_reason: ClarificationReason | None = None
    clarification_message: str = ""


@dataclass(frozen=True, slots=True)
class _Checked:
    """A claim, what it cites, and what the checks without a model say of it."""

    text: str
    cites: tuple[int, ...]
    evidence: str
    foreign: bool
    known: bool
    fault: str


class QualityAgent(Agent[Reads, Writes]):
    """Approve only what is shown to stand in its sources.

    Links, citations, numbers, identifiers and words are checked without a model, then the model
    judges on top. A judge that fails, or whose verdicts do not fit the claims, approves nothing.
    """

    role = Role.QUALITY
    reads = Reads
    writes = Writes

    def __init__(self, *, model: Model, language_of: LanguageOf | None = None) -> None:
        self._model = model
        self._language_of = language_of

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        # Beside the event loop: a very long answer must not keep the others waiting.
        claims = await asyncio.to_thread(_claims, reads)
        if not claims:
            return Wrote(_nothing_claimed())
        try:
            given = await self._model.ask(TASK, _inputs(reads, claims), skip=0)
        except ModelError as error:
            return Wrote(
                self._report_missing_verdict(reads, claims, f"{type(error).__name__}: {error}")
            )
        verdicts = {verdict.number: verdict for verdict in given.output.verdicts}
        if set(verdicts) != set(range(1, len(claims) + 1)):
            told = f"{given.model}: expected {len(claims)} verdicts, found {sorted(verdicts)}"
            return Wrote(self._report_missing_verdict(reads, claims, told))
        return Wrote(self._combine_verdicts(reads, claims, given.output, given.model))

    def _combine_verdicts(
        self, reads: Reads, claims: Sequence[_Checked], output: Output, judge: str
    ) -> Writes:
        verdicts = {verdict.number: verdict for verdict in output.verdicts}
        checks = tuple(_check(claim, verdicts[n]) for n, claim in enumerate(claims, start=1))
        in_language = output.language_matches and self._in_language(reads, claims)
        result = _result(claims, checks, output.completeness, judge, in_language=in_language)
        writes = Writes(
            quality_score=score(result),
            quality_decision=_decision(result, output),
            quality_analysis=_analysis(result, output, reads.language),
            validation_result=result,
        )
        return _asking(writes, output)

    def _report_missing_verdict(self, reads: Reads, claims: Sequence[_Checked], why: str) -> Writes:
        checks = tuple(_check(claim, None) for claim in claims)
        in_language = self._in_language(reads, claims)
        result = _result(claims, checks, 0.0, f"none: {why}", in_language=in_language)
        failed = [claim.text for claim in claims if claim.fault]
        return Writes(
            quality_score=score(result),
            quality_decision="regenerate",
            quality_analysis=complaints(f"The answer could not be judged ({why}).", failed, ()),
            validation_result=result,
        )

    def _in_language(self, reads: Reads, claims: Sequence[_Checked]) -> bool:
        """Tell whether the answer is in the user's language; quotations in another may stand."""
        if self._language_of is None:
            return True
        own = " ".join(without_citations(c.text) for c in claims if not _is_quoted(c))
        if len(own) < _SURE_OF_LANGUAGE:
            return True
        return self._language_of(own) in (None, reads.language)


def score(result: ValidationResult) -> float:
    """Return the score of a validated answer; the formula stands at the top of this file."""
    share = sum(check.supported for check in result.claims) / max(1, len(result.claims))
    full = (
        GROUNDED_WEIGHT * share
        + COMPLETE_WEIGHT * result.completeness
        + LANGUAGE_WEIGHT * result.language_matches
    )
    return full if result.grounded else min(full, UNGROUNDED_MOST * share)


def _claims(reads: Reads) -> tuple[_Checked, ...]:
    """Return what is to be judged: every claim, and what else may not leave."""
    units = list(split_units(reads.response))
    used = references_of(reads.sources_used, reads.source_references)
    allowed = collect_allowed(used, reads.search_context)
    said = "\n".join((reads.canonical_question, *(_evidence(one, reads) for one in used)))
    found = (
        _check_stated_unit(units, place, reads, allowed, said)
        for place, unit in enumerate(units)
        if not _is_frame(unit, units, reads) or _leads_elsewhere(unit, allowed)
    )
    return tuple(claim for claim in found if claim is not None)


def _check_stated_unit(
    units: list[Unit], place: int, reads: Reads, allowed: Allowed, said: str
) -> _Checked | None:
    """Return a claim as it is checked; None for what claims nothing and does no harm."""
    unit = units[place]
    if _leads_elsewhere(unit, allowed):
        return _forbidden(unit, "a link or an address that no cited source has")
    if unit.kind is UnitKind.CITATION:
        return None
    if is_lead(unit):
        return None if stands_in(unit.text, said) else _forbidden(unit, "no source says this")
    return _check_unit(unit, evidence_of(units, place), reads)


def _leads_elsewhere(unit: Unit, allowed: Allowed) -> bool:
    return bool(keep_links(unit.text, allowed).removed)


def _forbidden(unit: Unit, fault: str) -> _Checked:
    return _Checked(unit.text, citations(unit.text), "", foreign=False, known=True, fault=fault)


def _is_frame(unit: Unit, units: Sequence[Unit], reads: Reads) -> bool:
    """Tell whether a unit is what the desk itself says above an answer.

    That is what it assumed, and that quotations stand in another language.
    """
    if unit.block > _FRAME_BLOCKS:
        return False
    said = " ".join(other.text for other in units if other.block == unit.block)
    if citations(said):
        return False
    assumed = plain_line(without_citations(reads.assumption))
    if assumed and assumed in said:
        return True
    languages = {source.language for source in reads.sources_used}
    plain = not any(sign.isdigit() for sign in said)
    return plain and bool(languages) and reads.language not in languages


def _check_unit(unit: Unit, cites: tuple[int, ...], reads: Reads) -> _Checked:
    cited = _references(cites, reads)
    evidence = "\n".join(_evidence(reference, reads) for reference in cited)
    languages = {reference.language for reference in cited} - {None}
    foreign = bool(languages) and reads.language not in languages
    known = bool(cites) and len(cited) == len(cites)
    fault = _fault(unit, evidence, foreign=foreign) if known else "it cites no source of the answer"
    return _Checked(unit.text, cites, evidence, foreign, known, fault)


def _references(cites: tuple[int, ...], reads: Reads) -> list[SourceReference]:
    used = {source.number: source.chunk_id for source in reads.sources_used}
    by_chunk = {reference.chunk_id: reference for reference in reads.source_references}
    found = (by_chunk.get(used.get(number, "")) for number in cites)
    return [reference for reference in found if reference is not None]


def _evidence(reference: SourceReference, reads: Reads) -> str:
    start, end = reference.span
    place = " > ".join((reference.title, *reference.crumbs, *reference.heading_path))
    return f"{place}\n{reads.search_context[start:end]}"


def _fault(unit: Unit, evidence: str, *, foreign: bool) -> str:
    """Return what a check without a model finds wrong with a claim; empty when it is nothing."""
    if unit.kind is UnitKind.CODE:
        absent = [line for line in _code_lines(unit.text) if not _stands_in(line, evidence)]
        return f"code that the source does not have: {absent[0]}" if absent else ""
    facts = foreign_facts(unit.text, evidence)
    if facts:
        return f"not in the source: {', '.join(facts[:_SHOWN_FACTS])}"
    if not foreign and support(unit.text, evidence) < LEAST_SUPPORT:
        return "hardly a word of it stands in the source"
    return ""


def _code_lines(fence: str) -> list[str]:
    return [line for line in fence.split("\n") if line.strip() and not _FENCE.match(line)]


def _stands_in(part: str, whole: str) -> bool:
    return "".join(part.split()) in "".join(whole.split())


def _is_quoted(claim: _Checked) -> bool:
    said = without_citations(claim.text)
    return _stands_in(said[len(marker(said)) :], claim.evidence)


def _inputs(reads: Reads, claims: Sequence[_Checked]) -> Inputs:
    return Inputs(
        question=reads.canonical_question,
        language=reads.language,
        answer=reads.response,
        claims=tuple(
            Claim(number=number, text=claim.text, evidence=claim.evidence)
            for number, claim in enumerate(claims, start=1)
        ),
        attempt=reads.attempt,
        foreign=all(claim.foreign for claim in claims),
    )


def _check(claim: _Checked, verdict: ClaimVerdict | None) -> ClaimCheck:
    """Return what is found of a claim: supported only when nothing speaks against it."""
    judged = verdict is not None and verdict.supported
    own = support(claim.text, claim.evidence)
    reason = claim.fault or (verdict.reason if verdict is not None else "not judged")
    return ClaimCheck(
        claim=claim.text,
        citations=claim.cites,
        supported=judged and not claim.fault,
        support=own if verdict is None else verdict.support,
        reason=reason,
    )


def _result(
    claims: Sequence[_Checked],
    checks: tuple[ClaimCheck, ...],
    completeness: float,
    judge: str,
    *,
    in_language: bool,
) -> ValidationResult:
    return ValidationResult(
        claims=checks,
        citations_valid=all(claim.known for claim in claims),
        language_matches=in_language,
        completeness=completeness,
        grounded=all(check.supported for check in checks),
        judge=judge,
    )


def _decision(result: ValidationResult, output: Output) -> Decision:
    if output.decision == "research":
        return "research"
    if output.decision == "approve" and result.grounded and result.language_matches:
        return "approve"
    return "regenerate"


def _analysis(result: ValidationResult, output: Output, language: str) -> str:
    faults = [check for check in result.claims if not check.supported]
    said = [output.analysis, *dict.fromkeys(check.reason for check in faults)]
    if not result.language_matches:
        said.append(f"the answer is not in the language {language!r}")
    told = "; ".join(part for part in said if part)
    return complaints(told, [check.claim for check in faults], output.missing)


def _asking(writes: Writes, output: Output) -> Writes:
    """Return `writes` with a question back, when the judge says that only the user can tell."""
    if output.decision != "clarify":
        return writes
    return writes.model_copy(
        update={
            "needs_clarification": True,
            "clarification_reason": ClarificationReason.QUALITY_INSUFFICIENT,
            "clarification_message": ", ".join(output.missing) or output.analysis,
        }
    )


def _nothing_claimed() -> Writes:
    return Writes(
        quality_score=0.0,
        quality_decision="regenerate",
        quality_analysis="The answer states nothing that could be checked.",
        validation_result=ValidationResult(
            claims=(),
            citations_valid=False,
            language_matches=False,
            completeness=0.0,
            grounded=False,
            judge="none: there is no claim",
        ),
    )
