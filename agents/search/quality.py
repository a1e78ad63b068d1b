"""Checks an answer against its sources before it is sent.

Rules find possible faults and prove some of them; the judge, which is a model, decides about the
others. After the first attempt, an answer with faults is rewritten once. After that, each block
that a rule proves false or the judge rejects is omitted, and the answer states this. The score of
the answer that is sent is `0.5 * accuracy + 0.35 * completeness + 0.15 * language`.

Without verdicts from the judge, an answer has no score. It is sent if the rules do not prove a
fault, and states that it was not judged.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal, Self

from pydantic import Field, JsonValue

from agents.agent import Agent, AgentParts, MayAsk, ProgressStep, ReadsLanguage
from agents.search.judged_sources import select_sources
from citations.blocks import remove_cells
from citations.citing import (
    MovedMark,
    SourcedText,
    claims_something,
    find_marks_at,
    move_marks,
    without_blocks,
)
from citations.claims import Complaint, write_complaints
from citations.faults import (
    CheckedAnswer,
    Fault,
    find_faults,
    locate,
    mark_addresses,
    own_words,
    references_by_number,
    text_of,
)
from citations.links import keep_links
from citations.marking import map_marks
from citations.sources import cite_reference
from citations.wording import check_missing, list_notices
from envelope.conversation import ClarificationReason, Turn
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.sources import (
    ClaimCheck,
    SourceReference,
    SourceUsed,
    ValidationResult,
    WrittenAnswer,
)
from envelope.texts import Texts
from llm.errors import ModelError, NoModel
from llm.port import Model
from llm.tasks.search import JUDGE, JudgeInputs, JudgeOutput, PromptPassage

ACCURACY_WEIGHT, COMPLETE_WEIGHT, LANGUAGE_WEIGHT = 0.5, 0.35, 0.15
LEAST_ACCURACY, LEAST_COMPLETENESS = 0.6, 0.3
"""At the first attempt, an approval below one of these values is not accepted. An approval below
the second value is accepted if the writer stated what is missing.
"""
CONFIDENT = 0.5
"""If the writer's confidence is below this value, the answer is considered doubtful."""
_SURE_OF_LANGUAGE = 40
_MOST_PASSAGES = 24
"""Maximum number of faults that the judge must give a verdict on. It reads the whole answer."""

Decision = Literal["approve", "research", "regenerate"]
JudgeWhen = Literal["always", "doubt", "never"]
LanguageOf = Callable[[str], str | None]
"""Returns the language of a text (ISO 639-1), or None if it is uncertain."""


class Reads(ReadsLanguage, frozen=True):
    """The answer, its sources, and the question."""

    response: str = ""
    search_context: str = ""
    canonical_question: str
    text: str = ""
    source_references: tuple[SourceReference, ...] = ()
    sources_used: tuple[SourceUsed, ...] = ()
    history: tuple[Turn, ...] = ()
    attempt: int = 0
    assumption: str = ""
    missing: str = ""
    collected_info: dict[str, JsonValue] = Field(default_factory=dict)
    answered_by: Literal["", "model", "search"] = ""
    generation_confidence: float = 1.0


class Writes(MayAsk, frozen=True):
    """The score, the decision, the findings about each claim, and the part that can be sent."""

    response: str = ""
    sources_used: tuple[SourceUsed, ...] = ()
    quality_score: float | None = Field(ge=0, le=1)
    quality_decision: Decision
    quality_analysis: str
    validation_result: ValidationResult
    judged_answer: WrittenAnswer | None = None


@dataclass(frozen=True, slots=True)
class _Rejection:
    """A block, or one of its cells, that is not supported by any source; `block` is None if it
    cannot be located.
    """

    quote: str
    reason: str
    block: int | None
    cell: int | None = None
    is_proved: bool = False


@dataclass(frozen=True, slots=True)
class _Judgement:
    """The findings of the rules and the judge; `output` is None if the judge was not called."""

    rejected: tuple[_Rejection, ...]
    output: JudgeOutput | None
    judge: str
    language_matches: bool
    was_asked: bool = True
    problem: str = ""
    why: str = "unreadable"
    """Why a judge that was called gave no verdicts, as a slug; empty if there is no judge."""

    @property
    def is_silent(self) -> bool:
        """Whether the judge was called but gave no verdicts."""
        return self.output is None and self.was_asked


class QualityAgent(Agent[Reads, Writes]):
    """Sends the parts that are supported by sources, and reports what was left out.

    A judge that fails is replaced by the next model in its chain. If the search itself quotes
    passages, without a model, no judge is needed.
    """

    role = Role.QUALITY
    step = ProgressStep.CHECK
    model_task = JUDGE
    reads = Reads
    writes = Writes

    def __init__(
        self,
        *,
        model: Model,
        texts: Texts,
        language_of: LanguageOf | None = None,
        judge: JudgeWhen = "always",
    ) -> None:
        self._model = model
        self._texts = texts
        self._language_of = language_of
        self._when = judge

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        return cls(
            model=parts.model(JUDGE.name),
            texts=parts.texts,
            language_of=parts.language_of,
            judge=parts.settings.judge,
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        if reads.answered_by == "search":
            return Wrote(_leave_unjudged())
        # In a thread: a very long answer must not block the event loop.
        answer, faults = await asyncio.to_thread(_read, reads)
        if not any(map(claims_something, answer.blocks)) or not any(answer.covering):
            return Wrote(_nothing_claimed(answer))
        judgement = await self._judge(reads, answer, faults)
        return Wrote(await asyncio.to_thread(self._make_writes, reads, answer, judgement))

    async def _judge(
        self, reads: Reads, answer: CheckedAnswer, faults: Sequence[Fault]
    ) -> _Judgement:
        proved = tuple(_reject(fault) for fault in faults if fault.is_proved)
        # The judge decides about adapted code; without a judge, code with foreign words is not
        # shown.
        withheld = tuple(_reject(fault) for fault in faults if fault.is_proved or fault.is_foreign)
        matches = await asyncio.to_thread(self._is_in_language, answer)
        if not self._has_doubt(reads, faults):
            return _Judgement(proved, None, "none: not asked", matches, was_asked=False)
        faults = faults[:_MOST_PASSAGES]
        try:
            inputs = await asyncio.to_thread(self._make_inputs, reads, answer, faults)
            given = await self._model.ask(JUDGE, inputs, self.run)
        except ModelError as error:
            problem = f"the judge failed: {type(error).__name__}: {error}"
            why = "" if isinstance(error, NoModel) else error.reason
            return _Judgement(
                withheld, None, "none: the judge failed", matches, problem=problem, why=why
            )
        if silence := _find_silence(given.output, answer, faults):
            return _Judgement(withheld, None, f"none: {silence}", matches, problem=silence)
        rejected = _collect_rejected(given.output, answer, faults, proved)
        matches = matches and given.output.language_matches
        return _Judgement(rejected, given.output, given.model, matches)

    def _has_doubt(self, reads: Reads, faults: Sequence[Fault]) -> bool:
        """Return whether the judge is called, according to the setting."""
        is_doubtful = bool(faults or reads.missing) or reads.generation_confidence < CONFIDENT
        return self._when == "always" or (self._when == "doubt" and is_doubtful)

    def _make_inputs(
        self, reads: Reads, answer: CheckedAnswer, faults: Sequence[Fault]
    ) -> JudgeInputs:
        return JudgeInputs(
            question=reads.canonical_question,
            language=reads.language,
            language_name=self._name_language(reads.reply_language),
            answer=_number_as_written(answer),
            passages=tuple(
                PromptPassage(number=number, text=fault.quote, note=fault.reason)
                for number, fault in enumerate(faults, start=1)
            ),
            sources=select_sources(answer),
            facts=tuple(
                f"{name}: {value}"
                for name, value in reads.collected_info.items()
                if value is not None
            ),
            missing=reads.missing,
            assumption=reads.assumption,
            attempt=reads.attempt,
        )

    def _make_writes(self, reads: Reads, answer: CheckedAnswer, judgement: _Judgement) -> Writes:
        answer = _move_marks(answer, judgement.output)
        kept, share = _without_rejected(answer, judgement.rejected)
        analysis = _describe(judgement, reads)
        result = _make_result(judgement, answer, reads, share)
        if not share:
            return Writes(
                quality_score=0.0,
                quality_decision="regenerate",
                quality_analysis=analysis,
                validation_result=result,
                judged_answer=_keep_written(answer),
            )
        writes = Writes(
            response=self._add_notices(kept.text, reads, judgement),
            sources_used=kept.used,
            quality_score=_score(judgement, share),
            quality_decision=_decide(judgement, reads),
            quality_analysis=analysis,
            validation_result=result,
            judged_answer=_keep_written(answer),
        )
        return _ask_user(writes, judgement.output)

    def _add_notices(self, text: str, reads: Reads, judgement: _Judgement) -> str:
        """Return the answer followed by notices about parts that were omitted, not found, or not
        judged.
        """
        notices = list_notices(
            text,
            self._texts,
            reads.reply_language,
            is_cut=any(rejection.block is not None for rejection in judgement.rejected),
            lacks=_find_lacks(reads),
            unjudged=judgement.why if judgement.is_silent else None,
        )
        return "\n\n".join((text, *notices))

    def _name_language(self, code: str) -> str:
        is_named = code in self._texts.languages
        return self._texts.text(f"language_{code}", "en") if is_named else code

    def _is_in_language(self, answer: CheckedAnswer) -> bool:
        """Return whether the answer is in the user's language, ignoring quotations."""
        if self._language_of is None:
            return True
        own = own_words(answer, range(len(answer.blocks)))
        if len(own) < _SURE_OF_LANGUAGE:
            return True
        return self._language_of(own) in (None, answer.language)


def _find_lacks(reads: Reads) -> str | None:
    """Return what the writer did not find, an empty string if a user must not see it, or None if
    nothing is missing.
    """
    if not reads.missing:
        return None
    references, context = reads.source_references, reads.search_context
    known = "\n".join(text_of(reference, context) for reference in references)
    return check_missing(reads.missing, (known, reads.canonical_question))


def _reject(fault: Fault) -> _Rejection:
    return _Rejection(fault.quote, fault.reason, fault.block, is_proved=True)


def _read(reads: Reads) -> tuple[CheckedAnswer, tuple[Fault, ...]]:
    answer = CheckedAnswer(
        text=reads.response,
        context=reads.search_context,
        references=reads.source_references,
        used=reads.sources_used,
        language=reads.language,
        said=(
            reads.canonical_question,
            reads.assumption,
            *(str(value) for value in reads.collected_info.values()),
            *(turn.text for turn in reads.history),
        ),
        typed=(reads.text, *(turn.text for turn in reads.history if turn.speaker == "user")),
        assumption=reads.assumption,
    )
    safe = keep_links(answer.text, answer.allowed).text
    answer = mark_addresses(replace(answer, text=safe))
    return answer, find_faults(answer)


def _number_as_written(answer: CheckedAnswer) -> str:
    """Return the answer with the source numbers that its writer used, so that "source 3" in the
    judge's text means the same source to both.
    """
    cited = references_by_number(answer.used, answer.references)
    numbers = {number: reference.number for number, reference in cited.items()}
    return map_marks(answer.text, numbers.get)


def _move_marks(answer: CheckedAnswer, output: JudgeOutput | None) -> CheckedAnswer:
    """Return the answer in which the sources named by the judge replace wrong ones."""
    by_number = {reference.number: reference for reference in answer.references}
    cited = references_by_number(answer.used, answer.references)
    shown = {reference.number: number for number, reference in cited.items()}
    free = count(1 + max((source.number for source in answer.used), default=0))
    added: list[SourceUsed] = []
    moves: list[MovedMark] = []
    for verdict in () if output is None else output.verdicts:
        place = locate(answer.blocks, verdict.quote)
        if not verdict.supported or verdict.source not in by_number or place is None:
            continue
        if verdict.source not in shown:
            shown[verdict.source] = next(free)
            added.append(cite_reference(by_number[verdict.source], shown[verdict.source]))
        block = answer.blocks[place[0]]
        cited_there = find_marks_at(block, verdict.quote) or answer.covering[place[0]]
        if shown[verdict.source] not in cited_there:
            moves.append(MovedMark(place[0], verdict.quote, shown[verdict.source]))
    if not moves:
        return answer
    text = move_marks(answer.text, moves)
    return replace(answer, text=text, used=(*answer.used, *added))


def _find_silence(output: JudgeOutput, answer: CheckedAnswer, faults: Sequence[Fault]) -> str:
    """Return why an output is not a usable judgement, or an empty string."""
    if not output.claims_read:
        return "the judge compared no claim"
    heard = {verdict.passage for verdict in output.verdicts}
    places = {locate(answer.blocks, verdict.quote) for verdict in output.verdicts}
    blocks = {place[0] for place in places if place is not None}
    missed = [
        number
        for number, fault in enumerate(faults, start=1)
        if number not in heard and fault.block not in blocks and not fault.is_proved
    ]
    return f"the judge returned no verdict on passage {missed[0]}" if missed else ""


def _collect_rejected(
    output: JudgeOutput,
    answer: CheckedAnswer,
    faults: Sequence[Fault],
    proved: Sequence[_Rejection],
) -> tuple[_Rejection, ...]:
    rejections = list(proved)
    known = {rejection.block: rejection for rejection in proved}
    for verdict in output.verdicts:
        if verdict.supported:
            continue
        is_named = 0 < verdict.passage <= len(faults)
        fault = faults[verdict.passage - 1] if is_named else None
        place = quoted = locate(answer.blocks, verdict.quote)
        if fault is not None and (place is None or place[0] != fault.block):
            place, quoted = (fault.block, fault.cell), None
        block, cell = place if place is not None else (None, None)
        if block not in known:
            rejections.append(_Rejection(verdict.quote, verdict.reason, block, cell))
        elif quoted is not None:
            # The judge quotes the sentence and states the fault; a rule rejects its whole block.
            rejected = known.pop(block)
            reason = "; ".join(filter(None, (verdict.reason, rejected.reason)))
            rejections[rejections.index(rejected)] = replace(
                rejected, quote=verdict.quote, reason=reason
            )
    return tuple(dict.fromkeys(rejections))


def _without_rejected(
    answer: CheckedAnswer, rejected: Sequence[_Rejection]
) -> tuple[SourcedText, float]:
    """Return the answer without rejected blocks, and the share of blocks that remain."""
    whole = {
        rejection.block
        for rejection in rejected
        if rejection.block is not None and rejection.cell is None
    }
    cells = [
        (answer.blocks[rejection.block], rejection.cell)
        for rejection in rejected
        if rejection.block is not None
        and rejection.cell is not None
        and rejection.block not in whole
    ]
    cited = SourcedText(remove_cells(answer.text, cells), answer.used)
    kept = without_blocks(cited, whole, answer.references, answer.context, answer.typed)
    claims = [index for index, block in enumerate(answer.blocks) if claims_something(block)]
    left = sum(index not in whole for index in claims)
    return kept, left / len(claims) if kept.used else 0.0


def _score(judgement: _Judgement, share: float) -> float | None:
    """Return the score of the remaining answer, or None if it was not judged."""
    output = judgement.output
    if output is None:
        return None
    accuracy = 1.0 if judgement.rejected else output.accuracy
    return (
        ACCURACY_WEIGHT * accuracy
        + COMPLETE_WEIGHT * output.completeness * share
        + LANGUAGE_WEIGHT * judgement.language_matches
    )


def _decide(judgement: _Judgement, reads: Reads) -> Decision:
    """Return the decision about an answer of which a part remains."""
    output = judgement.output
    if output is None:
        return "approve"
    if output.decision == "research":
        return "research"
    if reads.attempt:
        return "approve" if judgement.language_matches else "regenerate"
    if judgement.rejected or not judgement.language_matches or output.decision == "regenerate":
        return "regenerate"
    if output.accuracy < LEAST_ACCURACY:
        return "regenerate"
    return "approve" if _is_complete(output, reads) else "research"


def _is_complete(output: JudgeOutput, reads: Reads) -> bool:
    """Return whether an approved answer counts as complete.

    Parts that the writer did not find are stated in the answer, so the judge knew about them when
    it approved.
    """
    return output.completeness >= LEAST_COMPLETENESS or bool(reads.missing)


def _make_result(
    judgement: _Judgement, answer: CheckedAnswer, reads: Reads, share: float
) -> ValidationResult:
    output = judgement.output
    rejected = [
        ClaimCheck(
            claim=rejection.quote,
            citations=answer.covering[rejection.block] if rejection.block is not None else (),
            supported=False,
            support=0.0,
            reason=rejection.reason,
        )
        for rejection in judgement.rejected
    ]
    supported = [
        ClaimCheck(
            claim=verdict.quote, citations=(), supported=True, support=1.0, reason=verdict.reason
        )
        for verdict in (() if output is None else output.verdicts)
        if verdict.supported
    ]
    return ValidationResult(
        claims=(*rejected, *supported),
        citations_valid=True,
        language_matches=judgement.language_matches,
        completeness=None if output is None else output.completeness * share,
        grounded=share > 0,
        judge=judgement.judge,
        approved=_is_approved(judgement, reads),
    )


def _is_approved(judgement: _Judgement, reads: Reads) -> bool:
    output = judgement.output
    if output is None or output.decision != "approve" or judgement.rejected:
        return False
    is_enough = output.accuracy >= LEAST_ACCURACY and _is_complete(output, reads)
    return is_enough and judgement.language_matches


def _describe(judgement: _Judgement, reads: Reads) -> str:
    """Return the findings, for the next search and the next writer."""
    output = judgement.output
    parts = ["" if output is None else output.analysis]
    if not judgement.language_matches:
        parts.append(f"the answer is not in the language {reads.language!r}")
    if output is None:
        parts.append(judgement.problem)
    missing: Iterable[str] = () if output is None else output.missing
    if reads.missing and not reads.attempt and not missing:
        missing = (reads.missing,)
    complaints = [Complaint(rejection.quote, rejection.reason) for rejection in judgement.rejected]
    return write_complaints("; ".join(filter(None, parts)), complaints, tuple(missing))


def _ask_user(writes: Writes, output: JudgeOutput | None) -> Writes:
    """Return `writes` with a clarification if the judge requires information from the user."""
    if output is None or output.decision != "clarify":
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
    """Approve passages from the documents, which do not need to be judged."""
    return Writes(
        quality_score=None,
        quality_decision="approve",
        quality_analysis="These are passages of the documents; no model wrote an answer.",
        validation_result=_make_unjudged("none: passages of the search", grounded=True),
    )


def _keep_written(answer: CheckedAnswer) -> WrittenAnswer:
    return WrittenAnswer(text=answer.text, sources_used=answer.used)


def _nothing_claimed(answer: CheckedAnswer) -> Writes:
    return Writes(
        quality_score=0.0,
        quality_decision="regenerate",
        quality_analysis="The answer contains no statement with a citation.",
        validation_result=_make_unjudged("none: there is no claim", grounded=False),
        judged_answer=_keep_written(answer),
    )


def _make_unjudged(judge: str, *, grounded: bool) -> ValidationResult:
    return ValidationResult(
        claims=(),
        citations_valid=grounded,
        language_matches=grounded,
        completeness=None,
        grounded=grounded,
        judge=judge,
    )
