"""Reads from a question what it asks for: intents, versions, arithmetic, and separate questions."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from envelope.ways.tool_loop import Intent
from llm.offline.dialogue.several_questions import split_listed_questions, split_questions
from llm.offline.phrases import CONJUNCTIONS
from llm.offline.words import content_words, normalise

_CUES: Mapping[str, Mapping[str, list[str]]] = tomllib.loads(
    files("llm.offline.planning").joinpath("cues.toml").read_text("utf-8")
)
_VERSION = re.compile(
    r"\b(?:version|revision|rev|release|edition|v|r)[. ]?(\d{1,4}(?:\.\d{1,4}){0,2})\b"
)
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b")
_ARITHMETIC = re.compile(r"\d[\d.]{0,20}(?: [-+*/] \d[\d.]{0,20}){1,8}")
_CODE = re.compile(r"\b[A-Z]{2,6}\b(?!-?\d)")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")
_WORD = re.compile(r"\w+")
_MARKS = re.compile(r"[*#\"`]")
_LONGEST = 4_000
_LONG_CHARACTERS = 800
_LONG_SENTENCES = 8
_LEAST_WORDS = 4
_MOST_SENTENCES = 80


@dataclass(frozen=True, slots=True)
class QuestionParts:
    """What the rules found in a question.

    `versions` are the numbers of versions that it names, the older one first; `arithmetic` is an
    expression in it; `separate` are its independent questions, at least one.
    """

    text: str
    cues: frozenset[str]
    versions: tuple[str, ...]
    arithmetic: str
    separate: tuple[str, ...]
    prefix: str

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences and lines of a long text that say something, without marks of lists."""
        parts = (" ".join(_MARKS.sub(" ", one).split()) for one in _SENTENCE_END.split(self.text))
        return tuple(one for one in parts if len(one.split()) >= _LEAST_WORDS)[:_MOST_SENTENCES]

    @property
    def is_long(self) -> bool:
        """Whether the text is a description of a matter rather than a question."""
        return len(self.text) > _LONG_CHARACTERS and len(self.sentences) >= _LONG_SENTENCES

    @property
    def intent(self) -> Intent:
        """The first intent whose words the question has."""
        for intent in (Intent.COMPARISON, Intent.PENALTY, Intent.SUMMARY):
            if intent.value in self.cues:
                return intent
        return Intent.SEARCH


def read_question(text: str) -> QuestionParts:
    """Return the parts of a question."""
    asked = text[:_LONGEST]
    folded = asked.casefold()
    versions = dict.fromkeys((*_VERSION.findall(folded), *_YEAR.findall(folded)))
    arithmetic = _ARITHMETIC.search(asked)
    codes = _CODE.findall(asked)
    return QuestionParts(
        text=asked,
        cues=frozenset(find_cues(asked)),
        versions=tuple(sorted(versions, key=_order_version)),
        arithmetic=arithmetic[0] if arithmetic is not None else "",
        separate=split_listed_questions(asked) or split_questions(asked) or (asked,),
        prefix=codes[0] if codes else "",
    )


def split_aspects(question: QuestionParts) -> tuple[str, ...]:
    """Return the parts of a question that asks for two kinds of things, else the question alone.

    "The rules for records and the fines for missing ones" asks for a rule and for a penalty.
    """
    if len(question.separate) > 1:
        return question.separate
    text = question.text
    joints = (found for found in _WORD.finditer(text) if found[0].casefold() in CONJUNCTIONS)
    for found in joints if question.intent is not Intent.COMPARISON else ():
        end = "?" if text.rstrip().endswith("?") else ""
        halves = f"{text[: found.start()].rstrip(' ,;')}{end}", text[found.end() :].strip()
        cues = [frozenset(find_cues(one)) & question.cues for one in halves]
        has_content = all(not one.isdigit() for half in halves for one in content_words(half)[:1])
        if has_content and all(map(content_words, halves)) and bool(cues[0]) != bool(cues[1]):
            return halves
    return (text,)


def find_cues(text: str) -> list[str]:
    """Return the intents whose words a text has."""
    whole = f" {normalise(text)} "
    return [
        intent
        for intent, by_language in _CUES.items()
        if any(f" {normalise(cue)} " in whole for cues in by_language.values() for cue in cues)
    ]


def _order_version(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))
