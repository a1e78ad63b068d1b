"""Encloses untrusted text in a data block of a prompt, which the text can neither close nor
imitate.
"""

import re

from envelope.encoding import remove_hidden_characters

# Also matches the full-width sign, and invisible characters in between.
_FENCE = re.compile(
    "[<\uff1c\ufe64](?=[\\s/\\\\\u00ad\u034f\u180e\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]*data)",
    re.IGNORECASE,
)
_BLOCK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _-]*")


def fence(text: str, name: str) -> str:
    """Return the text inside a data block that it can neither close nor imitate.

    Hidden characters are removed, and every `<` that could start a `data` tag is escaped. Raises
    `ValueError` for an invalid name.
    """
    if not _BLOCK_NAME.fullmatch(name):
        raise ValueError(f"expected a block's name of letters and digits, found {name!r}")
    seen = remove_hidden_characters(text)
    return f'<data name="{name}">\n{_FENCE.sub("&lt;", seen)}\n</data>'
