"""Finds amounts, percentages, periods, and counts in text, and compares them by value.

The comparison is evidence. Whether a longer period violates a rule is left to the reader.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from itertools import product

from agents.review.requirements import load_tables
from citations.verbatim import remove_struck
from knowledge.index.terms import terms
from knowledge.stop_words import STOP_WORDS

_FILE = "measure_words.toml"
_TOKEN = re.compile(
    r"\d{1,3}(?:[.,'’\u00a0\u202f ]\d{3}){1,5}(?:[.,]\d{1,4})?(?!\d)|\d{1,15}(?:[.,]\d{1,6})?"
    r"|[%‰€$£¥°§]|[^\W\d_]{1,40}"
)
_BEFORE = 4
"""The number of words before a number that are quoted with it, such as "at least"."""
_SENTENCE_ENDS = (". ", "; ", "\n")
_MOST = 40
_MOST_LINES = 12
COUNT = "count of"
"""The prefix for families of counted items, such as subcontractors."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A number with its unit; `value` is converted to a common unit of its family, such as minutes.

    `text` is the wording in the document, including some of the preceding words.
    """

    family: str
    value: Decimal
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    start: int
    end: int


def list_measures(text: str, language: str = "en") -> tuple[Measure, ...]:
    """Return the numbers in the text with their units, in order; numbers without a unit are
    omitted.
    """
    tokens = [_Token(match[0], match.start(), match.end()) for match in _TOKEN.finditer(text)]
    measures: list[Measure] = []
    at = 0
    while at < len(tokens) and len(measures) < _MOST:
        value, after = _read_number(tokens, at)
        if value is None:
            at += 1
            continue
        value, after = _multiply(tokens, value, after)
        begin = tokens[at].start
        if _is_negative(text, begin):
            value, begin = -value, begin - 1
        unit = _find_unit(text, tokens, at, after, language)
        if unit is not None:
            family, factor, end = unit
            first = min(begin, tokens[max(0, at - _BEFORE)].start)
            shown = " ".join(text[first : max(end, tokens[after - 1].end)].split())
            measures.append(Measure(family, value * factor, shown, begin, max(end, begin + 1)))
        at = after
    return tuple(measures)


def compare_measures(
    rule: str, document: str, *, rule_language: str = "en", document_language: str = "en"
) -> tuple[str, ...]:
    """Return a line for each pair of a number in a rule and a number in a document with the same
    unit.

    A line quotes both and states whether the document's number is less, equal, or more. If some
    numbers in the document are in a sentence that shares a word with the rule's sentence, the other
    numbers are omitted as unrelated. Struck-out text is omitted.
    """
    rule, document = remove_struck(rule), remove_struck(document)
    lines: dict[str, None] = {}
    own = list_measures(document, document_language)
    around = [_list_words(document, measure, document_language) for measure in own]
    for wanted in list_measures(rule, rule_language):
        words = _list_words(rule, wanted, rule_language)
        alike = [place for place, measure in enumerate(own) if measure.family == wanted.family]
        about = [place for place in alike if words & around[place]] or alike
        for given in (own[place] for place in about):
            sign = "<" if given.value < wanted.value else ">" if given.value > wanted.value else "="
            lines[f'document "{given.text}" {sign} rule "{wanted.text}"'] = None
    return tuple(lines)[:_MOST_LINES]


def list_numbers(text: str) -> frozenset[Decimal]:
    """Return the values of all numbers in the text, written in digits or in words."""
    tokens = [_Token(match[0], match.start(), match.end()) for match in _TOKEN.finditer(text)]
    values = set()
    at = 0
    while at < len(tokens):
        value, after = _read_number(tokens, at)
        if value is not None:
            values |= {value, _multiply(tokens, value, after)[0]}
        at = max(after, at + 1)
    return frozenset(values)


def _list_words(text: str, measure: Measure, language: str) -> set[str]:
    """Return the terms in the sentence around a number, without the terms of the number itself."""
    start = max(text.rfind(end, 0, measure.start) for end in _SENTENCE_ENDS) + 1
    ends = [at for end in _SENTENCE_ENDS if (at := text.find(end, measure.end)) != -1]
    before, after = text[start : measure.start], text[measure.end : min(ends, default=len(text))]
    return {*terms(before, language), *terms(after, language)} - STOP_WORDS


def _read_number(tokens: Sequence[_Token], at: int) -> tuple[Decimal | None, int]:
    """Return the number that begins here, and the position after it."""
    text = tokens[at].text
    if text[0].isdigit():
        return _parse_digits(text), at + 1
    words = _load_numbers()
    value = words.get(text.lower())
    if value is None:
        return None, at + 1
    following = tokens[at + 1] if at + 1 < len(tokens) else None
    ones = words.get(following.text.lower()) if following is not None else None
    if value >= 20 and value % 10 == 0 and ones is not None and 0 < ones < 10:
        return value + ones, at + 2
    return value, at + 1


def _is_negative(text: str, at: int) -> bool:
    """Return whether a minus sign stands before a number, and not a hyphen or a range."""
    before = text[max(at - 2, 0) : at].lstrip()
    return before in ("-", "\u2212", "\u2013")


def _parse_digits(text: str) -> Decimal | None:
    plain = re.sub(r"['’\u00a0\u202f ]", "", text)
    groups = re.split(r"[.,]", plain)
    if len(groups) > 1:
        signs = [sign for sign in plain if sign in ".,"]
        is_thousands = len(groups[-1]) == 3 and len(set(signs)) == 1
        is_decimal = not is_thousands
        whole = "".join(groups[:-1]) if is_decimal else "".join(groups)
        plain = f"{whole}.{groups[-1]}" if is_decimal else whole
    try:
        return Decimal(plain)
    except InvalidOperation:
        return None


def _multiply(tokens: Sequence[_Token], value: Decimal, after: int) -> tuple[Decimal, int]:
    if after < len(tokens):
        factor = _read_words("factors").get(tokens[after].text.lower())
        if factor is not None:
            return value * factor, after + 1
    return value, after


def _find_unit(
    text: str, tokens: Sequence[_Token], at: int, after: int, language: str
) -> tuple[str, Decimal, int] | None:
    """Return the family, factor, and end of a number's unit, which may follow or precede the
    number.
    """
    units = _load_units()
    before = units.get(tokens[at - 1].text.lower()) if at > 0 else None
    if before is not None and before[0].startswith("currency"):
        return before[0], before[1], tokens[after - 1].end
    following = tokens[after : after + 2]
    for token in following:
        if (known := units.get(token.text.lower())) is not None:
            return known[0], known[1], token.end
    if not following or text[tokens[after - 1].end : following[0].start].strip():
        return None
    # A function word, such as in "by 2030 the", is not a unit: it is not a term next to another
    # one.
    _, *stems = terms(f"9 {following[0].text}", language)
    is_word = len(following[0].text) > 2 and bool(stems)
    return (f"{COUNT} {stems[0]}", Decimal(1), following[0].end) if is_word else None


@cache
def _load_numbers() -> Mapping[str, Decimal]:
    """Return the words for numbers; German numbers below a hundred are composed."""
    numbers = dict(_read_words("numbers"))
    ones, tens = _read_words("german_ones"), _read_words("german_tens")
    for (unit, low), (ten, high) in product(ones.items(), tens.items()):
        numbers[f"{unit}und{ten}"] = low + high
    return numbers


@cache
def _read_words(table: str) -> Mapping[str, Decimal]:
    return {
        word: Decimal(value)
        for value, words in load_tables(_FILE)[table].items()
        for word in words.split()
    }


@cache
def _load_units() -> Mapping[str, tuple[str, Decimal]]:
    return dict(_list_units())


def _list_units() -> Iterator[tuple[str, tuple[str, Decimal]]]:
    for name, words in load_tables(_FILE)["units"].items():
        family, _, factor = name.partition(" ")
        for word in str(words).split():
            yield word, (family, Decimal(factor or "1"))
