"""Light stems of Czech, Slovak and Polish words, and infinitives of German participles.

The endings of cases, persons and verbal nouns are cut, the longest first, as long as three letters
stay; what stays is made equal where a language alternates it (k and c, h and z, ou and u). Words
have no accents here. A stem is only compared with others, so it need not be a word. German
participles, which its stemmer leaves as they are, become infinitives.
"""

import re
from collections.abc import Mapping

_CZECH = (
    "ovavani ovavat ovanim ovavaji ovavame ovava ovani ovaneho ovanych ovana ovano ovany ovat "
    "ovali ovala oval uji ujeme uje avani avat avaji avame avana avano avany ava ani anim ana "
    "ano any ane anych aneho ata ate at aji ali ala al eni enim ena eno eny ene enych eneho "
    "eti eji et it il ila ili ho iho imi imu eho emu ymi ym ych ami ach ech ich em im um am "
    "ovi ove ou ejsi a e i o u y"
)
_SLOVAK = (
    "ovanie ovania ovaniu ovanim ovat ovana ovane ovany oval ovala ovali ujeme uju uje avanie "
    "avania avat avaju ava anie ania aniu anim ana ane any anych at aju ali ala al enie enia "
    "eniu enim ena ene eny enych et eju it ia ieho iemu imi eho emu ymi ym ych ich ami ach "
    "och iach om im am iam ovi ove ov ej ou iu a e i o u y"
)
_POLISH = (
    "owywanie owywania owywac owania owaniu owanie owany owana owane owac uje uja ywanie "
    "ywania ywac ania aniu anie any ana ane anych ac aja al ala ali enia eniu enie eni ony "
    "ona one onych ic yc ec iego iemu iej ego emu ymi imi ych ich ym im ami iami ach iach om "
    "iom owi owie ow iem em ia ie iu ej a e i o u y"
)


def _order(endings: str) -> tuple[str, ...]:
    return tuple(sorted(set(endings.split()), key=lambda one: (-len(one), one)))


_ENDINGS: Mapping[str, tuple[str, ...]] = {
    "cs": _order(_CZECH),
    "sk": _order(_SLOVAK),
    "pl": _order(_POLISH),
}
_LEAST = 3
_LEAST_OF_LONG = 4
"""What an ending of three letters or more leaves: "oznámí" is no instrumental case."""
_WHOLE = frozenset({"zaznam", "program", "system", "problem"})
"""Nouns that seem to have an ending."""
_SHORT = 4
"""Words of so few letters are kept: a cut would make different words equal."""
_LAST = {"c": "k", "z": "h"}
_VOWELS = frozenset("aeiouy")


_PREFIX = (
    "(?:ab|an|auf|aus|bei|durch|ein|fest|frei|her|hin|mit|nach|offen|vor|weg|weiter|zu|zurück)"
)
_GE_VERBS = "eign|fähr|hör|lang|nehm|nüg|statt|währ|wöhn"
"""Verbs that always begin with "ge", such as "genehmigen"."""
_PARTICIPLE = re.compile(
    rf"\b({_PREFIX}?)ge(?!{_GE_VERBS})([a-zäöüß]{{3,}}?)e?t\b"
    rf"|\b({_PREFIX})ge(?!{_GE_VERBS})([a-zäöüß]{{3,}})en\b"
    rf"|\b(ge(?:{_GE_VERBS})[a-zäöüß]*?)e?t\b"
    r"|\b([a-zäöüß]{4,})et\b"
    rf"|\b({_PREFIX}?(?:be|er|ent|ver|zer)[a-zäöüß]{{3,}}?)t\b"
)


def undo_participles(text: str) -> str:
    """Return a German text with participles, and forms in "-et", as infinitives.

    Nouns have a capital and are kept.
    """
    return _PARTICIPLE.sub(lambda one: "".join(filter(None, one.groups())) + "en", text)


def has_light_stems(language: str) -> bool:
    """Return whether words of a language are cut here."""
    return language in _ENDINGS


def cut_ending(word: str, language: str) -> str:
    """Return the stem of a word in lower case without accents; other languages keep it."""
    endings = _ENDINGS.get(language)
    if endings is None or len(word) <= _SHORT or not word.isalpha() or word in _WHOLE:
        return word
    ending = next((one for one in endings if word.endswith(one) and _is_long(word, one)), "")
    return _make_equal(word[: len(word) - len(ending)].replace("ou", "u"))


def _is_long(word: str, ending: str) -> bool:
    least = _LEAST if len(ending) < _LEAST else _LEAST_OF_LONG
    return len(word) - len(ending) >= least


def _make_equal(stem: str) -> str:
    stem = stem[:-1] + _LAST.get(stem[-1], stem[-1])
    is_moving = len(stem) > _SHORT and stem[-2] == "e" and stem[-1] not in _VOWELS
    return stem[:-2] + stem[-1] if is_moving and stem[-3] not in _VOWELS else stem
