"""Finds words for a secret, such as a password: no text of a model may ask a person for one."""

import re
import unicodedata
from collections.abc import Iterator

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
