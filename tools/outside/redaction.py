"""Hides the secrets that the operator configured for an outside tool in what the tool returns."""

import re
from collections.abc import Callable, Mapping

HIDDEN = "[hidden]"
_SHORTEST = 4
_SHORTEST_INSIDE = 8
"""Characters from which a secret is hidden inside of words, too."""


def make_redaction(*configured: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that hides the values of headers and of variables of the environment.

    Of `Bearer abc` the last word is hidden as well, because a server may quote it alone.
    """
    values = [value.strip() for one in configured for value in one.values()]
    words = {word for value in values for word in (value, value.rpartition(" ")[2])}
    secrets = sorted((one for one in words if len(one) >= _SHORTEST), key=len, reverse=True)
    if not secrets:
        return str
    pattern = re.compile("|".join(map(_match, secrets)))
    return lambda text: pattern.sub(HIDDEN, text)


def _match(secret: str) -> str:
    exact = re.escape(secret)
    return exact if len(secret) >= _SHORTEST_INSIDE else rf"(?<!\w){exact}(?!\w)"
