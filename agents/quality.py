"""Checks every claim of an answer against its sources before the answer is sent.

An unsupported claim is removed, and the rest of the answer is sent. The score of the rest is
`0.5 * grounded + 0.35 * completeness + 0.15 * language`: the share of supported claims, the share
of the question that is answered, and 1 if the answer is in the user's language, else 0. An answer
without a supported claim scores at most 0.69 times its grounded share and is never approved.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import BaseModel, Field

from agents.agent import Agent, AgentParts, AgentTexts
from citations.claims import without_citations
from citations.feedback import complaints
from citations.removal import SourcedText, remove_cited_units
from envelope.conversation import ClarificationReason
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.sources import ClaimCheck, SourceReference, SourceUsed, ValidationResult
from llm.answer_checks.claims import (
    CheckedAnswer,
    CheckedClaim,
    collect_claims,
    references_by_number,
    text_of,
)
from llm.answer_checks.missing import check_missing
from llm.errors import ModelError
from llm.offline.model import OfflineModel
from llm.offline.support import support
from llm.port import Model
from llm.tasks.judge import TASK, Claim, ClaimVerdict, Inputs, JudgedSource, Output

LANGUAGE_CODES = frozenset("ar cs de en es fr hi it ja pt ru uk zh".split())  # noqa: SIM905
GROUNDED_WEIGHT, COMPLETE_WEIGHT, LANGUAGE_WEIGHT = 0.5, 0.35, 0.15
UNGROUNDED_MOST = 0.69
ENOUGH_CLAIMS = 0.5
"""The least share of supported claims; below it the answer is written once more."""
ENOUGH_COMPLETENESS = 0.5
_SURE_OF_LANGUAGE = 40

Decision = Literal["approve", "research", "regenerate"]
LanguageOf = Callable[[str], str | None]
"""Returns the language of a text, ISO 639-1, or None if it is uncertain."""


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
    missing: str = ""
    answered_by: Literal["", "model", "search"] = ""


class Writes(BaseModel, frozen=True):
    """The score, the decision, the findings about each claim, and the part that may be sent."""

    response: str = ""
    sources_used: tuple[SourceUsed, ...] = ()
    quality_score: float | None = Field(ge=0, le=1)
    quality_decision: Decision
    quality_analysis: str
    validation_result: ValidationResult | None
    needs_clarification: bool = False
    clarification_reason: ClarificationReason | None = None
    clarification_message: str = ""


@dataclass(frozen=True, slots=True)
class _Judgement:
    """The output of a judge, the claims that it judged, and its name."""

    claims: Sequence[CheckedClaim]
    checks: tuple[ClaimCheck, ...]
    output: Output
    judge: str
    language_matches: bool

    @property
    def failed(self) -> list[CheckedClaim]:
        pairs = zip(self.claims, self.checks, strict=True)
        return [claim for claim, check in pairs if not check.supported]

    @property
    def share_left(self) -> float:
        """The share of supported claims among those that cite a source or state a hard fact."""
        pairs = list(zip(self.claims, self.checks, strict=True))
        citing = [check.supported for claim, check in pairs if claim.cites or claim.is_hard]
        return sum(citing) / len(citing) if citing else 0.0


class QualityAgent(Agent[Reads, Writes]):
    """Sends only claims that their sources support.

    Links, citations, numbers, identifiers and words are checked without a model; the findings of
    these checks are evidence for the judge. When the judge fails, or gives no verdict on a claim,
    the offline judge decides.
    """

    role = Role.QUALITY
    reads = Reads
    writes = Writes

    def __init__(
        self, *, model: Model, texts: AgentTexts, language_of: LanguageOf | None = None
    ) -> None:
        self._model = model
        self._offline = OfflineModel()
        self._texts = texts
        self._language_of = language_of

    @classmethod
    def make(cls, parts: AgentParts[object]) -> Self:
        return cls(model=parts.model(TASK.name), texts=parts.texts, language_of=parts.language_of)

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        if reads.answered_by == "search":
            return Wrote(_leave_unjudged())
        answer = _answer(reads)
        # In a thread: a very long answer must not block the event loop.
        claims = await asyncio.to_thread(collect_claims, answer)
        if not claims:
            return Wrote(_nothing_claimed())
        judgement = await self._judge(reads, claims)
        return Wrote(await asyncio.to_thread(self._make_writes, reads, judgement))

    async def _judge(self, reads: Reads, claims: Sequence[CheckedClaim]) -> _Judgement:
        inputs = _inputs(reads, claims, self._name_language(reads.language))
        try:
            given = await self._model.ask(TASK, inputs, skip=0)
            output, judge = given.output, given.model
        except ModelError as error:
            output = (await self._offline.ask(TASK, inputs)).output
            judge = f"{self._offline.name}, because: {type(error).__name__}: {error}"
        verdicts = _collect_verdicts(output)
        if not set(range(1, len(claims) + 1)) <= set(verdicts):
            offline = _collect_verdicts((await self._offline.ask(TASK, inputs)).output)
            verdicts = {**offline, **verdicts}
        checks = tuple(_check(claim, verdicts[n]) for n, claim in enumerate(claims, start=1))
        matches = output.language_matches and self._is_in_language(reads, claims)
        return _Judgement(claims, checks, output, judge, matches)

    def _make_writes(self, reads: Reads, judgement: _Judgement) -> Writes:
        result = _result(judgement)
        analysis = _analysis(judgement, reads.language)
        left = judgement.share_left
        if left == 0.0:
            unfounded = result.model_copy(update={"grounded": False})
            return Writes(
                quality_score=score(unfounded, grounded_share=0.0),
                quality_decision="regenerate",
                quality_analysis=analysis,
                validation_result=unfounded,
            )
        kept = _without_failed(reads, judgement)
        salvaged = result.model_copy(
            update={
                "grounded": True,
                "citations_valid": True,
                "completeness": result.completeness * left,
            }
        )
        writes = Writes(
            response=self._add_missing(kept.text, reads, judgement),
            sources_used=kept.used,
            quality_score=score(salvaged, grounded_share=1.0),
            quality_decision=_decide(judgement, reads.attempt),
            quality_analysis=analysis,
            validation_result=salvaged,
        )
        return _ask_user(writes, judgement.output)

    def _add_missing(self, text: str, reads: Reads, judgement: _Judgement) -> str:
        """Return the answer, followed by the parts of the question that the documents lack."""
        missing_parts = [reads.missing] if reads.missing else _missing_of(judgement)
        if not missing_parts:
            return text
        context = "\n".join(text_of(one, reads.search_context) for one in reads.source_references)
        known_text = f"{reads.canonical_question}\n{context}"
        checked = (check_missing(part, known_text) for part in missing_parts)
        shown = [line for line in checked if line]
        if not shown:
            return f"{text}\n\n{self._look_up_text('missing_something', reads.language)}"
        missing = "; ".join(shown).rstrip(".")
        return f"{text}\n\n{self._look_up_text('missing_part', reads.language, missing=missing)}"

    def _name_language(self, code: str) -> str:
        return self._texts.text(f"language_{code}", "en") if code in LANGUAGE_CODES else code

    def _look_up_text(self, key: str, language: str, **values: str) -> str:
        """Return a fixed text on one line: it cannot open a list or a fence."""
        return " ".join(self._texts.text(key, language, **values).split())

    def _is_in_language(self, reads: Reads, claims: Sequence[CheckedClaim]) -> bool:
        """Return whether the answer is in the user's language; quotations do not count."""
        if self._language_of is None:
            return True
        own = " ".join(without_citations(c.text) for c in claims if not c.is_quoted)
        if len(own) < _SURE_OF_LANGUAGE:
            return True
        return self._language_of(own) in (None, reads.language)


def score(result: ValidationResult, *, grounded_share: float | None = None) -> float:
    """Return the score of a validated answer by the formula in the docstring of this module."""
    share = grounded_share
    if share is None:
        share = sum(check.supported for check in result.claims) / max(1, len(result.claims))
    full = (
        GROUNDED_WEIGHT * share
        + COMPLETE_WEIGHT * result.completeness
        + LANGUAGE_WEIGHT * result.language_matches
    )
    return full if result.grounded else min(full, UNGROUNDED_MOST * share)


def _answer(reads: Reads) -> CheckedAnswer:
    return CheckedAnswer(
        text=reads.response,
        question=reads.canonical_question,
        context=reads.search_context,
        references=reads.source_references,
        used=reads.sources_used,
        language=reads.language,
        assumption=reads.assumption,
    )


def _inputs(reads: Reads, claims: Sequence[CheckedClaim], language_name: str) -> Inputs:
    return Inputs(
        question=reads.canonical_question,
        language=reads.language,
        language_name=language_name,
        answer=reads.response,
        claims=tuple(
            Claim(
                number=number,
                text=claim.text,
                cites=claim.cites,
                evidence=claim.evidence,
                note=claim.fault,
            )
            for number, claim in enumerate(claims, start=1)
        ),
        sources=_collect_sources(reads),
        attempt=reads.attempt,
        foreign=all(claim.foreign for claim in claims),
    )


def _collect_sources(reads: Reads) -> tuple[JudgedSource, ...]:
    """Return the sources of the prompt, first those that the answer cites."""
    numbered = references_by_number(reads.sources_used, reads.source_references)
    cited = {reference.chunk_id for reference in numbered.values()}
    others = [one for one in reads.source_references if one.chunk_id not in cited]
    numbered |= dict(enumerate(others, start=max(numbered, default=0) + 1))
    return tuple(
        JudgedSource(number=number, place=place, text=text)
        for number, reference in sorted(numbered.items())
        for place, _, text in [text_of(reference, reads.search_context).partition("\n")]
    )


def _collect_verdicts(output: Output) -> dict[int, ClaimVerdict]:
    """Return the verdicts by the number of the claim; of several, a negative one counts."""
    found: dict[int, ClaimVerdict] = {}
    for verdict in output.verdicts:
        if verdict.number not in found or not verdict.supported:
            found[verdict.number] = verdict
    return found


def _check(claim: CheckedClaim, verdict: ClaimVerdict) -> ClaimCheck:
    """Return the check of a claim; a fault of a hard fact overrides the verdict."""
    is_ruled_out = claim.is_hard and bool(claim.fault)
    supported = verdict.supported and not is_ruled_out
    noted = claim.fault if not supported else ""
    return ClaimCheck(
        claim=claim.text,
        citations=claim.cites,
        supported=supported,
        support=min(verdict.support, support(claim.text, claim.evidence))
        if is_ruled_out
        else verdict.support,
        reason="; ".join(dict.fromkeys(filter(None, (noted, verdict.reason)))),
    )


def _result(judgement: _Judgement) -> ValidationResult:
    return ValidationResult(
        claims=judgement.checks,
        citations_valid=all(claim.known for claim in judgement.claims),
        language_matches=judgement.language_matches,
        completeness=judgement.output.completeness,
        grounded=all(check.supported for check in judgement.checks),
        judge=judgement.judge,
    )


def _without_failed(reads: Reads, judgement: _Judgement) -> SourcedText:
    """Return the answer without the failed claims, with its sources renumbered."""
    failed = {place for claim in judgement.failed for place in claim.places}
    whole = SourcedText(reads.response, reads.sources_used)
    return remove_cited_units(whole, failed, reads.source_references, reads.search_context)


def _decide(judgement: _Judgement, attempt: int) -> Decision:
    """Return the decision about an answer with at least one supported claim."""
    output, is_first = judgement.output, attempt == 0
    if output.decision == "research":
        return "research"
    if not judgement.language_matches:
        return "regenerate"
    if judgement.share_left < ENOUGH_CLAIMS and is_first:
        return "regenerate"
    wants_another = output.decision == "regenerate" and not judgement.failed
    if wants_another and output.completeness < ENOUGH_COMPLETENESS and is_first:
        return "regenerate"
    return "approve"


def _missing_of(judgement: _Judgement) -> Iterable[str]:
    """Return the parts that a model misses in an incomplete answer; rules cannot decide it."""
    is_far = judgement.output.completeness < ENOUGH_COMPLETENESS
    by_rules = judgement.judge.startswith(OfflineModel.name)
    return judgement.output.missing if is_far and not by_rules else ()


def _analysis(judgement: _Judgement, language: str) -> str:
    faults = [check for check in judgement.checks if not check.supported]
    parts = [judgement.output.analysis, *dict.fromkeys(check.reason for check in faults)]
    if not judgement.language_matches:
        parts.append(f"the answer is not in the language {language!r}")
    if judgement.judge.startswith(f"{OfflineModel.name}, "):
        parts.append(f"judged by {judgement.judge}")
    summary = "; ".join(part for part in parts if part)
    return complaints(summary, [check.claim for check in faults], judgement.output.missing)


def _ask_user(writes: Writes, output: Output) -> Writes:
    """Return `writes` with a clarification, if the judge needs information from the user."""
    if output.decision != "clarify":
        return writes
    return writes.model_copy(
        update={
            "quality_decision": "regenerate",
            "needs_clarification": True,
            "clarification_reason": ClarificationReason.QUALITY_INSUFFICIENT,
            "clarification_message": ", ".join(output.missing) or output.analysis,
        }
    )


def _leave_unjudged() -> Writes:
    """Let passages of the documents through: nobody wrote them for this question."""
    return Writes(
        quality_score=None,
        quality_decision="approve",
        quality_analysis="These are passages of the documents; no model wrote an answer.",
        validation_result=None,
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
