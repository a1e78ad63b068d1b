"""Answers the questions affected by a change to the documents in both states, using a model.

The sentences of the answer before the change are compared with the answer after it. A sentence that
the new answer does not support counts as lost or contradicted.
"""

from citations.marking import remove_marks
from cli.evaluation.desk_run import AskedCase, Progress, Variant, run_variant
from cli.evaluation.golden import GoldenCase
from cli.evaluation.judging import JudgedClaim, JudgedQuestion, judge_answer
from cli.evaluation.sentences import split_covered
from config.settings import Settings
from deploy.assembly.checks import AnswerChange
from deploy.assembly.knowledge import Knowledge
from deploy.assembly.model_choice import find_context_tokens, vendor_access
from deploy.assembly.models import make_registry
from knowledge.checks import CheckQuestion, CheckResult
from llm.port import Model, Usage
from llm.registry import estimate_call_usd

_CALLS_PER_ANSWER = 3
"""The number of model calls per answer: to understand the question, to write the answer, and to
judge it.
"""
_PROMPT_TOKENS, _WRITTEN_TOKENS = 2_500, 600


def describe_estimate(questions: int, settings: Settings) -> str:
    """Return the approximate cost of the answers in both states and their judgement, as one
    line.
    """
    calls = questions * (2 * _CALLS_PER_ANSWER + 1)
    # The writer and the judge of an answer read its context.
    tokens = calls * _PROMPT_TOKENS + questions * 4 * find_context_tokens(settings)
    usage = Usage(tokens, calls * _WRITTEN_TOKENS)
    usd = estimate_call_usd(settings.model_of("respond"), usage, vendor_access(settings))
    price = "an unknown price" if usd is None else f"about {usd:.2f} USD"
    named = f"{questions} question{'' if questions == 1 else 's'}"
    return f"{named} in both states: about {calls} model calls, {tokens:,} tokens, {price}"


async def compare_answers(
    settings: Settings,
    result: CheckResult,
    before: Knowledge,
    after: Knowledge,
    *,
    is_accepted: bool,
    report: Progress,
) -> list[AnswerChange]:
    """Report the estimate and, if it is accepted, return the judged answers in both states to the
    broken and changed questions.
    """
    questions = [each.question for each in result.results if each.state != "unchanged"]
    estimate = describe_estimate(len(questions), settings)
    report(estimate if is_accepted else f"{estimate}; to generate the answers: --yes")
    if not (questions and is_accepted):
        return []
    cases = [_make_case(question) for question in questions]
    runs = []
    for name, state in (("before the change", before), ("after it", after)):
        report(f"answering {name}")
        runs.append(await run_variant(settings, state, Variant(), cases, report))
    registry = make_registry(settings)
    try:
        model = registry.model(settings.model_of("judge"))
        return [
            await judge_change(question, old, new, model)
            for question, old, new in zip(questions, *(run.asked for run in runs), strict=True)
        ]
    finally:
        await registry.close()


async def judge_change(
    question: CheckQuestion, before: AskedCase, after: AskedCase, judge: Model
) -> AnswerChange:
    """Return the answers before and after the change, and the sentences of the earlier answer that
    the later answer does not support.
    """
    written = str(before.reply.get("text") or "")
    language = str(before.reply.get("language") or "en")
    # The numbers of citations lead nowhere in a report without sources.
    sentences = [remove_marks(sentence.text) for sentence in split_covered(written, language)]
    first, second = (remove_marks(str(case.reply.get("text") or "")) for case in (before, after))
    claims = [JudgedClaim(sentence, {1: second}) for sentence in sentences]
    answer = await judge_answer(judge, JudgedQuestion(question.text, language, first, claims))
    lost = [
        (sentence, opinion.reason)
        for sentence, opinion in zip(sentences, answer.opinions, strict=False)
        if opinion.supported is False
    ]
    return AnswerChange(question, first, second, tuple(lost), answer.error)


def _make_case(question: CheckQuestion) -> GoldenCase:
    expected = question.facts or ((question.text,),)
    return GoldenCase(id=question.id, question=question.text, facts=expected)
