"""Assesses an answer of the tool loop by rules: see `assessment`.

An answer is as complete as the part of the question that it answers worst allows: a fine without
the rule that was asked for, too, needs another round. The words of the question are looked for in
the answer, and in the places of the sources that it quotes; a part that the writer says is
unanswered lacks all of its words.
"""

from envelope.ways.tool_loop import Intent
from llm.offline.phrases import ASKING_WORDS
from llm.offline.planning.assessment import Evidence, assess
from llm.offline.planning.question_parts import find_cues, read_question, split_aspects
from llm.offline.support import terms
from llm.offline.words import content_words
from llm.tasks.assess import AssessedSource, Inputs, Output

_KIND = Intent.PENALTY.value
_LEAST_QUOTED = 20
_LOWEST, _RANGE = 1.0, 9.0


def answer(inputs: Inputs) -> Output:
    """Return the scores of an answer, and the words of the question that it lacks."""
    evidence = [Evidence(text=one.text) for one in inputs.sources]
    found = assess(inputs.question, evidence, inputs.answer)
    answered = "\n".join((inputs.answer, *_list_quoted(inputs)))
    parts = split_aspects(read_question(inputs.question))
    rated = [_rate_part(part, answered, inputs.unanswered) for part in parts]
    shares = [share for share, _ in rated]
    share = (min(shares) + sum(shares) / len(shares)) / 2
    return Output(
        missing=tuple(dict.fromkeys(word for _, missing in rated for word in missing)),
        completeness=_scale(share),
        accuracy=found.accuracy,
        clarity=found.clarity,
        specificity=_scale((found.specificity - _LOWEST) / _RANGE * share),
    )


def _rate_part(part: str, answered: str, unanswered: str) -> tuple[float, list[str]]:
    """Return the share of a part's words that an answer says, and those that it lacks.

    A part without an answer lacks all of them, and so does a question for a penalty that is
    answered without any.
    """
    subject = _list_subject(part)
    kinds = [word for word in content_words(part) if _KIND in find_cues(word)]
    if kinds and _KIND not in find_cues(answered):
        return 0.0, [*kinds[:1], *subject]
    if subject and set(subject) <= set(content_words(unanswered)):
        return 0.0, subject
    known = frozenset(terms(answered))
    lacking = [word for word in subject if not set(terms(word)) <= known]
    return 1 - len(lacking) / len(subject) if subject else 1.0, lacking


def _list_subject(part: str) -> list[str]:
    """Return the words that an answer has, too: none that say only what kind is asked for."""
    found = dict.fromkeys(content_words(part))
    return [word for word in found if word not in ASKING_WORDS and not find_cues(word)]


def _list_quoted(inputs: Inputs) -> list[str]:
    """Return the places of the sources that an answer quotes; of all where it quotes none."""
    lines = [" ".join(line.split()) for line in inputs.answer.replace(". ", ".\n").splitlines()]
    # A heading may precede a quotation: "Validity (version 2025): A licence is valid ...".
    lines += [line.partition("): ")[2] for line in lines]
    quotations = [line for line in lines if len(line) > _LEAST_QUOTED]
    quoted = [
        one
        for one in inputs.sources
        if any(line in (text := " ".join(one.text.split())) or text in line for line in quotations)
    ]
    return [_name_place(one) for one in quoted or inputs.sources]


def _name_place(source: AssessedSource) -> str:
    return source.text.split("\n", 1)[0]


def _scale(share: float) -> float:
    return round(_LOWEST + _RANGE * share, 2)
