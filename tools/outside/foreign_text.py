"""Makes texts of others fit to be shown to a model: bounded, and without characters nobody sees."""

import re

from envelope.hidden_characters import remove_hidden_characters

MOST_DESCRIPTION = 1_000
MOST_RESULT = 200_000
"""Characters of a result that are kept; the executor shortens them further for a model."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str, longest: int) -> str:
    """Return at most `longest` characters of a text, without controls and hidden characters."""
    visible = remove_hidden_characters(_CONTROLS.sub("", text[: 2 * longest]))
    return visible if len(visible) <= longest else f"{visible[: longest - 1]}…"


def clean_line(text: str, longest: int) -> str:
    """Return a cleaned text on one line."""
    return clean(" ".join(text.split()), longest)
