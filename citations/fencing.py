"""Puts a text of others into a block of a prompt that the text can neither close nor imitate."""

import re

from envelope.encoding import remove_hidden_characters

# Also as a sign of full width, and with characters between that nobody sees.
_FENCE = re.compile(
    "[<\uff1c\ufe64](?=[\\s/\\\\\u00ad\u034f\u180e\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]*data)",
    re.IGNORECASE,
)
_BLOCK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _-]*")


def fence(text: str, name: str) -> str:
    """Return a text in a data block that it can neither close nor imitate.

    The text is unchanged, except for hidden characters and every `<` that could begin a `data` tag.
    Raises `ValueError` for a name that is more than letters and digits.
    """
    if not _BLOCK_NAME.fullmatch(name):
        raise ValueError(f"expected a block's name of letters and digits, found {name!r}")
    seen = remove_hidden_characters(text)
    return f'<data name="{name}">\n{_FENCE.sub("&lt;", seen)}\n</data>'
