"""Checks whether a URL is composed of parts that occur in one document.

| part                 | how it must occur in the document                                        |
|----------------------|--------------------------------------------------------------------------|
| server               | a web address, or a host that is a whole word (`api.acme.test:8443`)     |
| path                 | a path, or the path of an address; `{id}`, `<id>` and `:id` may be filled |
| names of parameters  | words                                                                    |
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
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


@dataclass(slots=True, eq=False)
class Templates:
    """A prefix tree of paths, so that a lookup visits only matching branches.

    `placeholders` contains the branches with a placeholder, by the text before and after the
    placeholder.
    """

    is_end: bool = False
    segments: "dict[str, Templates]" = field(default_factory=dict)
    placeholders: "dict[str, dict[str, Templates]]" = field(default_factory=dict)

    def add(self, path: Segments) -> None:
        """Add a path; `{name}` in a segment is a placeholder for a value."""
        branch = self
        for segment in path:
            branch = branch._get_or_add(segment)
        branch.is_end = True

    def find_next(self, segment: str) -> "Iterator[Templates]":
        """Yield the branches that match the next segment of an address."""
        if segment in self.segments:
            yield self.segments[segment]
        for start in range(len(segment)) if self.placeholders else ():
            branches = self.placeholders.get(segment[:start], {})
            longest = min(len(segment), start + _LONGEST_VALUE)
            for end in range(start + 1, longest + 1) if branches else ():
                if segment[end:] in branches and _is_value(segment[start:end]):
                    yield branches[segment[end:]]

    def _get_or_add(self, segment: str) -> "Templates":
        before, opened, rest = segment.partition("{")
        _, closed, after = rest.partition("}")
        if not (opened and closed) or "://" in segment:
            return self.segments.setdefault(segment, Templates())
        return self.placeholders.setdefault(before, {}).setdefault(after, Templates())


@dataclass(frozen=True, slots=True)
class StatedParts:
    """The parts of addresses that occur in a document, split at `/`."""

    servers: Templates
    paths: Templates
    words: Collection[str]

    def composes(self, address: str) -> bool:
        """Return whether a URL consists only of these parts."""
        page = page_of(address)
        if page is None or "#" in address:
            return False
        location, _, query = page.partition("?")
        return self._has_place(_split(location)) and all(map(self._has_parameter, query.split("&")))

    def _has_place(self, segments: Segments) -> bool:
        """Return whether the segments consist of a server and a path that both occur in the
        document.
        """
        servers, paths = {self.servers}, set[Templates]()
        for segment in segments:
            servers = {templates for branch in servers for templates in branch.find_next(segment)}
            paths = {templates for branch in paths for templates in branch.find_next(segment)}
            if any(branch.is_end for branch in servers):
                paths.add(self.paths)
        return any(branch.is_end for branch in paths)

    def _has_parameter(self, parameter: str) -> bool:
        name = unquote(parameter.partition("=")[0])
        words = _WORD.findall(name)
        return not parameter or (bool(words) and all(word in self.words for word in words))


@lru_cache(maxsize=64)
def read_stated_parts(text: str) -> StatedParts:
    """Return the parts of addresses that occur in the text of a document."""
    plain = _PLACEHOLDER.sub(lambda match: f"{{{match[1] or match[2]}}}", text)
    pages = [
        page for address in find_addresses(plain) if (page := page_of(address.text)) is not None
    ]
    locations = {_split(page.partition("?")[0]) for page in pages}
    paths = {_split(path)[1:] for path in _PATH.findall(plain)}
    return StatedParts(
        servers=_make_tree(locations | {(origin,) for origin in origins_of(plain)}),
        paths=_make_tree(paths | {location[1:] for location in locations} | {()}),
        words=frozenset(_WORD.findall(plain)),
    )


def _split(location: str) -> Segments:
    """Return the origin of a canonical URL, and the segments of its path."""
    scheme, separator, rest = location.partition("://")
    first, *others = (rest if separator else location).rstrip("/.,;").split("/")
    return (f"{scheme}://{first}" if separator else first, *others)


def _make_tree(paths: Iterable[Segments]) -> Templates:
    tree = Templates()
    for path in paths:
        tree.add(path)
    return tree


def _is_value(value: str) -> bool:
    """Return whether a value is a valid replacement for a placeholder."""
    return len(value) <= _LONGEST_VALUE and not any(
        part in value.upper() for part in _UNSAFE_VALUES
    )
