"""Assesses the answer of a round on four criteria, and keeps the best answer so far."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import BaseModel, JsonValue

from agents.agent import Agent, AgentParts, MayAsk, ProgressStep
from citations.claims import without_citations
from envelope.conversation import ClarificationReason
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.sources import SourceReference, SourceUsed
from envelope.tool_loop import AnswerAssessment, KeptAnswer
from llm.errors import ModelError
from llm.port import Model, ModelAnswer
from llm.tasks.tool_loop import ASSESS, AssessedSource, AssessInputs, AssessOutput

FLOOR = 5.0
"""An answer whose completeness or accuracy is below it is not enough, whatever its mean."""
_MOST_MISSING = 5
_MISSING_CHARACTERS = 200


class Reads(BaseModel, frozen=True):
    """The answer of this round with its sources, and the best one of the rounds before."""

    canonical_question: str
    language: str = "en"
    response: str = ""
    generation_error: str = ""
    sources_used: tuple[SourceUsed, ...] = ()
    source_references: tuple[SourceReference, ...] = ()
    search_context: str = ""
    answer_model: str = ""
    missing: str = ""
    plan_messages: tuple[dict[str, JsonValue], ...] = ()
    kept_answer: KeptAnswer | None = None
    answered_by: Literal["", "model", "search"] = ""
    assessment: AnswerAssessment | None = None
    needs_clarification: bool = False
    clarification_reason: ClarificationReason | None = None
    clarification_message: str = ""


class Writes(MayAsk, frozen=True):
    """The assessment, if anybody assessed, and the better one of both answers, with its sources."""

    assessment: AnswerAssessment | None = None
    assessment_fallback: str = ""
    kept_answer: KeptAnswer | None = None
    response: str = ""
    sources_used: tuple[SourceUsed, ...] = ()
    source_references: tuple[SourceReference, ...] = ()
    search_context: str = ""
    answer_model: str = ""
    missing: str = ""
    answered_by: Literal["", "model", "search"] = ""


class AssessAgent(Agent[Reads, Writes]):
    """Writes the best assessed answer as the response, whichever round wrote it.

    The model is asked whether another round is worth it where the writer found no source for a part
    of the question. An answer that lacks nothing goes on to the judge, which reads the same text
    claim by claim and may send it back itself. A round without an answer gets the one that was
    kept. What the search found is not assessed, and where the model fails, the answer goes on
    without an assessment.
    """

    role = Role.ASSESS
    step = ProgressStep.CHECK
    model_task = ASSESS
    reads = Reads
    writes = Writes

    def __init__(self, *, model: Model, quality_threshold: float = 7.0) -> None:
        self._model = model
        self._threshold = quality_threshold

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        return cls(
            model=parts.model(ASSESS.name), quality_threshold=parts.settings.quality_threshold
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        if not reads.response or reads.generation_error:
            return Wrote(self._restore(reads))
        if reads.answered_by == "search":
            return Wrote(self._pass_on(reads))
        if not reads.missing:
            return Wrote(_write_back(_keep(reads, 0.0), None, ""))
        try:
            given = await self._assess(reads)
        except ModelError as error:
            best = reads.kept_answer or _keep(reads, 0.0)
            return Wrote(_write_back(best, None, f"{type(error).__name__}: {error}"))
        assessment = self._judge(given.output, given.model, reads)
        rank = _rank(assessment)
        kept = reads.kept_answer
        # Of two that are as good, the later one is written from more sources.
        if kept is None or rank >= kept.quality:
            kept = _keep(reads, rank)
        return Wrote(_write_back(kept, assessment, ""))

    async def _assess(self, reads: Reads) -> ModelAnswer[AssessOutput]:
        inputs = AssessInputs(
            question=reads.canonical_question,
            language=reads.language,
            answer=without_citations(reads.response),
            sources=tuple(
                AssessedSource(
                    number=reference.number,
                    text=f"{_name_place(reference)}\n{reads.search_context[slice(*reference.span)]}",
                )
                for reference in reads.source_references
            ),
            unanswered=reads.missing,
            searched=() if reads.assessment is None else reads.assessment.missing,
        )
        return await self._model.ask(ASSESS, inputs, self.run)

    def _judge(self, output: AssessOutput, model: str, reads: Reads) -> AnswerAssessment:
        parts = (output.completeness, output.accuracy, output.clarity, output.specificity)
        quality = round(sum(parts) / len(parts), 2)
        listed = (" ".join(one.split())[:_MISSING_CHARACTERS] for one in output.missing)
        missing = tuple(one for one in listed if one)[:_MOST_MISSING]
        is_sound = min(output.completeness, output.accuracy) >= FLOOR
        # What was searched for in vain is not looked for again, however little was found.
        is_exhausted = reads.assessment is not None and bool(reads.assessment.missing)
        return AnswerAssessment(
            completeness=output.completeness,
            accuracy=output.accuracy,
            clarity=output.clarity,
            specificity=output.specificity,
            quality=quality,
            is_enough=not missing and (is_exhausted or (quality >= self._threshold and is_sound)),
            missing=missing,
            round=max(1, len(reads.plan_messages)),
            assessed_by=model,
        )

    def _pass_on(self, reads: Reads) -> Writes:
        """Return the best answer of a model, else the passages that the search found."""
        if reads.kept_answer is not None:
            return _write_back(reads.kept_answer, None, "")
        return Writes(
            response=reads.response,
            sources_used=reads.sources_used,
            source_references=reads.source_references,
            search_context=reads.search_context,
            answered_by="search",
        )

    def _restore(self, reads: Reads) -> Writes:
        """Return the answer of an earlier round, or why the writer wrote none."""
        if reads.kept_answer is not None:
            return _write_back(reads.kept_answer, None, "")
        asked = reads.clarification_reason if reads.needs_clarification else None
        reason = asked or ClarificationReason.INSUFFICIENT_CONTEXT
        if reads.generation_error:
            reason = ClarificationReason.INTERNAL_FAULT
        return Writes(
            needs_clarification=True,
            clarification_reason=reason,
            clarification_message=(reads.clarification_message if asked else reads.missing)
            or "The passages that were found do not answer this.",
        )


def _rank(assessment: AnswerAssessment) -> float:
    """Return the sort key of an answer among those of several rounds; one below a floor is never
    better.
    """
    lowest = min(assessment.completeness, assessment.accuracy)
    return assessment.quality if lowest >= FLOOR else min(assessment.quality, lowest)


def _name_place(source: SourceReference) -> str:
    """Return crumbs, title, headings and version: a text alone may not say what it is about."""
    path = dict.fromkeys((*source.crumbs, source.title, *source.heading_path))
    return " > ".join(path) + (f" (version {source.version})" if source.version else "")


def _keep(reads: Reads, quality: float) -> KeptAnswer:
    return KeptAnswer(
        response=reads.response,
        sources_used=reads.sources_used,
        source_references=reads.source_references,
        search_context=reads.search_context,
        answer_model=reads.answer_model,
        missing=reads.missing,
        quality=quality,
    )


def _write_back(kept: KeptAnswer, assessment: AnswerAssessment | None, fallback: str) -> Writes:
    fields: Mapping[str, object] = {
        name: getattr(kept, name) for name in KeptAnswer.model_fields if name != "quality"
    }
    return Writes.model_validate(
        {
            "assessment": assessment,
            "assessment_fallback": fallback,
            "kept_answer": kept,
            "answered_by": "model",
            **fields,
        }
    )
