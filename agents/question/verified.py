"""Finds the verified answer to a question: a search finds candidates, and a model chooses among
them. Without a model, only a question with the same wording matches; if there are similar ones, the
user is asked which one they meant.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agents.question.replies import normalise, plain_reply
from envelope.conversation import Pause
from envelope.run import Run
from envelope.verified import VerifiedAnswer
from llm.errors import ModelError
from llm.port import Model
from llm.tasks.question import LONGEST_ANSWER, MATCH_VERIFIED, AnsweredQuestion, MatchVerifiedInputs

FindVerified = Callable[[Sequence[str], Sequence[str], Run], Awaitable[Sequence[VerifiedAnswer]]]
"""Returns the verified answers that a person in the given groups may read, sorted by the similarity
of their questions to the given texts. The run pays for the vectors.
"""


@dataclass(frozen=True, slots=True)
class VerifiedMatch:
    """The matching answer or, if there is none, the candidates that the user may have meant.
    `error` is the reason why no model could decide.
    """

    answer: VerifiedAnswer | None = None
    candidates: tuple[VerifiedAnswer, ...] = ()
    error: str = ""


NOTHING = VerifiedMatch()


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """The standalone form of a question, and the question as typed, possibly in reply to a
    pause.
    """

    canonical: str
    text: str
    groups: tuple[str, ...] = ()
    pause: Pause | None = None


async def match_verified(
    asked: AskedQuestion, find: FindVerified | None, model: Model | None, run: Run
) -> VerifiedMatch:
    """Return the verified answer to a question."""
    if find is None:
        return NOTHING
    chosen = _find_chosen(asked)
    texts = [chosen] if chosen else list(dict.fromkeys(filter(None, (asked.canonical, asked.text))))
    answers = await find(texts, asked.groups, run)
    if not answers:
        return NOTHING
    wanted = {normalise(text) for text in texts}
    same = next((answer for answer in answers if normalise(answer.question) in wanted), None)
    if same is not None:
        return VerifiedMatch(same)
    if chosen or model is None:
        # The user has already chosen an option.
        return NOTHING if asked.pause is not None else VerifiedMatch(candidates=tuple(answers))
    return await _ask_model(asked, answers, model, run)


async def _ask_model(
    asked: AskedQuestion, answers: Sequence[VerifiedAnswer], model: Model, run: Run
) -> VerifiedMatch:
    listed = tuple(
        AnsweredQuestion(
            number=number, question=answer.question, answer=answer.answer[:LONGEST_ANSWER]
        )
        for number, answer in enumerate(answers, start=1)
    )
    text = "" if asked.text == asked.canonical else asked.text
    try:
        inputs = MatchVerifiedInputs(question=asked.canonical, text=text, answered=listed)
        given = await model.ask(MATCH_VERIFIED, inputs, run)
    except ModelError as error:
        return VerifiedMatch(error=f"{type(error).__name__}: {error}")
    number = given.output.number
    return VerifiedMatch(answers[number - 1]) if 0 < number <= len(answers) else NOTHING


def _find_chosen(asked: AskedQuestion) -> str:
    """Return the option that the user chose in reply to a pause; skipping chooses the first one."""
    if asked.pause is None or not asked.pause.options:
        return ""
    reply = plain_reply(asked.text, asked.pause)
    is_choice = reply is not None and reply.kind != "exit"
    return asked.pause.options[reply.option] if reply is not None and is_choice else ""
