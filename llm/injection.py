"""Detects prompt injection in a question.

Signs are weighted: one certain sign is sufficient, and weaker signs must add up. Words that
attackers use ("override", "instructions", "secret", "inject") are not signs by themselves; they
must refer to the assistant, its instructions, or a persona for it. `injection.toml` lists the
signs. They are searched for in each of the `readings` of the text, which undo disguises such as
look-alike letters.
"""

import asyncio
import re
import tomllib
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

_TABLES = tomllib.loads(Path(__file__).with_name("confusables.toml").read_text(encoding="utf-8"))
_LATIN = str.maketrans(
    {
        character: letter
        for letter, characters in _TABLES["letters"].items()
        for character in characters
    }
)
_FIRST, _SECOND = 0, -1
_WORDS = frozenset(_TABLES["words"]["spoken"].split())
_LONGEST_WORD = max(map(len, _WORDS))
_LEAST_RUN_TOGETHER = 14
_UNKNOWN_LETTER = 1.2
"""The cost of a letter that does not belong to a known word when joined letters are split into
words. A known word costs 1.
"""
_TAGS = range(0xE0020, 0xE007F)
_TAG_OFFSET = 0xE0000

# Characters without width or meaning: format characters, fillers, variation selectors.
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
_MARKS = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
_SPACES = re.compile(r"\s{2,}|[^\S\n ]")
_SAME_SIGN = re.compile(r"([^\w\s])\1+")
_SAME_LETTER = re.compile(r"([^\W\d_])\1{2,}")
_WITHIN_WORD = re.compile(r"(?<=[^\W_])(?:(?!\s)[\W_]){1,3}(?=[^\W_])")
_SPELLED = re.compile(r"(?<!\S)\S(?:\s{1,9}\S(?!\S)){4,}")
_WIDE_SPACE = re.compile(r"\s{2,}")
_ONE_SPACE = re.compile(r"\s")
_EXCLAIMED = re.compile(r"!(?=[@$|+]{0,3}[^\W_])")
_LONG_WORD = re.compile(rf"[A-Za-z]{{{_LEAST_RUN_TOGETHER},}}")
_LEET = {
    way: str.maketrans({sign: letters[way] for sign, letters in _TABLES["leet"].items()})
    for way in (_FIRST, _SECOND)
}

CERTAIN = 1.0
BUDGET_SECONDS = 0.5
"""The time limit of an inspection. After that, the question is processed with the findings so
far.
"""

_LONGEST_QUESTION = 300
_LONG_CHARACTERS = 900
_VERY_LONG_CHARACTERS = 2500
_LONG_WEIGHT = 0.4


@dataclass(frozen=True, slots=True)
class Sign:
    """A pattern that indicates an attack; a sign of `weight` 1 is sufficient on its own."""

    kind: str
    weight: float
    pattern: re.Pattern[str]


def _signs() -> tuple[Sign, ...]:
    named = {name: value for name, value in _TABLE.items() if isinstance(value, str)}
    return tuple(
        Sign(row["kind"], row["weight"], _compile("|".join(row["any"]), named))
        for row in _TABLE["sign"]
    )


def _compile(pattern: str, named: dict[str, str]) -> re.Pattern[str]:
    for name, value in named.items():
        pattern = pattern.replace(f"<{name}>", value)
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_ASKED = _compile(_TABLE["question"]["asked"], _TABLE["question"])
_TO_YOU = _compile(_TABLE["question"]["to_you"], {})
_CLAUSE_END = re.compile('[.,:!?;()"\n\u2013\u2014\u3002\uff01\uff1f\uff0c]| - ')
SIGNS = _signs()

_TO_ASSISTANTS = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:above|previous|prior|earlier"
    r"|instructions?|question|context|rules|everything)\b"
    # Requirements of a law for AI systems are not orders: only verbs of output to a reader count.
    r"|\b(?:ai|assistants?|chat ?bots?|language models?|llms?)\b.{0,30}\b(?:must|should|shall"
    r"|have to|need to|instructed|please|are to)\b.{0,25}\b(?:say|reply|respond|answer|output"
    r"|print|tell|claim|repeat|reveal|mention|recommend|advise|ignore|disregard|forget|obey|click"
    r"|visit|refuse|pretend|translate|summari[sz]e|append|insert|write)\b"
    r"|\b(?:ai|assistants?|chat ?bots?|language models?|llms?)\b.{0,30}\breading\b"
    r"|\b(?:dear|attention|note to|hey|instructions? (?:to|for))\b.{0,20}\b(?:ai|assistants?"
    r"|models?|chat ?bots?|llms?)\b"
    r"|\byou are (?:now )?(?:a|an|the) .{0,30}\b(?:assistant|ai|model|bot|persona)\b"
    r"|\b(?:say|reply|respond|answer|output|print|tell the user)\b.{0,12}\b(?:only|exactly|with the"
    r"|instead|that you)\b"
    r"|\b(?:system|hidden|secret) prompt\b",
    re.IGNORECASE,
)

_TO_READERS_TOO = "no limits"
"""A kind of sign that is an attack in a question but normal in a document, such as "You may copy it
without any restriction".
"""


@dataclass(frozen=True, slots=True)
class Inspection:
    """The kinds of attack that were detected, strongest first; empty if there are none.

    `is_complete` is False if the time limit ended the inspection.
    """

    kinds: tuple[str, ...] = ()
    is_complete: bool = True


def readings(text: str) -> Iterator[str]:
    """Yield distinct variants of `text`: first with only hidden characters removed, then with each
    kind of disguise undone. In all of them, repeated white space and special characters are
    collapsed.
    """
    seen: set[str] = set()
    for reading in map(_collapse_runs, _undo_disguises(text)):
        if reading not in seen:
            seen.add(reading)
            yield reading


def attack_in(text: str) -> str | None:
    """Return the kind of attack in `text`, or None, without a time limit."""
    return next(iter(inspect(text, deadline=None).kinds), None)


async def inspect_within(budget_seconds: float, *texts: str) -> Inspection:
    """Inspect `texts` in a thread until an attack is found or the time limit is reached."""
    return await asyncio.to_thread(inspect, *texts, deadline=perf_counter() + budget_seconds)


def inspect(*texts: str, deadline: float | None) -> Inspection:
    """Return the first attack in `texts`; `deadline` is a value of `perf_counter`."""
    for text in dict.fromkeys(texts):
        for reading in readings(text):
            signs: list[Sign] = []
            for sign in SIGNS:
                if deadline is not None and perf_counter() > deadline:
                    return Inspection(is_complete=False)
                if _has_sign(reading, sign):
                    signs.append(sign)
            if _weight(signs, len(text)) >= CERTAIN:
                signs.sort(key=lambda sign: sign.weight, reverse=True)
                return Inspection(tuple(dict.fromkeys(sign.kind for sign in signs)))
    return Inspection()


def is_order_to_assistant(text: str) -> bool:
    """Return whether `text` gives orders to the assistant rather than informing a reader."""
    kinds = set(inspect(text, deadline=None).kinds) - {_TO_READERS_TOO}
    return bool(kinds) or _TO_ASSISTANTS.search(text) is not None


def _undo_disguises(text: str) -> Iterator[str]:
    shown = text if text.isascii() else _IGNORABLE.sub("", text)
    yield shown
    folded = _fold_to_latin(shown)
    for lettered in (folded, *(_without_leet(folded, way) for way in (_FIRST, _SECOND))):
        joined = _join_letters(lettered)
        yield from (lettered.replace("_", " "), joined, " ".join(joined.split()))
    if shown != text:
        yield _fold_to_latin(_IGNORABLE.sub(" ", text)).replace("_", " ")
        yield "".join(chr(ord(tag) - _TAG_OFFSET) for tag in text if ord(tag) in _TAGS)


def _fold_to_latin(text: str) -> str:
    """Replace all look-alike characters by Latin letters."""
    if not text.isascii():
        text = _MARKS.sub("", unicodedata.normalize("NFKD", text)).translate(_LATIN)
    return _SAME_LETTER.sub(r"\1", text)


def _join_letters(text: str) -> str:
    """Join letters that are separated by spaces or other characters into words."""
    joined = _WITHIN_WORD.sub("", _SPELLED.sub(_join_spelled, text))
    return _LONG_WORD.sub(lambda match: _split_words(match[0]), joined.replace("_", " "))


def _join_spelled(match: re.Match[str]) -> str:
    """Join letters that are spelled out; wider gaps separate words."""
    between = _WIDE_SPACE.sub("\x00", match[0])
    return _ONE_SPACE.sub("", between).replace("\x00", " ")


def _split_words(letters: str) -> str:
    """Split `letters` into known words, leaving as few other letters as possible.

    The letters between two known words form a separate word.
    """
    lowered = letters.lower()
    costs = [0.0]
    begins = [0]
    for end in range(1, len(lowered) + 1):
        cost, begin = costs[end - 1] + _UNKNOWN_LETTER, -1
        for start in range(max(0, end - _LONGEST_WORD), end):
            if costs[start] + 1 < cost and lowered[start:end] in _WORDS:
                cost, begin = costs[start] + 1, start
        costs.append(cost)
        begins.append(begin)
    words: list[str] = []
    end = len(lowered)
    unknown = end
    while end:
        begin = begins[end]
        if begin < 0:
            end -= 1
            continue
        words += [lowered[end:unknown], lowered[begin:end]]
        end = unknown = begin
    words.append(lowered[:unknown])
    return " ".join(word for word in reversed(words) if word)


def _without_leet(text: str, way: int) -> str:
    """Replace digits and special characters with letters; an exclamation mark is replaced only
    before a letter.
    """
    return _EXCLAIMED.sub("i", text).translate(_LEET[way])


def _collapse_runs(text: str) -> str:
    """Collapse runs of white space, and runs of the same special character."""
    spaced = _SPACES.sub(lambda match: "\n" if "\n" in match[0] else " ", text)
    return _SAME_SIGN.sub(r"\1", spaced)


def _has_sign(reading: str, sign: Sign) -> bool:
    return any(not _is_asked_about(reading, match) for match in sign.pattern.finditer(reading))


def _is_asked_about(reading: str, match: re.Match[str]) -> bool:
    """Return whether the clause asks about a subject, rather than giving an order."""
    before = reading[max(0, match.start() - _LONGEST_QUESTION) : match.start()]
    clause = _CLAUSE_END.split(before)[-1] + match[0]
    return _ASKED.match(clause) is not None and _TO_YOU.search(clause) is None


def _weight(signs: list[Sign], characters: int) -> float:
    """Return the total weight of the signs; several signs weigh more in a long text.

    A long harmless text may contain one suspicious phrase; a long attack contains several.
    """
    weight = sum(sign.weight for sign in signs)
    if len(signs) > 1 and characters > _LONG_CHARACTERS:
        weight += _LONG_WEIGHT * (1 + (characters > _VERY_LONG_CHARACTERS))
    return weight
