"""Converts Confluence's storage format, which is XHTML with additional elements, to HTML for our
reader.

Macros that contain text keep it: code and preformatted text, panels, expandable parts, statuses,
and tasks. Macros that fetch content from elsewhere have no text on the page and are removed.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from html import escape
from html.entities import html5
from typing import TYPE_CHECKING

from knowledge.documents.errors import WrongFormatError
from knowledge.documents.office.zipped_xml import parse_xml

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_DEEPEST = 200
_ENTITY = re.compile(r"&([A-Za-z][A-Za-z0-9]{1,31});")
_KEPT = frozenset({"amp", "lt", "gt", "quot", "apos"})
_BEGIN, _END = "<![CDATA[", "]]>"
_OWN = "{ac}"
_RESOURCE = "{ri}"
_PANELS = frozenset({"info", "note", "tip", "warning", "panel", "expand", "success", "error"})
_PREFORMATTED = frozenset({"code", "noformat"})
_VOID = frozenset({"br", "hr", "img", "col"})
_DROPPED = frozenset({"parameter", "placeholder", "task-id", "task-uuid", "adf-content"})

FindAddress = Callable[[str, str], str]
"""Returns the URL of a page, given its title and the key of its space, which may be empty."""


class _Writer:
    """Writes elements as HTML."""

    def __init__(self, address: str, find_address: FindAddress) -> None:
        self._address = address
        self._host = "/".join(address.split("/", 3)[:3])
        self._find_address = find_address
        self._own: Mapping[str, Callable[[Element, int], Iterator[str]]] = {
            "structured-macro": self._macro,
            "macro": self._macro,
            "link": self._link,
            "image": self._image,
            "task-list": self._tasks,
            "emoticon": self._emoticon,
        }

    def write_inside(self, element: "Element", depth: int) -> Iterator[str]:
        """Yield the text and the elements inside an element."""
        if depth > _DEEPEST:
            raise WrongFormatError(f"expected elements at most {_DEEPEST} deep, found more")
        yield escape(element.text or "", quote=False)
        for child in element:
            yield from self._element(child, depth + 1)
            yield escape(child.tail or "", quote=False)

    def _element(self, element: "Element", depth: int) -> Iterator[str]:
        tag = element.tag
        if tag.startswith(_OWN):
            name = tag.removeprefix(_OWN)
            if name not in _DROPPED:
                yield from self._own.get(name, self.write_inside)(element, depth)
        elif tag and not tag.startswith("{"):
            yield from self._html(element, tag, depth)

    def _html(self, element: "Element", tag: str, depth: int) -> Iterator[str]:
        if tag == "time" and not (element.text or "").strip():
            yield escape(element.get("datetime") or "")
            return
        fields = {name: value for name, value in element.attrib.items() if "{" not in name}
        if fields.get("href", "").startswith("/"):
            fields["href"] = f"{self._host}{fields['href']}"
        written = "".join(f' {name}="{escape(value)}"' for name, value in fields.items())
        yield f"<{tag}{written}>"
        if tag not in _VOID:
            yield from self.write_inside(element, depth)
            yield f"</{tag}>"

    def _macro(self, element: "Element", depth: int) -> Iterator[str]:
        name = element.get(f"{_OWN}name") or ""
        fields = {
            child.get(f"{_OWN}name") or "": "".join(child.itertext())
            for child in element.findall(f"{_OWN}parameter")
        }
        plain = element.find(f"{_OWN}plain-text-body")
        rich = element.find(f"{_OWN}rich-text-body")
        title = fields.get("title", "").strip()
        if name == "status":
            yield escape(title)
        elif name == "anchor":
            yield f'<a id="{escape(fields.get("", ""))}"></a>'
        elif plain is not None:
            language = escape(fields.get("language", "").strip())
            yield f"<p>{escape(title)}</p>" if title else ""
            text = escape("".join(plain.itertext()), quote=False)
            yield f'<pre><code class="language-{language}">{text}</code></pre>'
        elif rich is not None:
            label = title or (name.capitalize() if name in _PANELS - {"panel", "expand"} else "")
            yield f"<div><p><strong>{escape(label)}</strong></p>" if label else "<div>"
            yield from self.write_inside(rich, depth)
            yield "</div>"

    def _link(self, element: "Element", depth: int) -> Iterator[str]:
        page = element.find(f"{_RESOURCE}page")
        file = element.find(f"{_RESOURCE}attachment")
        title = "" if page is None else page.get(f"{_RESOURCE}content-title") or ""
        space = "" if page is None else page.get(f"{_RESOURCE}space-key") or ""
        address = self._find_address(title, space) if title else ""
        shown = "" if file is None else file.get(f"{_RESOURCE}filename") or ""
        anchor = element.get(f"{_OWN}anchor") or ""
        body = next(
            (
                "".join(self.write_inside(child, depth))
                for child in element
                if child.tag in (f"{_OWN}link-body", f"{_OWN}plain-text-link-body")
            ),
            "",
        )
        text = body if body.strip() else escape(title or shown or anchor)
        yield f'<a href="{escape(address)}">{text}</a>' if address else text

    def _image(self, element: "Element", depth: int) -> Iterator[str]:
        alt = element.get(f"{_OWN}alt") or ""
        yield f'<img alt="{escape(alt)}">'
        caption = element.find(f"{_OWN}caption")
        if caption is not None:
            yield from self.write_inside(caption, depth)

    def _tasks(self, element: "Element", depth: int) -> Iterator[str]:
        yield "<ul>"
        for task in element.findall(f"{_OWN}task"):
            state = task.findtext(f"{_OWN}task-status") or ""
            body = task.find(f"{_OWN}task-body")
            yield f"<li>[{'x' if state.strip() == 'complete' else ' '}] "
            if body is not None:
                yield from self.write_inside(body, depth)
            yield "</li>"
        yield "</ul>"

    def _emoticon(self, element: "Element", depth: int) -> Iterator[str]:
        yield escape(element.get(f"{_OWN}emoji-fallback") or "")


def write_html(storage: str, title: str, address: str, find_address: FindAddress) -> bytes:
    """Return a page as HTML; raises `WrongFormatError` if the body is not well-formed.

    Links without a host get the host of `address`.
    """
    spaces = 'xmlns:ac="ac" xmlns:ri="ri" xmlns:at="at"'
    page = f"<page {spaces}>{_replace_entities(storage)}</page>"
    root = parse_xml(page.encode("utf-8", "replace"), "a page of Confluence")
    writer = _Writer(address, find_address)
    body = "".join(writer.write_inside(root, 0))
    head = f"<!doctype html><html><head><title>{escape(title)}</title></head>"
    # The title is a heading of its own, so that one in the text does not replace it.
    return f"{head}<body><h1>{escape(title)}</h1>{body}</body></html>".encode("utf-8", "replace")


def _replace_entities(storage: str) -> str:
    """Replace HTML's named character references, which XML does not know, except in quoted text."""
    parts, place = [], 0
    while (begin := storage.find(_BEGIN, place)) >= 0:
        end = storage.find(_END, begin)
        end = len(storage) if end < 0 else end + len(_END)
        parts += [_ENTITY.sub(_name_character, storage[place:begin]), storage[begin:end]]
        place = end
    return "".join((*parts, _ENTITY.sub(_name_character, storage[place:])))


def _name_character(match: re.Match[str]) -> str:
    if match[1] in _KEPT:
        return match[0]
    return html5.get(f"{match[1]};", f"&amp;{match[1]};")
