"""Lists phrases in thirteen languages: to stop, to skip, to choose, to refer back and to greet.

The lists are in `phrases.toml`; they are read once.
"""

import tomllib
from pathlib import Path

_LISTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

EXIT = frozenset[str](_LISTS["exit"])
SKIP = frozenset[str](_LISTS["skip"])
ORDINALS = tuple(frozenset[str](names) for names in _LISTS["ordinals"])
LAST = frozenset[str](_LISTS["last"])
AROUND_A_CHOICE = frozenset[str](_LISTS["around_a_choice"])
POINTING = frozenset[str](_LISTS["pointing"].split())
POINTING_SIGNS = tuple[str, ...](_LISTS["pointing_signs"])
OPENERS = tuple[str, ...](_LISTS["openers"])
SMALL_TALK = frozenset[str](_LISTS["small_talk"])
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
