"""Narrows down languages by script, and by letters that only few languages use."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from envelope.texts import TRADITIONAL_CHINESE, choose_texts_language, primary_of
from knowledge.language.port import Detection
from knowledge.language.protecting import natural

_RANGES = (
    # first, last, script
    (0x0041, 0x024F, "latin"),
    (0x0250, 0x02AF, "latin"),
    (0x0370, 0x03FF, "greek"),
    (0x0400, 0x052F, "cyrillic"),
    (0x0530, 0x058F, "armenian"),
    (0x0590, 0x05FF, "hebrew"),
    (0x0600, 0x06FF, "arabic"),
    (0x0750, 0x077F, "arabic"),
    (0x0900, 0x097F, "devanagari"),
    (0x0980, 0x09FF, "bengali"),
    (0x0A00, 0x0A7F, "gurmukhi"),
    (0x0A80, 0x0AFF, "gujarati"),
    (0x0B80, 0x0BFF, "tamil"),
    (0x0C00, 0x0C7F, "telugu"),
    (0x0C80, 0x0CFF, "kannada"),
    (0x0D00, 0x0D7F, "malayalam"),
    (0x0D80, 0x0DFF, "sinhala"),
    (0x0E00, 0x0E7F, "thai"),
    (0x0E80, 0x0EFF, "lao"),
    (0x1000, 0x109F, "burmese"),
    (0x10A0, 0x10FF, "georgian"),
    (0x1100, 0x11FF, "hangul"),
    (0x1200, 0x137F, "ethiopic"),
    (0x1780, 0x17FF, "khmer"),
    (0x1E00, 0x1EFF, "latin"),
    (0x1F00, 0x1FFF, "greek"),
    (0x3040, 0x30FF, "kana"),
    (0x3130, 0x318F, "hangul"),
    (0x31F0, 0x31FF, "kana"),
    (0x3400, 0x4DBF, "han"),
    (0x4E00, 0x9FFF, "han"),
    (0xAC00, 0xD7AF, "hangul"),
    (0xF900, 0xFAFF, "han"),
    (0xFF21, 0xFF5A, "latin"),
    (0xFF66, 0xFF9D, "kana"),
)
LANGUAGES_OF_SCRIPT: dict[str, tuple[str, ...]] = {
    "greek": ("el",),
    "cyrillic": ("ru", "uk", "bg", "be", "sr", "mk", "kk", "mn"),
    "armenian": ("hy",),
    "hebrew": ("he",),
    "arabic": ("ar", "fa", "ur"),
    "devanagari": ("hi", "mr", "ne"),
    "bengali": ("bn",),
    "gurmukhi": ("pa",),
    "gujarati": ("gu",),
    "tamil": ("ta",),
    "telugu": ("te",),
    "kannada": ("kn",),
    "malayalam": ("ml",),
    "sinhala": ("si",),
    "thai": ("th",),
    "lao": ("lo",),
    "burmese": ("my",),
    "georgian": ("ka",),
    "hangul": ("ko",),
    "ethiopic": ("am",),
    "khmer": ("km",),
    "kana": ("ja",),
    "han": ("zh", "ja"),
}
"""The languages written in each script except the Latin one."""

LATIN = (
    "en", "de", "es", "fr", "it", "pt", "nl", "sv", "da", "no", "fi", "pl", "cs", "sk", "hu", "ro",
    "tr", "vi", "id", "hr", "sl", "ca", "et", "lv", "lt", "sw", "af",
)  # fmt: skip
CANDIDATES = tuple(
    dict.fromkeys((*LATIN, *(name for names in LANGUAGES_OF_SCRIPT.values() for name in names)))
)
"""The languages that can be detected (ISO 639-1); both forms of Norwegian are `no`."""

FOREIGN_SHARE = 0.09
"""Minimum share of letters at which a script other than Latin is decisive; Latin words in such a
text are terms.
"""

_WEIGHT = {"han": 3.0, "kana": 2.0, "hangul": 2.5}
"""The number of letters to which one character of the script is equivalent."""

_JAPANESE_HAN = frozenset(
    "込働畑峠枠匂図実対発応検単変戻択処拡価仮売読続関経済覧駅黒伝転両亜悪囲営沢浜巻毎歩児剣剤労勲"
    "駆県顕権広鉱雑桟賛歯釈従渋獣縦粛焼奨浄畳譲嬢髄瀬戦銭繊荘捜挿巣騒増蔵臓帯滞滝団弾遅鋳聴鎮逓鉄"
    "稲闘徳届脳覇拝廃髪抜払仏辺穂豊満黙訳薬揺様謡頼竜塁歴録悩弐円気"
)
"""Forms of characters that exist in Japanese but in neither simplified nor traditional Chinese."""

_SPECIAL = {
    "ru": "ыэёъщ",
    "uk": "ґєіїщ",
    "be": "ўіыэё",
    "bg": "ъщ",
    "sr": "ђћџјљњ",
    "mk": "ѓќѕјљњџ",
    "kk": "әғқңөұүһіыэёъщ",
    "mn": "өүыэёъщ",
    "ar": "ةيكىأإؤئآ",
    "fa": "پچژگکیئآأؤ",
    "ur": "ٹڈڑںےہھپچژگکیئآؤۓ",
    "hi": "",
    "mr": "ळ",
    "ne": "",
    "en": "",
    "de": "äöüß",
    "es": "áéíóúüñ",
    "fr": "àâæçèéêëîïôùûüœ",
    "it": "àèéìòù",
    "pt": "àáâãçéêíóôõú",
    "nl": "éëïèö",
    "sv": "åäöé",
    "da": "åæøé",
    "no": "åæøéòô",
    "fi": "äöå",
    "pl": "ąćęłńóśźż",
    "cs": "áčďéěíňóřšťúůýž",
    "sk": "áäčďéíĺľňóôŕšťúýž",
    "hu": "áéíóöőúüű",
    "ro": "ăâîșțşţ",
    "tr": "çğıöşüâîi̇",
    "vi": "",
    "id": "",
    "hr": "čćđšž",
    "sl": "čšž",
    "ca": "àçèéíïòóúü·",
    "et": "äõöüšž",
    "lv": "āčēģīķļņšūž",
    "lt": "ąčęėįšųūž",
    "sw": "",
    "af": "êëéèôû",
}
"""The letters of each language in addition to the basic letters of its script."""

_SPECIAL_LETTERS = frozenset("".join(_SPECIAL.values()))
_NOT_VI = _SPECIAL_LETTERS.difference("àáâãèéêìíòóôõùúýăđ")


@dataclass(frozen=True, slots=True)
class Undecided:
    """A text in a script that several languages use."""

    words: str
    """The text without code, addresses, and markup."""
    script: str
    possible: tuple[str, ...]
    """At least two languages (ISO 639-1)."""


def script_of(text: str) -> str | None:
    """Return the decisive script of `text`, or None if it contains no letter of a known script."""
    counts: Counter[str] = Counter()
    for letter in text:
        script = _script(letter) if letter.isalpha() or not letter.isascii() else None
        if script is not None:
            counts[script] += 1
    weighed = {script: n * _WEIGHT.get(script, 1.0) for script, n in counts.items()}
    foreign = {script: weight for script, weight in weighed.items() if script != "latin"}
    if foreign and sum(foreign.values()) >= FOREIGN_SHARE * sum(weighed.values()):
        if foreign.get("kana") and "han" in foreign:
            return "kana"
        return max(sorted(foreign), key=foreign.__getitem__)
    return "latin" if counts["latin"] else None


def in_script(text: str, script: str) -> str:
    """Return the words in `text` that contain a letter of `script`."""
    return " ".join(word for word in text.split() if any(_script(c) == script for c in word))


def filter_by_script(script: str, text: str, allowed: Sequence[str]) -> tuple[str, ...]:
    """Return the `allowed` languages whose script occurs, or all of them if none does."""
    if script == "han" and "ja" in allowed and not _JAPANESE_HAN.isdisjoint(text):
        return ("ja",)
    names = LATIN if script == "latin" else LANGUAGES_OF_SCRIPT[script]
    return tuple(name for name in names if name in allowed) or tuple(allowed)


def missing_letters(text: str) -> dict[str, int]:
    """Return, for each language, the number of distinct letters in `text` that it does not use."""
    special = _SPECIAL_LETTERS.intersection(text.lower())
    return {
        language: len(special.difference(own)) if language != "vi" else len(special & _NOT_VI)
        for language, own in _SPECIAL.items()
    }


def choose_script(language: str, texts: Iterable[str], known: str = "") -> str:
    """Return the language of the fixed texts for a person or a page in `language`; for Chinese,
    this includes the script.

    It is determined by the first of `texts` that shows its script or, if none does, by the language
    of texts that is `known`.
    """
    if language != primary_of(TRADITIONAL_CHINESE):
        return language
    scripts = (is_traditional(text) for text in texts)
    chosen = next((script for script in scripts if script is not None), None)
    if chosen is None:
        return choose_texts_language(language, known)
    return TRADITIONAL_CHINESE if chosen else language


def is_traditional(text: str) -> bool | None:
    """Return whether the Chinese characters in a text are traditional, or None if they are the same
    in both forms.

    A character that exists in only one form is in only one of the character sets of Taiwan and
    China.
    """
    written = [letter for letter in text if _script(letter) == "han"]
    traditional, simplified = (
        sum(_has(one, letter) and not _has(other, letter) for letter in written)
        for one, other in (("big5", "gb2312"), ("gb2312", "big5"))
    )
    return None if traditional == simplified else traditional > simplified


def most_expected(prior: Mapping[str, float] | None, allowed: Sequence[str]) -> str:
    """Return the most likely language for a text without evidence."""
    expected = {name: weight for name, weight in (prior or {}).items() if name in allowed}
    if expected:
        return max(expected, key=expected.__getitem__)
    return "en" if "en" in allowed else allowed[0]


def decide_by_script(
    text: str, prior: Mapping[str, float] | None, allowed: Sequence[str]
) -> Detection | Undecided:
    """Return the language of `text` if its script is decisive, or its script and the candidates.

    A text without letters has the most likely language in `prior`, with confidence 0.
    """
    words = natural(text)
    script = script_of(words)
    if script is None:
        return Detection(most_expected(prior, allowed), 0.0)
    possible = filter_by_script(script, words, allowed)
    if len(possible) == 1:
        return Detection(possible[0], 1.0)
    return Undecided(words, script, possible)


@lru_cache(maxsize=4_096)
def _script(letter: str) -> str | None:
    code = ord(letter)
    for first, last, script in _RANGES:
        if first <= code <= last:
            return script
    return None


@lru_cache(maxsize=8_192)
def _has(character_set: str, letter: str) -> bool:
    try:
        letter.encode(character_set)
    except UnicodeEncodeError:
        return False
    return True
