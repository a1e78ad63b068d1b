"""Returns the address of a source: its page's own address, or one in the documentation.

Addresses of pages come from documents: a relative address, one with a scheme other than the web's,
and one with a user name are rejected.
"""

import re
from collections.abc import Callable
from urllib.parse import quote

from broker.values import Fields
from citations.addresses import page_of

Opens = Callable[[Fields], str | None]
"""Returns the address of a source of a reply at its heading, or None."""
REPORT_OF = "report_of"
"""In place of a source: the id of the message whose report is opened."""
PICTURE = "picture"
"""The id of a picture of the source's document, which is opened in place of the document."""
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,8}\Z")
_IN_ANCHOR = "!$&'()*+,;=:@/?-._~"


def opens_in(documentation: str) -> Opens:
    """Return a function that returns the address of a source.

    `documentation` is a base address, below which pages have the paths of their files, or a
    template with `{path}`, `{page}` (the path without its ending) and `{anchor}`. If it is empty,
    only sources with an address of a page have one.
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
    """Return an address with its heading, unless it already has one."""
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
