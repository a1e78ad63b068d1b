"""Checks a model's statement of what it did not find before a user reads it.

No source can support it, so it is one line without links, without numbers that nobody gave, and
without words that ask for a secret.
"""

from collections.abc import Sequence

from citations.claims import sentences
from citations.links import Allowed, keep_links, plain_line
from citations.marking import remove_marks
from llm.answer_checks.facts import KnownNumbers
from llm.answer_checks.secret_words import find_secret_words

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
