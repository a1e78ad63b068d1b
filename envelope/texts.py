"""The port for fixed texts, and language tags.

Documents and questions have an ISO 639-1 language. Fixed texts have BCP 47 tags, which are the same
codes, plus `zh-Hant` in addition to `zh`.
"""

from collections.abc import Mapping
from typing import Protocol

TRADITIONAL_CHINESE = "zh-Hant"
_TRADITIONAL_SUBTAGS = frozenset({"hant", "tw", "hk", "mo"})
_WIDE_STOPS = ("\u3002", "\uff01", "\uff1f")
_SCRIPT_SUBTAGS = frozenset({"hans", "hant"})


_QUOTATION_MARKS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("de", "cs"), ("\u201e", "\u201c")),
    **dict.fromkeys(("fr",), ("\u00ab ", " \u00bb")),
    **dict.fromkeys(("es", "it", "ru", "uk", "ar"), ("\u00ab", "\u00bb")),
    **dict.fromkeys(("pl",), ("\u201e", "\u201d")),
    **dict.fromkeys(("ja", "zh-Hant"), ("\u300c", "\u300d")),
}
"""The opening and closing quotation marks by language, as used in the fixed texts; other languages
use the English ones.
"""


class Texts(Protocol):
    """Fixed texts by key, with English as the fallback language."""

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the texts, BCP 47."""
        ...

    def text(self, key: str, language: str, **values: str) -> str:
        """Return the text of `key` with its placeholders filled in."""
        ...


def put_in_quotes(text: str, language: str) -> str:
    """Return the text in the quotation marks of a language."""
    opening, closing = _QUOTATION_MARKS.get(language, ("\u201c", "\u201d"))
    return f"{opening}{text}{closing}"


def join_sentences(*sentences: str) -> str:
    """Join sentences with spaces, except in scripts without spaces between sentences."""
    joined = ""
    for sentence in filter(None, sentences):
        space = "" if not joined or joined.endswith(_WIDE_STOPS) else " "
        joined += space + sentence
    return joined


def explain_missing_answer(texts: Texts, reason: str, language: str) -> str:
    """Return the sentence that explains why no model wrote an answer; for `reason`, see
    `llm.errors`.

    The reasons `no_model` (none is configured) and `meanwhile` (still writing) are not failures.
    """
    if reason in ("no_model", "meanwhile"):
        return texts.text(f"passages_{reason}", language)
    return texts.text(
        "passages_no_answer", language, reason=texts.text(f"reason_{reason}", language)
    )


def read_tag(tag: str) -> str:
    """Return the language of fixed texts for a BCP 47 tag such as `de-AT` or `zh_TW`.

    This is the ISO 639 code, or `zh-Hant`; empty if the tag is invalid.
    """
    code, *subtags = tag.strip().lower().replace("_", "-").split("-")
    if not (2 <= len(code) <= 3 and code.isascii() and code.isalpha()):
        return ""
    named = _SCRIPT_SUBTAGS.intersection(subtags) or subtags
    is_traditional = code == "zh" and not _TRADITIONAL_SUBTAGS.isdisjoint(named)
    return TRADITIONAL_CHINESE if is_traditional else code


def primary_of(tag: str) -> str:
    """Return the language of a tag without its script, such as `zh` for `zh-Hant`."""
    return tag.partition("-")[0]


def choose_texts_language(language: str, texts_language: str) -> str:
    """Return the language of the texts around an answer in `language`.

    `texts_language` is used only if it is a variant of `language`.
    """
    return texts_language if primary_of(texts_language) == language else language
