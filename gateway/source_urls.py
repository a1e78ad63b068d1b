"""Says where a source opens: at its page's own address, else in the organisation's documentation.

Addresses of pages come from documents: a relative one, one without a web's scheme, and one with a
name before its host, is none.
"""

import re
from collections.abc import Callable
from urllib.parse import quote

from broker.values import Fields
from citations.addresses import page_of

Opens = Callable[[Fields], str | None]
"""Returns the address that opens a source of a reply at its heading; None: there is none."""
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,8}\Z")
_IN_ANCHOR = "!$&'()*+,;=:@/?-._~"


def opens_in(documentation: str) -> Opens:
    """Return what opens sources in a documentation; empty: only those with their own address.

    `documentation` is a base address, below which pages stand under the paths of their files, or a
    template of `{path}`, `{page}` (the path without its ending) and `{anchor}`.
    """

    def opens(source: Fields) -> str | None:
        url, path, anchor = (_text(source, name) for name in ("url", "path", "anchor"))
        if page_of(url) is not None:
            return at(url, anchor)
        if not documentation or not path:
            return None
        return _fill_template(documentation, path, anchor)

    return opens


def at(address: str, anchor: str) -> str:
    """Return an address with its heading, unless it names one already."""
    if not anchor or "#" in address:
        return address
    return f"{address}#{quote(anchor, safe=_IN_ANCHOR)}"


def _fill_template(documentation: str, path: str, anchor: str) -> str:
    path = quote(path, safe="/")
    if "{" not in documentation:
        return at(f"{documentation.rstrip('/')}/{path}", anchor)
    filled = (
        documentation.replace("{path}", path)
        .replace("{page}", _ENDING.sub("", path))
        .replace("{anchor}", quote(anchor, safe=_IN_ANCHOR))
    )
    return filled if "{anchor}" in documentation else at(filled, anchor)


def _text(source: Fields, name: str) -> str:
    value = source.get(name)
    return value if isinstance(value, str) else ""
