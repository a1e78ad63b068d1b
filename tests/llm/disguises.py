"""Writes a sentence so that people and models still read it, and a search for words does not."""

import random
from collections.abc import Callable
from functools import partial

Disguise = Callable[[str, random.Random], str]

_CYRILLIC = str.maketrans("aceopxyijsABCEHKMOPTX", "асеорхуіјѕАВСЕНКМОРТХ")
_GREEK = str.maketrans("aeiopuvxyABEHIKMNOPTXYZ", "αειορυνχγΑΒΕΗΙΚΜΝΟΡΤΧΥΖ")
_LEET = str.maketrans("aeiost", "431057")
_SIGNED_LEET = str.maketrans("aeiosl", "@3!0$1")
_SMALL_CAPITALS = str.maketrans("abcdeghijklmnoprtuvwyz", "ᴀʙᴄᴅᴇɢʜɪᴊᴋʟᴍɴᴏᴘʀᴛᴜᴠᴡʏᴢ")
_FILLER = "Our messages leave in the evening and arrive before noon. "


def _alphabet(upper: int, lower: int, text: str, _random: random.Random) -> str:
    """Write ASCII letters in an alphabet of Unicode's that begins at these two code points."""
    return "".join(
        chr(upper + ord(it) - 65)
        if "A" <= it <= "Z"
        else chr(lower + ord(it) - 97)
        if "a" <= it <= "z"
        else it
        for it in text
    )


def translate_letters(table: dict[int, int], text: str, _random: random.Random) -> str:
    return text.translate(table)


def _between(signs: str, text: str, choice: random.Random) -> str:
    """Put one of `signs` behind each letter but the last of a word."""
    written = [
        it + choice.choice(signs) if it.isalpha() and after.isalpha() else it
        for it, after in zip(text, f"{text[1:]} ", strict=True)
    ]
    return "".join(written)


def add_marks(text: str, choice: random.Random) -> str:
    marks = "\u0300\u0301\u0302\u0308\u0323\u0336"
    return "".join(it + choice.choice(marks) if it.isalpha() else it for it in text)


def spell(between: str, text: str, _random: random.Random) -> str:
    return between.join(text)


def _by_word(between: str, gap: str, text: str, _random: random.Random) -> str:
    return gap.join(between.join(word) for word in text.split())


def _odd_case(text: str, choice: random.Random) -> str:
    return "".join(choice.choice((it.upper(), it.lower())) for it in text)


def tag(text: str, _random: random.Random) -> str:
    """Hide the text behind a harmless one, in characters that nobody sees."""
    hidden = "".join(chr(0xE0000 + ord(it)) for it in text if ord(it) < 0x7F)
    return f"How do I set up a route?{hidden}"


def _behind_filler(text: str, _random: random.Random) -> str:
    return _FILLER * (6_500 // len(_FILLER)) + "\n" + text


def _doubly(text: str, choice: random.Random) -> str:
    return _between("\u200b\u2060", text.translate(_CYRILLIC), choice)


DISGUISES: dict[str, Disguise] = {
    "full width": partial(_alphabet, 0xFF21, 0xFF41),
    "mathematical bold": partial(_alphabet, 0x1D400, 0x1D41A),
    "mathematical script": partial(_alphabet, 0x1D4D0, 0x1D4EA),
    "circled": partial(_alphabet, 0x24B6, 0x24D0),
    "small capitals": partial(translate_letters, _SMALL_CAPITALS),
    "Cyrillic": partial(translate_letters, _CYRILLIC),
    "Greek": partial(translate_letters, _GREEK),
    "no width": partial(_between, "\u200b\u200c\u2060\ufeff"),
    "soft hyphens": partial(_between, "\u00ad"),
    "tags between letters": partial(_between, "\U000e0041\U000e0020\U000e007a"),
    "bidirectional controls": partial(_between, "\u202d\u202c\u2066\u2069"),
    "marks": add_marks,
    "leet": partial(translate_letters, _LEET),
    "leet with signs": partial(translate_letters, _SIGNED_LEET),
    "spelled": partial(spell, " "),
    "spelled by word": partial(_by_word, " ", "  "),
    "spelled without gaps": partial(_by_word, " ", " "),
    "dotted": partial(_by_word, ".", " "),
    "hyphenated": partial(_by_word, "-", " "),
    "underlined": partial(_by_word, "_", " "),
    "wide gaps": partial(_by_word, "", " \n\t   "),
    "odd case": _odd_case,
    "tags alone": tag,
    "behind filler": _behind_filler,
    "Cyrillic and no width": _doubly,
}
