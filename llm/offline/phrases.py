"""Lists words of thirteen languages that point back, connect, or carry no subject.

The lists are in `phrases.toml`; they are read once.
"""

import tomllib
from pathlib import Path

_LISTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

POINTING = frozenset[str](_LISTS["pointing"].split())
POINTING_SIGNS = tuple[str, ...](_LISTS["pointing_signs"])
OPENERS = tuple[str, ...](_LISTS["openers"])
FUNCTION_WORDS = frozenset[str](_LISTS["function_words"].split())
CONNECTING_WORDS = frozenset[str](_LISTS["connecting_words"].split())
SECRET_WORDS = frozenset[str](_LISTS["secret_words"].split())
QUESTION_WORDS = frozenset[str](_LISTS["question_words"].split())
CONJUNCTIONS = frozenset[str](_LISTS["conjunctions"].split())
AUXILIARIES = frozenset[str](_LISTS["auxiliaries"].split())
DETERMINERS = frozenset[str](_LISTS["determiners"].split())
ASKING_WORDS = frozenset[str](_LISTS["asking_words"].split())
KIND_WORDS = frozenset[str](_LISTS["kind_words"].split())
WEEKDAYS = frozenset[str](_LISTS["weekdays"].split())
MONTHS = {
    name: month for month, names in enumerate(_LISTS["months"], start=1) for name in names.split()
}
IRREGULAR_FORMS = {
    form: line.split()[0] for line in _LISTS["irregular_forms"] for form in line.split()[1:]
}
