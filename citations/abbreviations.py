"""Distinguishes full stops in abbreviations and ordinal numbers from the ends of sentences.

All languages share one table, because many texts mix languages.
"""

import re

_ABBREVIATIONS = (
    "e.g i.e vs approx ca dr mr mrs ms prof st gen jr sr inc u.s z.b d.h u.a o.a bzw vgl sog inkl "
    "p.ex cf mme mlle sra dra srta ud uds av sig dott dhr mevr bijv t.ex esim "
    "np tzw tj inż ing např tzv resp т.е т.к т.н тыс ул вул напр bkz sn örn डॉ"
)
"""Abbreviations that never end a sentence; spaces between their letters are allowed."""
_BEFORE_NUMBER = r"[^\W\d_]{1,4}"
"""A short word with a full stop before a number is treated as an abbreviation: "art. 5", "ст.
5".
"""
_ORDINALS = (
    "der die das den dem des am im ins zum vom ab bis zur beim seit jedes jeder jeden dieses "
    "dne dnia"
)
"""Words that precede an ordinal number: "die 1. Klasse", "das 52. Lebensjahr"."""
_LONGEST = 14


def _join(words: str) -> str:
    return "|".join(re.escape(word).replace(r"\.", r"\. ?") for word in words.split())


_ANYWHERE = re.compile(
    rf"(?:^|[\s(])(?:{_join(_ABBREVIATIONS)}|[^\W\d_]|(?:{_join(_ORDINALS)})\s\d{{1,2}})\.\Z",
    re.IGNORECASE,
)
_NUMBERED = re.compile(rf"(?:^|[\s('\u2019]){_BEFORE_NUMBER}\.\Z", re.IGNORECASE)


def ends_in_abbreviation(text: str, start: int, stop: int, after: int) -> bool:
    """Return whether the full stop before `stop` belongs to an abbreviation.

    The sentence begins at or after `start`; the following text begins at `after`.
    """
    tail = text[max(start, stop - _LONGEST) : stop]
    if _ANYWHERE.search(tail):
        return True
    return text[after : after + 1].isdigit() and _NUMBERED.search(tail) is not None
