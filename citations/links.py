"""Removes all links from a text except those to pages of its sources.

| in the text                                        | becomes                              |
|----------------------------------------------------|--------------------------------------|
| a link to the page of a source                     | a link to the source's own address   |
| its label, if it contains a different host         | the source's title                   |
| a link to an address that a source's text contains | its label, and the address as code   |
| a link to anywhere else                            | its label                            |
| an image                                           | its description                      |
| an address that a source's text contains           | code, which is never made a link     |
| an address composed of parts in one document       | code                                 |
| an address on a host that the user typed           | code                                 |
| any other address                                  | `[address removed]`                  |
| an HTML tag of an active element                    | nothing; the content is kept         |
| any other HTML tag with attributes, or a comment    | text, because its `<` is escaped     |
| an address in code                                 | unchanged as above, or `[address removed]` |

The result is parsed again as CommonMark. If a link to any other page remains, all links are
removed.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import groupby
from typing import TYPE_CHECKING
from urllib.parse import quote

from citations.addresses import (
    FoundAddress,
    addresses_of,
    find_addresses,
    fragment_of,
    host_of,
    origin_of,
    page_of,
)
from citations.composed_addresses import StatedParts
from citations.reading import (
    ACTIVE,
    brackets,
    definitions,
    fences,
    opening,
    restore,
    spans_aside,
    tags,
    unescape,
)
from envelope.encoding import remove_hidden_characters

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_HTML_TAG = re.compile(r"<\s*+(?:/\s*+)?([A-Za-z][A-Za-z0-9-]*)([^<>]*)")
_LINK_SIGNS = ("](", "][", "]:", "<")
_CITATION = r"\[\d{1,4}\](?![:(\[])"
_OPENING = re.compile(rf"(?P<cite>{_CITATION})|[\[\]<]")
LEFT_OUT = "\u2026"
REMOVED_ADDRESS = "[address removed]"
"""The replacement for an address that must not be shown. It is the same in every language; a notice
below the answer explains it.
"""
MOST_REMOVED = 20
LONGEST_REMOVED = 120
_ADDRESS = "address: "
_CONTROLS = dict.fromkeys((*range(9), *range(0x0B, 0x20), *range(0x7F, 0xA0)))
_DEEPEST = 6
_SIGNS = frozenset("[<.:/@\\&`")
"""A text without any of these characters does not contain links, addresses, or HTML."""
Shown = Callable[[FoundAddress], str]
"""Returns the replacement for an address."""
# Cached, because every draft of an answer needs the same sources again.
_addresses_of_source = lru_cache(maxsize=128)(addresses_of)
Base = str | tuple[str, ...]
"""The prefix of our own addresses, or several prefixes."""
_SAFE = "/#?&=.-_~%:+"
_CODED = re.compile(r"(?<!`)`([^`\s<>]{8,2000})`(?!`)")


@dataclass(frozen=True, slots=True)
class LinkedPage:
    """A page that an answer may link to."""

    address: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Allowed:
    """The pages that may be linked, and additional addresses that may be shown as code."""

    pages: Mapping[str, LinkedPage] = field(default_factory=dict)
    held: Collection[str] = frozenset()
    """Addresses that occur verbatim in a source."""
    origins: Collection[str] = frozenset()
    """Scheme, host, and port of the servers in the user's messages."""
    documents: Collection[StatedParts] = ()
    """The cited documents. An address may be composed of parts of one of them."""
    any_host: bool = False
    """Whether a bare host name may be shown, as in "Node.js" or "acme.com"."""

    def shows(self, address: str) -> bool:
        """Return whether an address may be shown as code."""
        if address in self.held or origin_of(address) in self.origins:
            return True
        return any(document.composes(address) for document in self.documents)


@dataclass(frozen=True, slots=True)
class Safe:
    """Text that contains only allowed links, and the parts that were removed from it."""

    text: str
    removed: tuple[str, ...] = ()


@dataclass(slots=True)
class _Keeper:
    allowed: Allowed
    removed: list[str] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)
    targets: dict[str, str] = field(default_factory=dict)

    def keep(self, text: str) -> str:
        parts = [(code, part) for code, part in _parts(text)]
        prose = [part if code else self._read(part) for code, part in parts]
        for target in self.targets.values():
            if page_of(target) not in self.allowed.pages:
                self.note("definition", target)
        kept = (
            self._fence(part) if code else self._paragraph(part)
            for (code, _), part in zip(parts, prose, strict=True)
        )
        return "\n".join(part for part in kept if part is not None)

    def note(self, kind: str, part: str) -> None:
        self.removed.append(f"{kind}: {part}"[:LONGEST_REMOVED])

    def _fence(self, fence: str) -> str:
        first, newline, rest = fence.partition("\n")
        return f"{opening(first)}{newline}{self._code(rest)}"

    def _read(self, paragraph: str) -> str:
        """Replace code spans with placeholders, and collect and remove link definitions."""
        return definitions(spans_aside(paragraph, self.aside, self._code), self.targets)

    def _paragraph(self, prose: str) -> str | None:
        """Return a paragraph with only allowed links, or None if nothing remains."""
        untagged = tags(unescape(prose), lambda tag: self.note("html", restore(tag, self.aside)))
        kept = self._addresses(brackets(untagged, self.targets, self._link))
        return restore(kept, self.aside) if kept.strip() or not prose.strip() else None

    def _link(self, label: str, target: str, is_image: bool, depth: int) -> str:
        page = None if is_image else self.allowed.pages.get(page_of(target) or "")
        if page is None and not is_image and target in self.allowed.held and page_of(target):
            shown = self._set_aside(f"`{target}`")
            return shown if label.strip() in ("", target) else f"{label} ({shown})"
        if page is None or depth > _DEEPEST:
            self.note("image" if is_image else "link", target)
            return f"[{label}]" if label.isdecimal() else label
        shown = self._label(restore(label, self.aside), page)
        fragment = fragment_of(target)
        address = page.address.partition("#")[0] if fragment else page.address
        written = f"[{shown}]({_write_address(address, fragment)})"
        return self._set_aside(written)

    def _set_aside(self, written: str) -> str:
        self.aside.append(written)
        return f"\0{len(self.aside) - 1}\0"

    def _label(self, label: str, page: LinkedPage) -> str:
        """Return a label. If it is empty or contains a different host, return the title or host of
        the page.
        """
        host = host_of(page.address)
        others = [address for address in find_addresses(label) if host_of(address.text) != host]
        if label.strip() and not others:
            return label
        if others:
            self.note("label", label)
        title = page.title.translate(str.maketrans("", "", "[]<>\\`")).strip()
        is_honest = all(host_of(address.text) == host for address in find_addresses(title))
        return title if title and is_honest else host

    def _addresses(self, prose: str) -> str:
        def show_address(address: FoundAddress) -> str:
            if page_of(address.text) in self.allowed.pages:
                return address.text
            if self.allowed.shows(address.text):
                return f"`{address.text}`"
            return self._remove(address)

        return self._replace(prose, show_address)

    def _code(self, code: str) -> str:
        def show_code(address: FoundAddress) -> str:
            if page_of(address.text) in self.allowed.pages or self.allowed.shows(address.text):
                return address.text
            return self._remove(address)

        return self._replace(code, show_code)

    def _remove(self, address: FoundAddress) -> str:
        self.removed.append(f"{_ADDRESS}{address.text}"[:LONGEST_REMOVED])
        return REMOVED_ADDRESS

    def _replace(self, text: str, shown: Shown) -> str:
        parts, copied_to = [], 0
        for address in find_addresses(text):
            parts += [text[copied_to : address.start], self._show(address, shown)]
            copied_to = address.end
        return "".join((*parts, text[copied_to:]))

    def _show(self, address: FoundAddress, shown: Shown) -> str:
        if address.bare and (self.allowed.any_host or address.text in self.allowed.held):
            return address.text
        return shown(address)


def is_free_of_foreign_links(text: str, pages: Collection[str]) -> bool:
    """Return whether all links lead to `pages`, and no other construct links to or loads
    content.
    """
    if not any(sign in text for sign in _LINK_SIGNS):
        return True
    return not any(_is_foreign(token, pages) for token in _iterate_tokens(_markdown().parse(text)))


def disarm(text: str) -> str:
    """Return the text without links, by escaping all brackets except those of citations."""
    plain = text.replace("\\", "").replace("](", "] (").replace("]:", "] :").replace("][", "] [")
    return _OPENING.sub(lambda sign: sign[0] if sign["cite"] else f"\\{sign[0]}", plain)


def allow(
    pages: Iterable[LinkedPage],
    *,
    held: Collection[str] = frozenset(),
    origins: Collection[str] = frozenset(),
    documents: Collection[StatedParts] = (),
    any_host: bool = False,
) -> Allowed:
    """Return the allowed links and addresses. Pages without a web URL are skipped."""
    by_page = ((page_of(page.address), page) for page in pages)
    known = {address: page for address, page in by_page if address is not None}
    return Allowed(known, held, origins, documents, any_host)


def addresses_held(texts: Iterable[str]) -> frozenset[str]:
    """Return the addresses in the texts of sources."""
    return frozenset().union(*map(_addresses_of_source, texts))


def clean_text(text: str) -> str:
    """Remove hidden and control characters, except line breaks and tabs."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return remove_hidden_characters(lines.translate(_CONTROLS))


def keep_links(text: str, allowed: Allowed) -> Safe:
    """Return a Markdown text with only allowed links, according to the table above."""
    keeper = _Keeper(allowed)
    clean = clean_text(text)
    kept = keeper.keep(clean)
    if not is_free_of_foreign_links(kept, allowed.pages):
        keeper.note("markdown", kept)
        kept = disarm(kept)
    return Safe(kept, tuple(keeper.removed[:MOST_REMOVED]))


def link_addresses(text: str, addresses: Collection[str]) -> str:
    """Convert these addresses to links where they occur as code in prose.

    The label of such a link is its address, so that it cannot imitate another host.
    """

    def link(code: re.Match[str]) -> str:
        return f"<{code[1]}>" if code[1] in addresses else code[0]

    if not addresses:
        return text
    return "\n".join(part if code else _CODED.sub(link, part) for code, part in _parts(text))


def list_removed_addresses(removed: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct addresses among the removed parts of a text."""
    addresses = (part.removeprefix(_ADDRESS) for part in removed if part.startswith(_ADDRESS))
    return tuple(dict.fromkeys(addresses))


def plain_line(text: str) -> str:
    """Return a title or a label as one line, without links, addresses, or hidden characters.

    Returns `…` if nothing remains of a non-empty text.
    """
    return _write_line(text, Allowed(any_host=True))


def plain_title(text: str) -> str:
    """Return a title, heading, or breadcrumb of a document as `plain_line` does, but with its email
    addresses, as code.
    """
    mails = frozenset(address.text for address in find_addresses(text) if address.is_mail)
    return _write_line(text, Allowed(any_host=True, held=mails))


def keep_own_link(link: str, base: Base = "") -> str:
    """Return a link to one of our own pages, quoted for an attribute, or an empty string for any
    other link.

    Links below `base`, absolute paths, and anchors are allowed.
    """
    plain = "".join(link.split())
    is_path = plain.startswith("/") and not plain.startswith(("//", "/\\"))
    is_own = bool(base) and plain.startswith(base)
    if not (is_own or is_path or plain.startswith("#")) or "\\" in plain:
        return ""
    return quote(plain, safe=_SAFE)


def _write_line(text: str, allowed: Allowed) -> str:
    line = " ".join(clean_text(text).split())
    if _SIGNS.isdisjoint(line):
        return line
    markdown = keep_links(line, allowed).text
    kept = " ".join(markdown.replace("\\<", "<").split())
    return kept or (LEFT_OUT if line else "")


@cache
def _markdown() -> "MarkdownIt":
    """Return the parser, which is loaded on first use."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": True})


def _iterate_tokens(tokens: "list[Token]") -> "Iterator[Token]":
    for token in tokens:
        yield token
        yield from token.children or ()


def _is_foreign(token: "Token", pages: Collection[str]) -> bool:
    match token.type:
        case "link_open":
            return page_of(str(token.attrs.get("href", ""))) not in pages
        case "image":
            return True
        case "html_inline" | "html_block":
            return any(_leads(tag) for tag in _HTML_TAG.finditer(token.content))
        case _:
            return False


def _leads(tag: re.Match[str]) -> bool:
    return tag[1].lower() in ACTIVE or bool(tag[2].strip(" /\t\n"))


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Yield (True, fence) and (False, paragraph or blank line), in order."""
    lines = text.split("\n")
    copied_to = 0
    for start, end in (*fences(text), (len(lines), len(lines))):
        for is_blank, group in groupby(lines[copied_to:start], key=lambda line: not line.strip()):
            run = list(group)
            yield from ((False, part) for part in (run if is_blank else ["\n".join(run)]))
        if start < end:
            yield True, "\n".join(lines[start:end])
        copied_to = end


def _write_address(address: str, fragment: str) -> str:
    whole = f"{address}#{fragment}" if fragment else address
    return whole.replace("(", "%28").replace(")", "%29")
