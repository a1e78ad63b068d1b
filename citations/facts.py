"""Finds numbers in an answer that do not occur in a source and cannot be computed.

A number has all values that it can represent: `1.000` is 1000 and 1.0, `21:00` is 21:00, 21, and 9,
and "five" is 5. The numbers of list items are ignored. The number of items in a list always counts
as known.

A number may be computed, as the sum, difference, product, quotient, or percentage of two numbers,
or by converting it to another unit (two hours, 120 minutes). It is accepted if the same text
contains the operands. If an operand occurs only in a source or in the question, the rules neither
accept nor reject the number.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain

_TOKEN = re.compile(
    r"(?<!\d)(?P<before>[A-Za-z_]{0,24}-?)"
    r"(?P<number>\d+(?:[.,:'\u2019\u00a0\u202f]\d+|[ ]\d{3}(?!\d))*)"
)
_THOUSANDS = re.compile(r"\d{1,3}(?:[.,'\u2019\u00a0\u202f ]\d{3})+")
_TIME = re.compile(r"(\d{1,2})[:.](\d{2})")
_ISO_DATE = re.compile(r"\d{4}-(\d{2})-(\d{2})")
_DATE = re.compile(r"(\d{1,2})[.](\d{1,2})[.](\d{4})")
_WORD = re.compile(r"[^\W\d_]+")
_UNITS = (7, 12, 24, 30, 52, 60, 100, 365, 1_000, 1_024, 1_440, 3_600, 86_400, 1_000_000)
"""Conversion factors between units, such as days per week or minutes per hour."""
_MOST_OPERANDS = 400
_CLOSE = 1e-9
_SPELLED_LINES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty",
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze",
    "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici",
    "zero um dois três quatro cinco seis sete oito nove dez onze doze",
    "ноль один два три четыре пять шесть семь восемь девять десять",
    "нуль один два три чотири п'ять шість сім вісім дев'ять десять",
    "nula jeden dva tři čtyři pět šest sedm osm devět deset",
)
_ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth"
"""Ordinals are never operands: "second" in "per second" is not 2."""
_SPELLED: dict[str, int] = {
    word: number for line in _SPELLED_LINES for number, word in enumerate(line.split())
} | {
    "once": 1, "single": 1, "twice": 2, "double": 2, "both": 2, "half": 2, "thirty": 30,
    "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
    "hundred": 100, "thousand": 1_000, "million": 1_000_000, "zwanzig": 20,
    "dreißig": 30, "hundert": 100, "tausend": 1_000, "duas": 2, "две": 2, "двух": 2, "трёх": 3,
    "dvě": 2,
    "quarter": 4, "dozen": 12,
}  # fmt: skip
_IDEOGRAPHS = {sign: number for number, sign in enumerate("〇一二三四五六七八九十")} | {"两": 2}
_ORDERED = {word: float(number) for number, word in enumerate(_ORDINALS.split())}


@dataclass(frozen=True, slots=True)
class Number:
    """A number as written in a text, with the values that it may represent.

    `date` contains the year and day of a date, because a source may spell out the month.
    """

    text: str
    values: frozenset[float]
    date: frozenset[float] = frozenset()

    def is_among(self, values: Collection[float]) -> bool:
        """Return whether any of its values is in `values`."""
        return not self.values.isdisjoint(values) or bool(self.date and self.date <= set(values))


@dataclass(frozen=True)
class KnownNumbers:
    """The numbers that an answer may contain: those in the source texts (`given`) and in the user's
    texts (`asked`).
    """

    given: Sequence[str]
    asked: Sequence[str] = ()
    counts: Collection[int] = field(default=())
    """The lengths of the lists in the answer."""

    @cached_property
    def values(self) -> frozenset[float]:
        """All values that are known without computation."""
        texts = (*self.given, *self.asked)
        counted = frozenset(map(float, self.counts))
        return counted.union(*map(values_of, texts), *map(parts_of, texts))

    @cached_property
    def _asked(self) -> frozenset[float]:
        return frozenset().union(*map(operands_of, self.asked))

    def find_unknown(self, text: str, cited: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the numbers in `text` that are neither known nor computable.

        `cited` contains the texts of the cited sources; only their numbers are used as operands.
        """
        numbers, unknown = _select(text, self.values)
        if not unknown:
            return ()
        beside = _values_among(numbers, self.values) | self._asked
        sources = frozenset().union(*map(operands_of, cited or self.given)) | beside
        computed = {*_compute(beside, sources), *_convert(sources), _add_up(numbers, unknown)}
        return _without_computed(unknown, computed)

    def find_unexplained(self, text: str) -> tuple[str, ...]:
        """Return the numbers in `text` that are neither known nor computed from other numbers in
        it.
        """
        return _find_uncomputed(text, self.values)

    def find_elsewhere(self, text: str, cited: Sequence[str]) -> tuple[str, ...]:
        """Return the numbers in `text` that are neither in the cited sources nor computed within
        `text`.
        """
        counted = frozenset(map(float, self.counts))
        texts = (*cited, *self.asked)
        known = counted.union(*map(values_of, texts), *map(parts_of, texts))
        return _find_uncomputed(text, known)


def numbers_of(text: str) -> tuple[Number, ...]:
    """Return the numbers in the text that are written in digits, in order."""
    ascii_text = _ascii_digits(text)
    months = set(_find_months(ascii_text))
    return tuple(
        _read_number(match)
        for match in _TOKEN.finditer(ascii_text)
        if match.start("number") not in months
    )


@lru_cache(maxsize=256)
def values_of(text: str) -> frozenset[float]:
    """Return all values in the text, written in digits or in words."""
    ordered = {_ORDERED[word] for word in _words(text) if word in _ORDERED}
    return operands_of(text) | ordered


@lru_cache(maxsize=256)
def operands_of(text: str) -> frozenset[float]:
    """Return the values in the text that may be operands of a computation."""
    ascii_text = _ascii_digits(text)
    digits = (_read_number(match).values for match in _TOKEN.finditer(ascii_text))
    values = set(chain.from_iterable(digits))
    values |= {float(_SPELLED[word]) for word in _words(text) if word in _SPELLED}
    values |= {float(_IDEOGRAPHS[sign]) for sign in set(text) if sign in _IDEOGRAPHS}
    return frozenset(values)


@lru_cache(maxsize=256)
def parts_of(text: str) -> frozenset[float]:
    """Return the parts of the versions and dates in the text: 3, 6, and 19 for `3.6.19`."""
    tokens = (match["number"] for match in _TOKEN.finditer(_ascii_digits(text)))
    parts = (part for token in tokens if ":" not in token for part in token.split("."))
    return frozenset(float(part) for part in parts if part.isdecimal())


def _find_uncomputed(text: str, known: Collection[float]) -> tuple[str, ...]:
    """Return the numbers that are neither known nor computed from numbers in the same text."""
    numbers, unknown = _select(text, known)
    if not unknown:
        return ()
    stated = _values_among(numbers, known)
    computed = {*_compute(stated, stated), *_convert(stated), _add_up(numbers, unknown)}
    return _without_computed(unknown, computed)


def _select(text: str, known: Collection[float]) -> tuple[tuple[Number, ...], list[Number]]:
    """Return all numbers in the text, and the numbers that are not known."""
    numbers = numbers_of(text)
    return numbers, [number for number in numbers if not number.is_among(known)]


def _values_among(numbers: Iterable[Number], known: Collection[float]) -> frozenset[float]:
    return frozenset(value for number in numbers for value in number.values if value in known)


def _add_up(numbers: Iterable[Number], unknown: Collection[Number]) -> float:
    return sum(max(number.values, default=0) for number in numbers if number not in unknown)


def _without_computed(unknown: Iterable[Number], computed: Collection[float]) -> tuple[str, ...]:
    left = (number.text for number in unknown if not _is_among(number.values, computed))
    return tuple(dict.fromkeys(left))


def _compute(left_values: Iterable[float], right_values: Iterable[float]) -> Iterator[float]:
    """Yield the results of one arithmetic operation on one number from each collection."""
    right_operands = sorted(set(right_values) - {1.0})[:_MOST_OPERANDS]
    for first in sorted(set(left_values) - {1.0})[:_MOST_OPERANDS]:
        for second in right_operands:
            yield from (first + second, abs(first - second), first * second, first * second / 100)
            if second:
                yield from (first / second, first / second * 100)
            if first:
                yield from (second / first, second / first * 100)


def _convert(values: Iterable[float]) -> Iterator[float]:
    for value in values:
        for factor in _UNITS:
            yield value * factor
            if value and not value % factor:
                yield value / factor


def _is_among(values: Iterable[float], computed: Collection[float]) -> bool:
    rounded = {round(value, 2) for value in computed} | {float(round(value)) for value in computed}
    return any(value in rounded for value in values)


def _read_number(match: re.Match[str]) -> Number:
    written = match["number"]
    text = f"{match['before']}{written}" if match["before"].strip("-") else written
    date = _DATE.fullmatch(written)
    parts = () if date is None else (float(part) for part in date.groups() if int(part) > 12)
    return Number(text, frozenset(_values(written)), frozenset(parts))


def _values(written: str) -> Iterator[float]:
    if written.isdecimal():
        yield float(written)
        return
    if _THOUSANDS.fullmatch(written):
        yield float("".join(sign for sign in written if sign.isdecimal()))
    decimal = re.sub(r"['\u2019\u00a0\u202f ]", "", written).replace(",", ".")
    whole, _, fraction = decimal.rpartition(".")
    plain = f"{whole.replace('.', '')}.{fraction}"
    is_thousands = _THOUSANDS.fullmatch(written) and not fraction.strip("0")
    is_decimal = decimal.count(".") == 1 or _THOUSANDS.fullmatch(whole)
    if ":" not in plain and is_decimal and not is_thousands:
        yield float(plain)
    if time := _TIME.fullmatch(written):
        yield from _read_time(int(time[1]), int(time[2]))
    if written.count(".") > 1 or ":" in written:
        # Versions, IP addresses and times are equal only if all parts are.
        parts = [int(part) for part in re.split(r"\D+", written)]
        yield float(sum(part * 1_000_003**at for at, part in enumerate(parts, start=2)))


def _read_time(hour: int, minute: int) -> Iterator[float]:
    if hour < 25 and minute < 60:
        # 21:00 is also 9 p.m.; this encoding never equals a plain number.
        yield float(1_000_003**2 * hour + 1_000_003**3 * minute)
        if not minute:
            yield from (float(hour), float((hour - 1) % 12 + 1))


def _find_months(text: str) -> Iterator[int]:
    """Yield the positions of the month numbers in ISO dates."""
    for date in _ISO_DATE.finditer(text):
        yield date.start(1)


def _ascii_digits(text: str) -> str:
    if text.isascii():
        return text
    return "".join(
        str(unicodedata.decimal(sign)) if sign.isdecimal() and not sign.isascii() else sign
        for sign in text
    )


def _words(text: str) -> Iterator[str]:
    return (word for word in _WORD.findall(text.casefold()))
