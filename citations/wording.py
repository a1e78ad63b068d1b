"""Checks texts in which a model asks a person or declines, which no judge compares with sources. A
rule withholds a text with a link, an address or a telephone number that does not come from the
input, a request for a secret, or a part of the prompt.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from citations.claims import sentences
from citations.facts import KnownNumbers
from citations.links import Allowed, keep_links, plain_line
from citations.marking import remove_marks

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
# Python counts combining marks (Arabic vowels, Devanagari vowel signs) as no part of a word.
_MARKS = "\u0300-\u036f\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0962\u0963"
_SIGNS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"[{_SIGNS}]+|(?:(?![{_SIGNS}])(?:[^\W_]|[{_MARKS}]))+")
_UNSPACED = re.compile(rf"[{_SIGNS}]")
_STEM_LETTERS = 6


def find_secret_words(text: str, known_text: str = "") -> frozenset[str]:
    """Return the words for a secret in `text` that `known_text` does not have, cut to a stem."""
    return frozenset(SECRET_STEMS.intersection(_stems(text)).difference(_stems(known_text)))


def _stems(text: str) -> Iterator[str]:
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _UNSPACED.match(word):
            yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))
        else:
            yield word[:_STEM_LETTERS].removesuffix("s")


SECRET_STEMS = frozenset(_stems(_SECRETS))


_PROMPT_MARKS = ("<data name=", "</data>")
_TELEPHONE = re.compile(r"\d(?:[ ()./-]{0,3}\d){6}")


def find_asking_fault(text: str, known_text: str) -> str:
    """Return why a person must not be asked this, or an empty text.

    `known_text` is what the person wrote, and what is fixed: words of it may be repeated.
    """
    hosts = frozenset(word.strip(".,;:!?()\"'“”«»") for word in known_text.split())
    bare = frozenset(word for word in hosts if "/" not in word and "@" not in word)
    if removed := keep_links(text, Allowed(held=bare)).removed:
        return f"it contains {removed[0]!r}"
    if any(mark in text for mark in _PROMPT_MARKS):
        return "it repeats a prompt"
    if any(found not in known_text for found in _TELEPHONE.findall(text)):
        return "it contains a telephone number"
    if secrets := find_secret_words(text, known_text):
        return f"it asks for a secret: {min(secrets)}"
    return ""


LONGEST_CHARACTERS = 200


def check_missing(missing: str, given: Sequence[str]) -> str:
    """Return a missing part on one line, or an empty text if a user must not read it.

    `given` are the question and the sources.
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
