"""Checks clarifications and refusals written by a model, which no judge compares with sources.

A text is withheld if it contains a link, address, or telephone number that is not in the input, a
request for a secret, or a part of the prompt.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from citations.claims import sentences
from citations.facts import KnownNumbers
from citations.links import REMOVED_ADDRESS, Allowed, keep_links, plain_line
from citations.marking import remove_marks
from envelope.texts import Texts

_SECRETS = """
password passwords passphrase passcode pin cvv cvc otp credentials token secret iban ssn
passwort passworte passwörter kennwort zugangsdaten geheimzahl kreditkarte kontonummer
contraseña contraseñas clave credenciales tarjeta
identifiants motdepasse
parola credenziali carta
senha senhas credenciais cartão
пароль пароля паролем пин логин карты карту
паролі картку картки
密码 口令 验证码 银行卡 卡号
パスワード 暗証番号 認証コード カード番号
المرور
पासवर्ड पिन ओटीपी
"""
# Python does not count combining marks (Arabic vowels, Devanagari vowel signs) as word characters.
_MARKS = "\u0300-\u036f\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0962\u0963"
_SIGNS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"[{_SIGNS}]+|(?:(?![{_SIGNS}])(?:[^\W_]|[{_MARKS}]))+")
_UNSPACED = re.compile(rf"[{_SIGNS}]")
_STEM_LETTERS = 6
"""The minimum number of letters of a stem. Shorter words match only as a whole, or with a
plural `s`: `pin` does not match `pinned`.
"""
_ALL = tuple(_WORD.findall(unicodedata.normalize("NFKC", _SECRETS).casefold()))
_ANYWHERE = tuple(word for word in _ALL if _UNSPACED.match(word))
_SPACED = frozenset(_ALL) - frozenset(_ANYWHERE)
_WHOLE = frozenset(word.removesuffix("s") for word in _SPACED if len(word) < _STEM_LETTERS)
_BEGINNINGS = tuple(
    word[: max(_STEM_LETTERS, len(word) - 2)]
    for word in sorted(_SPACED)
    if len(word) >= _STEM_LETTERS
)
"""The stems of longer words: all but the last two letters."""

_PROMPT_MARKS = ("<data name=", "</data>")
_TELEPHONE = re.compile(r"\d(?:[ ()./-]{0,3}\d){6}")
LONGEST_CHARACTERS = 200


def find_secret_words(text: str, known_text: str = "") -> frozenset[str]:
    """Return the stems of words for secrets that are in `text` but not in `known_text`."""
    return frozenset(_find_stems(text)).difference(_find_stems(known_text))


def find_asking_fault(text: str, known_text: str) -> str:
    """Return why the text must not be shown to the user, or an empty string if it may be shown.

    `known_text` contains the user's messages and fixed texts, which may be repeated.
    """
    hosts = frozenset(word.strip(".,;:!?()\"'“”«»") for word in known_text.split())
    bare = frozenset(word for word in hosts if "/" not in word and "@" not in word)
    if removed := keep_links(text, Allowed(held=bare)).removed:
        return f"it contains {removed[0]!r}"
    if any(mark in text for mark in _PROMPT_MARKS):
        return "it repeats a prompt"
    if any(number not in known_text for number in _TELEPHONE.findall(text)):
        return "it contains a telephone number"
    if secrets := find_secret_words(text, known_text):
        return f"it asks for a secret: {min(secrets)}"
    return ""


def check_missing(missing: str, given: Sequence[str]) -> str:
    """Return the missing part of an answer on one line, or an empty string if it must not be shown.

    `given` contains the question and the sources.
    """
    line = plain_line(remove_marks(missing))
    if not line or len(line) > LONGEST_CHARACTERS or len(list(sentences(line))) > 1:
        return ""
    if keep_links(missing, Allowed(any_host=True)).removed or KnownNumbers(given).find_unknown(
        line
    ):
        return ""
    if find_secret_words(line, "\n".join(given)):
        return ""
    return line


def list_notices(
    text: str, texts: Texts, language: str, *, is_cut: bool, lacks: str | None, unjudged: str | None
) -> list[str]:
    """Return the notices about an answer for its reader. Each is on one line, so that a fixed text
    cannot open a list or a fence.

    `lacks` is the information that the writer did not find, as returned by `check_missing`.
    `unjudged` is the reason why the judge gave no verdict (see `llm.errors.REASONS`). It is empty
    if there is no judge, or if the question ended before a verdict, and None for a judged answer.
    """

    def look_up(key: str, **values: str) -> str:
        return " ".join(texts.text(key, language, **values).split())

    notices = [look_up("left_out")] if is_cut else []
    if REMOVED_ADDRESS in text:
        notices.append(look_up("address_removed"))
    if lacks:
        notices.append(look_up("missing_part", missing=lacks.rstrip(".\u3002")))
    elif lacks is not None:
        notices.append(look_up("missing_something"))
    if unjudged:
        notices.append(look_up("not_judged", reason=look_up(f"reason_{unjudged}")))
    elif unjudged is not None:
        notices.append(look_up("not_yet_judged"))
    return [notice for notice in notices if notice not in text]


def _find_stems(text: str) -> Iterator[str]:
    """Yield the stems of words for secrets that start a word of `text`.

    Short words must match as a whole, apart from a plural `s`. In scripts without spaces, any
    occurrence counts.
    """
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _UNSPACED.match(word):
            yield from (secret for secret in _ANYWHERE if secret in word)
        elif word.removesuffix("s") in _WHOLE:
            yield word.removesuffix("s")
        elif word.startswith(_BEGINNINGS):
            yield next(stem for stem in _BEGINNINGS if word.startswith(stem))
