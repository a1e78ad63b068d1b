"""Finds whom a rule addresses, and the condition under which it applies."""

import re
from collections.abc import Iterator, Sequence

from compliance.requirements.segments import count_mark
from compliance.wording.cues import Cue, RuleKind, Word, find_cues, split_words

_MOST_WORDS = 14
_LONGEST = 300
_RELATIVE = re.compile(r"[,;]|\s(?:that|which|who|whose|referred|pursuant|der|die|das)\s")
_SUBORDINATE = frozenset(
    {"if", "where", "when", "whenever", "unless", "in", "without", "upon", "subject", "by", "for",
     "as", "to", "on", "until", "before", "after", "with", "wenn", "falls", "sofern", "soweit",
     "bei", "nach", "vor", "unbeschadet", "ohne"}
)  # fmt: skip
_ARTICLES = frozenset({"the", "a", "an", "each", "every", "any", "all", "der", "die", "das", "ein"})
_BE = frozenset({"be", "been", "werden", "worden"})


def find_addressee(text: str, cue: Cue, language: str) -> str:
    """Return who has to act: the subject, or the agent of a passive; empty where none is named."""
    if cue.group == RuleKind.DEFINITION:
        return ""
    words = split_words(text)
    after = [word for word in words if word.start >= cue.end]
    if any(word.text in _BE for word in after[:2]):
        agent = _find_agent(text, after, language)
        if agent:
            return agent
    return _find_subject(text[count_mark(text) : cue.start])


def find_condition(texts: Sequence[str], language: str) -> str:
    """Return the conditional clauses of a rule and its introduction, joined by "; "."""
    return "; ".join(clause for text in texts for clause in _list_conditions(text, language))


def _find_subject(before: str) -> str:
    parts = [part.strip() for part in before.split(",")]
    while len(parts) > 1 and _begins_subordinate(parts[0]):
        parts.pop(0)
    subject = _RELATIVE.split(f"{', '.join(parts)} ")[0].strip(" :;,.\"'“”‘’")
    words = subject.split()
    return " ".join(words[-_MOST_WORDS:])


def _begins_subordinate(part: str) -> bool:
    words = part.split(maxsplit=1)
    return bool(words) and words[0].lower() in _SUBORDINATE


def _find_agent(text: str, after: Sequence[Word], language: str) -> str:
    for at, word in enumerate(after[:-1]):
        follows = after[at + 1].text
        if word.text == "by" and language == "en" and follows in _ARTICLES:
            rest = text[after[at + 1].start : after[at + 1].start + _LONGEST]
            return " ".join(_RELATIVE.split(f"{rest} ")[0].split()[:5]).rstrip(".;:")
    return ""


def _list_conditions(text: str, language: str) -> Iterator[str]:
    stop = 0
    for cue in find_cues(split_words(text), language, "condition"):
        if cue.start < stop:
            continue
        rest = text[cue.start : cue.start + _LONGEST]
        cut = min((at for sign in ",;:." if (at := rest.find(f"{sign} ")) > 0), default=len(rest))
        clause = " ".join(rest[:cut].split()).rstrip(".;:,")
        stop = cue.start + cut
        if len(clause.split()) > 1:
            yield clause
