"""Quotes the sentences of a document whose summary the question asks for."""

from citations.claims import UnitKind, split_units
from envelope.ways.tool_loop import Intent
from llm.attacks.injection import attack_in
from llm.offline.planning.question_parts import find_cues, read_question
from llm.offline.words import content_words, words
from llm.tasks.respond import Inputs, PromptSource

_SUMMARY = Intent.SUMMARY.value
_MOST_SENTENCES = 10
_LEAST_CHARACTERS = 20
_OF_VERSIONS = frozenset({"version", "revision", "edition", "release"})


def find_summary(inputs: Inputs) -> str | None:
    """Return sentences of each source of the document that a question names, or None.

    The first source decides which document it is: a summary of several would mix them.
    """
    question = read_question(inputs.question)
    is_asked = _SUMMARY in question.cues and Intent.COMPARISON.value not in question.cues
    if not is_asked or not inputs.sources:
        return None
    own = {one for one in content_words(question.text) if _SUMMARY not in find_cues(one)}
    own -= _OF_VERSIONS
    named = own | {one for one in words(question.text) if one.isdigit()}
    first = inputs.sources[0]
    if not named or not named <= set(words(first.place)):
        return None
    parts = [one for one in inputs.sources if _name_document(one) == _name_document(first)]
    share = max(1, _MOST_SENTENCES // len(parts))
    lines = [_quote(one, share) for one in parts[:_MOST_SENTENCES]]
    return "\n\n".join(line for line in lines if line) or None


def _quote(source: PromptSource, most: int) -> str:
    place = source.place.split(" > ")[-1]
    if any(unit.kind is UnitKind.TABLE for unit in split_units(source.text)):
        return f"{place}:\n\n{source.text.strip()}\n\n[{source.number}]"
    sentences = [
        text
        for unit in split_units(source.text)
        if unit.kind in {UnitKind.SENTENCE, UnitKind.ITEM}
        and len(text := " ".join(unit.text.split())) > _LEAST_CHARACTERS
        and attack_in(text) is None
    ]
    quoted = " ".join(f"{one} [{source.number}]" for one in sentences[:most])
    return f"{place}: {quoted}" if quoted else ""


def _name_document(source: PromptSource) -> str:
    return source.chunk_id.rpartition("#")[0]
