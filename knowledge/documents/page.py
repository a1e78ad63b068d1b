"""A page as read: its blocks in order, and its metadata."""

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

DEEPEST_INDENT = 12
"""Maximum indentation of list items; deeper lists are not indented further."""
_MOST_NAMES = 5
_TICKS = re.compile(r"`{3,}")
_DROPPED = re.compile(r"[^\w\- ]+")
_FAULTS = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip
"""Exceptions of a fault in a reader; limits, a lack of memory and interruptions are others."""
_log = logging.getLogger(__name__)


class BlockKind(StrEnum):
    """The kind of a block; code and tables are never split inside a line or a row."""

    HEADING = "heading"
    TEXT = "text"
    ITEM = "item"
    CODE = "code"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture on a page, at the position of a block; `caption` is on one line.

    A reader provides its `data` (base64), the `address` of an adjacent file, or the `fault` for
    which it cannot be shown; afterwards `id` identifies the `PictureFile`.
    """

    caption: str = ""
    address: str = ""
    data: str = ""
    id: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class PictureFile:
    """The bytes of a picture in base64; `id` is derived from them."""

    id: str
    media_type: str
    data: str


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a page.

    `level` is 1 to 6 for a heading and 0 otherwise. `anchor` identifies a location: the section of
    a heading, or the text that follows any other block (a page of a PDF). `is_link`: the block
    contains only link labels. `pictures` are in the block or below it. `is_paragraph`: the format
    states items as such, so this text has none.
    """

    kind: BlockKind
    text: str
    level: int = 0
    anchor: str | None = None
    is_link: bool = False
    pictures: tuple[Picture, ...] = ()
    is_paragraph: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """Existing descriptions and chunks of a page; missing parts are created during ingestion."""

    summary: str = ""
    keypoints: tuple[str, ...] = ()
    chunks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Content of a file that its page does not contain: its kind, count and reason.

    `what` is a singular noun, such as `hidden sheet`; `names` are the names of the first items.
    """

    what: str
    count: int
    reason: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return a sentence that describes the omission."""
        more = self.count - len(self.names)
        names = ", ".join((*self.names, *((f"{more} more",) if more else ())))
        shown = f" ({names})" if self.names else ""
        return f"{write_count(self.count, self.what)} left out{shown}: {self.reason}"


class LeftOutCounts:
    """Counts the content that a reader leaves out."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._names: dict[tuple[str, str], list[str]] = {}

    def add(self, what: str, reason: str, count: int = 1, name: str = "") -> None:
        """Count omitted content; `name` identifies it."""
        key = (what, reason)
        self._counts[key] = self._counts.get(key, 0) + count
        names = self._names.setdefault(key, [])
        if name and len(names) < _MOST_NAMES:
            names.append(name)

    @contextmanager
    def contain(self, what: str, name: str) -> Iterator[None]:
        """Count a part of a file as left out, and log why, if its reader fails unexpectedly."""
        try:
            yield
        except _FAULTS as error:
            _log.warning("A reader failed at %s: %s", name, what, exc_info=True)
            reason = f"the reader failed with {type(error).__name__}: {error!s:.120}"
            self.add(what, reason, name=name)

    def take(self, counted: Iterable[LeftOut]) -> None:
        """Add the counts of another reader."""
        for left_out in counted:
            self.add(left_out.what, left_out.reason, left_out.count)
            names = self._names[left_out.what, left_out.reason]
            names += left_out.names[: max(0, _MOST_NAMES - len(names))]

    def list(self) -> tuple[LeftOut, ...]:
        """Return the omitted content."""
        return tuple(
            LeftOut(what, count, reason, tuple(self._names[what, reason]))
            for (what, reason), count in self._counts.items()
            if count
        )


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the documents.

    `name` identifies the page across languages; `language` is stated by the page or its folder (a
    tag such as `de` or `pt-BR`), or None. `warnings` are problems that did not prevent reading.
    `groups` are the groups that may read it, empty for everybody. `links` are its web links, by
    label and URL. `files` are the pictures of its blocks. `left_out` is content of its file that
    the page does not contain.
    """

    source: str
    title: str
    blocks: tuple[Block, ...]
    name: str = ""
    id: str | None = None
    crumbs: tuple[str, ...] = ()
    description: str = ""
    keywords: tuple[str, ...] = ()
    language: str | None = None
    url: str | None = None
    prepared: Prepared | None = None
    warnings: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    version: str = ""
    links: tuple[tuple[str, str], ...] = ()
    files: tuple[PictureFile, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def content(self) -> str:
        """The text of the whole page, with headings in Markdown."""
        return "\n\n".join(
            f"{'#' * block.level} {block.text}" if block.kind is BlockKind.HEADING else block.text
            for block in self.blocks
        )


class Anchors:
    """Assigns one anchor per heading; repeated names get a number."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}

    def take(self, text: str, stated: str | None = None) -> str:
        """Return the stated anchor, or a slug of the text as generated by large code hosts."""
        wanted = slug(text) if stated is None else stated
        count = self._counts.get(wanted, 0)
        anchor = wanted if count == 0 else f"{wanted}-{count}"
        while anchor in self._taken:
            count += 1
            anchor = f"{wanted}-{count}"
        self._counts[wanted] = count + 1
        self._taken.add(anchor)
        return anchor


def write_count(number: int, noun: str) -> str:
    """Return a number with a noun that forms its plural with `s`: `1 page`, `2 pages`."""
    return f"{number} {noun}{'s'[: number != 1]}"


def make_code(text: str, info: str = "", anchor: str | None = None) -> Block:
    """Return a code block with fences that are longer than any run of backticks in it."""
    longest = max(map(len, _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return Block(BlockKind.CODE, f"{fence}{info}\n{text}\n{fence}", anchor=anchor)


def make_item(
    label: str, text: str, depth: int, *, is_link: bool = False, pictures: tuple[Picture, ...] = ()
) -> Block:
    """Return a list item; `depth` is the number of lists around its own."""
    indent = "  " * min(depth, DEEPEST_INDENT)
    return Block(BlockKind.ITEM, f"{indent}{label} {text}", is_link=is_link, pictures=pictures)


def first_heading(blocks: Sequence[Block]) -> str:
    """Return the heading with which a page begins or, if there is none, its first one of the
    highest level.
    """
    if blocks and blocks[0].kind is BlockKind.HEADING:
        return blocks[0].text
    headings = [block for block in blocks if block.kind is BlockKind.HEADING]
    return min(headings, key=lambda heading: heading.level).text if headings else ""


def slug(text: str) -> str:
    """Return the text in lower case, without punctuation, with hyphens for spaces."""
    return _DROPPED.sub("", text.lower()).strip().replace(" ", "-") or "section"
