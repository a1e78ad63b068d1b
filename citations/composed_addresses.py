"""Proves that a web address is composed of parts that one document states.

| part                 | stated as                                                                |
|----------------------|--------------------------------------------------------------------------|
| server               | a web address, or a host that is a whole word (`api.acme.test:8443`)     |
| path                 | a path, or the path of an address; `{id}`, `<id>` and `:id` may be filled |
| names of parameters  | words                                                                    |
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from citations.addresses import find_addresses, origins_of, page_of

_NAMED = r"[A-Za-z_][\w-]{0,40}"
_PLACEHOLDER = re.compile(rf"<({_NAMED})>|(?<=/):({_NAMED})")
_PATH = re.compile(r"(?<![\w/.:}-])/[\w.~%+@$!={},;-][\w.~%+@$!={},;/-]{0,500}")
_WORD = re.compile(r"[\w-]+")
_LONGEST_VALUE = 200
_UNSAFE_VALUES = ("..", "%2F", "%5C", "%00")
Segments = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StatedParts:
    """The parts of addresses that a document states: servers and paths are split at `/`."""

    servers: Collection[Segments]
    paths: Collection[Segments]
    words: Collection[str]

    def composes(self, address: str) -> bool:
        """Return whether a web address is composed of these parts alone."""
        page = page_of(address)
        if page is None or "#" in address:
            return False
        location, _, query = page.partition("?")
        segments = _split(location)
        return self._has_place(segments) and all(map(self._has_parameter, query.split("&")))

    def _has_place(self, segments: Segments) -> bool:
        splits = range(1, len(segments) + 1)
        return any(
            _matches_any(segments[:at], self.servers) and _matches_any(segments[at:], self.paths)
            for at in splits
        )

    def _has_parameter(self, parameter: str) -> bool:
        name = unquote(parameter.partition("=")[0])
        words = _WORD.findall(name)
        return not parameter or (bool(words) and all(word in self.words for word in words))


@lru_cache(maxsize=64)
def read_stated_parts(text: str) -> StatedParts:
    """Return the parts of addresses that the text of a document states."""
    plain = _PLACEHOLDER.sub(lambda found: f"{{{found[1] or found[2]}}}", text)
    pages = [page for found in find_addresses(plain) if (page := page_of(found.text)) is not None]
    locations = {_split(page.partition("?")[0]) for page in pages}
    paths = {_split(path)[1:] for path in _PATH.findall(plain)}
    return StatedParts(
        servers=locations | {(origin,) for origin in origins_of(plain)},
        paths=paths | {one[1:] for one in locations} | {()},
        words=frozenset(_WORD.findall(plain)),
    )


def _split(location: str) -> Segments:
    """Return the origin of a canonical address, and the segments of its path."""
    scheme, separator, rest = location.partition("://")
    first, *others = (rest if separator else location).rstrip("/.,;").split("/")
    return (f"{scheme}://{first}" if separator else first, *others)


def _matches_any(segments: Segments, templates: Collection[Segments]) -> bool:
    return any(_matches(segments, template) for template in templates)


def _matches(segments: Sequence[str], template: Segments) -> bool:
    return len(segments) == len(template) and all(map(_fits, segments, template))


def _fits(segment: str, template: str) -> bool:
    """Return whether a segment is the stated one, with a value in place of its placeholder."""
    before, opened, rest = template.partition("{")
    _, closed, after = rest.partition("}")
    if segment == template or not (opened and closed) or "://" in template:
        return segment == template
    value = segment.removeprefix(before).removesuffix(after)
    is_between = segment.startswith(before) and segment.endswith(after)
    is_short = 0 < len(value) <= _LONGEST_VALUE and f"{before}{value}{after}" == segment
    return is_between and is_short and not any(one in value.upper() for one in _UNSAFE_VALUES)
