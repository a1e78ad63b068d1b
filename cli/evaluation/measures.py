"""Measures one answer: statements, sentences, citations, pages, and the outcome of the question.

The rules for whether an answer counts as useful are described in docs/evaluation.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from broker.values import Fields
from citations.statements import Statement, says
from cli.evaluation.desk_run import AskedCase
from cli.evaluation.golden import Expectation, GoldenCase
from cli.evaluation.judging import (
    ClaimOpinion,
    JudgedAnswer,
    JudgedClaim,
    JudgedQuestion,
    judge_answer,
)
from cli.evaluation.sentences import CoveredSentence, split_covered
from envelope.json_values import read_objects
from envelope.texts import primary_of
from knowledge.checks import is_page
from llm.port import Model, ModelCall, record_calls

ENDED: dict[str, Expectation] = {
    "answered": "answer",
    "refused": "refuse",
    "clarification": "clarify",
}
_JUDGED_WORDS = 4
"""Minimum number of words of a statement about which a judge is asked."""
USEFUL = "useful"


@dataclass(frozen=True, slots=True)
class SentenceMeasure:
    """A sentence, its citations, and whether a judge considers it supported by them.

    `supported` is None without a judge, or without a verdict.
    """

    text: str
    cites: tuple[int, ...]
    supported: bool | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class AnswerMeasure:
    """The measures of one answer; a share is None if there was nothing to measure.

    `verdict` is one of the verdicts in docs/evaluation.md, and `useful` for an answer without
    errors.
    """

    asked: AskedCase
    ended: str
    reason: str
    verdict: str
    missing: tuple[str, ...]
    forbidden: tuple[str, ...]
    sentences: tuple[SentenceMeasure, ...]
    completeness: float | None
    page: float | None
    judge_calls: tuple[ModelCall, ...] = ()

    @property
    def useful(self) -> bool:
        """Whether the answer has no errors."""
        return self.verdict == USEFUL

    @property
    def cited(self) -> float | None:
        """The share of the sentences that cite a source of the answer."""
        return _share([bool(sentence.cites) for sentence in self.sentences])

    @property
    def support(self) -> float | None:
        """The share of the judged sentences that their sources support, according to the judge."""
        supported = [
            sentence.supported for sentence in self.sentences if sentence.supported is not None
        ]
        return _share(supported)

    @property
    def rank(self) -> tuple[bool, float]:
        """The sort key of answers, with the worst first."""
        shares = [self.completeness, self.page, self.cited, self.support]
        known = [share for share in shares if share is not None]
        ended = self.ended == self.asked.case.expect and not self.forbidden
        return self.useful, sum(known) / len(known) if ended and known else 0.0


async def measure_answer(asked: AskedCase, judge: Model | None = None) -> AnswerMeasure:
    """Return the measures of one answer.

    `judge` is used for every sentence, and to determine whether an answer makes a statement in
    other words.
    """
    case, reply = asked.case, asked.reply
    text = str(reply.get("text") or "")
    ended = ENDED.get(str(reply.get("outcome")), "fail")
    is_written = ended == "answer" and reply.get("answered_by") != "search"
    # Passages are the documents' own words, so none of their claims can be unsupported.
    covered = split_covered(text, str(reply.get("language"))) if is_written else ()
    sentences = tuple(_measure_sentence(asked, sentence) for sentence in covered)
    with record_calls() as calls:
        if judge is not None and covered:
            judged = await judge_answer(judge, _question(asked, text, _claims(asked, covered)))
            sentences = tuple(map(_add_opinion, sentences, judged.opinions))
        missing = await _find_unsaid(asked, text, judge if ended == "answer" else None)
    forbidden = tuple(phrase[0] for phrase in case.must_not_say if says(text, phrase))
    return AnswerMeasure(
        asked=asked,
        ended=ended,
        reason=find_reason(reply),
        verdict=_find_verdict(case, reply, ended, missing, forbidden),
        missing=missing,
        forbidden=forbidden,
        sentences=sentences,
        completeness=1 - len(missing) / len(case.must_say) if case.must_say else None,
        page=float(cites_page(case, reply)) if case.pages else None,
        judge_calls=tuple(calls),
    )


def find_reason(reply: Fields) -> str:
    """Return the reason of a question's outcome, if the reply contains it."""
    for name in ("refusal_reason", "clarification_reason", "termination_reason"):
        if value := reply.get(name):
            return str(value)
    return ""


def list_cited_places(reply: Fields) -> tuple[str, ...]:
    """Return the URL or path of each cited source, without duplicates, in order."""
    places = (
        str(source.get("url") or source.get("path") or "")
        for source in read_objects(reply.get("sources"))
    )
    return tuple(dict.fromkeys(place for place in places if place))


def cites_page(case: GoldenCase, reply: Fields) -> bool:
    """Return whether a cited source is on one of the expected pages of a case."""
    places = [
        str(source.get(name) or "")
        for source in read_objects(reply.get("sources"))
        for name in ("path", "url")
    ]
    return any(is_page(place, page) for place in places for page in case.pages)


def _find_verdict(
    case: GoldenCase,
    reply: Fields,
    ended: str,
    missing: Sequence[str],
    forbidden: Sequence[str],
) -> str:
    if ended != case.expect:
        return _name_wrong_end(case.expect, ended)
    if case.reason and find_reason(reply) != case.reason:
        return "wrong reason"
    if forbidden:
        return "contains forbidden text"
    language = str(reply.get("language") or "")
    if case.language and case.language not in (language, primary_of(language)):
        return "wrong language"
    if case.pages and not cites_page(case, reply):
        return "wrong page"
    return "incomplete" if missing else USEFUL


def _name_wrong_end(expected: str, ended: str) -> str:
    if ended == "fail":
        return "failed"
    if expected == "answer":
        return "wrong refusal" if ended == "refuse" else "unexpected clarification"
    return "should refuse" if expected == "refuse" else "should ask"


def _measure_sentence(asked: AskedCase, sentence: CoveredSentence) -> SentenceMeasure:
    known = tuple(number for number in sentence.cites if number in asked.evidence)
    return SentenceMeasure(sentence.text, known)


async def _find_unsaid(asked: AskedCase, text: str, judge: Model | None) -> tuple[str, ...]:
    """Return the statements that an answer does not make."""
    unsaid = [fact for fact in asked.case.must_say if not says(text, fact)]
    open_to_judge = [fact for fact in unsaid if len(fact[0].split()) >= _JUDGED_WORDS]
    if judge is not None and open_to_judge:
        claims = [JudgedClaim(fact[0], {1: text}) for fact in open_to_judge]
        answer = await judge_answer(judge, _question(asked, text, claims))
        made = _select_supported(open_to_judge, answer)
        unsaid = [fact for fact in unsaid if fact not in made]
    return tuple(fact[0] for fact in unsaid)


def _select_supported(statements: Sequence[Statement], answer: JudgedAnswer) -> list[Statement]:
    pairs = zip(statements, answer.opinions, strict=True)
    return [statement for statement, opinion in pairs if opinion.supported]


def _claims(asked: AskedCase, covered: Sequence[CoveredSentence]) -> list[JudgedClaim]:
    return [JudgedClaim(sentence.text, _evidence(asked, sentence.cites)) for sentence in covered]


def _evidence(asked: AskedCase, numbers: Sequence[int]) -> dict[int, str]:
    return {number: asked.evidence[number] for number in numbers if number in asked.evidence}


def _question(asked: AskedCase, answer: str, claims: Sequence[JudgedClaim]) -> JudgedQuestion:
    language = str(asked.reply.get("language") or "en")
    return JudgedQuestion(asked.case.question, language, answer, claims)


def _add_opinion(sentence: SentenceMeasure, opinion: ClaimOpinion) -> SentenceMeasure:
    if opinion.supported and not sentence.cites:
        opinion = ClaimOpinion(False, "it cites nothing")
    return replace(sentence, supported=opinion.supported, reason=opinion.reason)


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None
