"""Opens office files, which are zipped XML, with limits on size and without entities."""

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError

from knowledge.documents.decoding import MAX_BYTES, clean_text
from knowledge.documents.errors import SkippedError, TooLargeError, WrongFormatError
from knowledge.documents.page import Block, BlockKind, LeftOutCounts, Page, Picture, make_code
from knowledge.documents.pictures import BEYOND_LIMITS, LARGEST_PICTURE, MOST_PICTURES, hold_picture
from knowledge.documents.symbols import UNKNOWN

LOCKED = "it is protected by a password: open it, save it without a password and ingest it again"
"""The reason for which a locked file is skipped."""
BACKGROUND = "text in the colour of its background cannot be seen"
"""The reason for which text or a value that nobody can see is left out."""
MOST_PARTS = 20_000
MOST_UNPACKED_BYTES = 4 * MAX_BYTES

_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_LONGEST_PAGE_NUMBER = 7
_MACROS = re.compile(
    r"(?:\w{1,9}/)?vbaProject\.bin\Z|Basic/[^/]{1,200}/(?!script-)[^/]{1,200}\.xml\Z|Scripts/"
)
_LENGTH = re.compile(r"-?\d{1,12}(?:\.\d{1,9})?")
_PICTURES = {"blip": ("embed", "link"), "imagedata": ("id",)}
"""Elements that show a picture, with the attributes that name its relationship."""
_OFF = frozenset({"0", "false", "off", "none"})
_LEFT_BY_PROGRAMS = re.compile(
    r"(?:microsoft (?:word|powerpoint|excel)\s*-|(?:untitled|anonymous|unnamed|document|slide|"
    r"presentation|title|unspecified|none|new document|powerpoint presentation|"
    r"pptx? presentation|blank presentation)[\s\d]*\Z)",
    re.IGNORECASE,
)
_NAME_OF_A_FILE = re.compile(r"\S+\.(?:docx?|pptx?|xlsx?|pdf|odt|rtf|tex|dvi|indd|pages|html?)\Z")


@dataclass(frozen=True, slots=True)
class Relationship:
    """A relationship of a part: the last word of its type, and the name of the other part."""

    kind: str
    target: str


class ZippedXml:
    """The parts of an archive; unpacked bytes are counted and limited."""

    def __init__(self, data: bytes, expected: str) -> None:
        """Open an archive; raise `WrongFormatError`, which names the `expected` format."""
        self._expected = expected
        if data.startswith(_OLD_OFFICE):
            raise SkippedError(_explain_old_file(data, expected))
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            raise WrongFormatError(f"expected {expected}, found no zip archive") from error
        # Some programs write names with the separator of Windows.
        self._parts = {info.filename.replace("\\", "/"): info for info in self._archive.infolist()}
        # The names of parts are equal regardless of case (ECMA-376 part 2, 6.2.2.3).
        self._names = {name.lower(): name for name in self._parts}
        if len(self._parts) > MOST_PARTS:
            raise TooLargeError(
                f"a document can have at most {MOST_PARTS} parts, found {len(self._parts)}"
            )
        self._left = MOST_UNPACKED_BYTES
        self._pictures_left = 2 * MOST_PICTURES

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the parts."""
        return iter(self._parts)

    def read(self, name: str) -> bytes:
        """Return a part; raise `WrongFormatError` if it is missing or damaged."""
        if name not in self._parts:
            raise WrongFormatError(f"expected {self._expected}, found none: {name} is missing")
        try:
            with self._archive.open(self._parts[name]) as part:
                data = part.read(min(MAX_BYTES, self._left) + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError) as error:
            raise WrongFormatError(
                f"expected {self._expected}, found a damaged or locked one"
            ) from error
        self._left -= len(data)
        if len(data) > MAX_BYTES or self._left < 0:
            raise TooLargeError(
                f"a part can have at most {MAX_BYTES} bytes unpacked and all parts "
                f"{MOST_UNPACKED_BYTES}"
            )
        return data

    def read_picture(self, name: str, caption: str = "") -> Picture:
        """Return a part as a picture, or why it cannot be shown."""
        self._pictures_left -= 1
        is_large = name in self and self._parts[name].file_size > LARGEST_PICTURE
        if is_large or self._pictures_left < 0:
            return Picture(caption, fault=BEYOND_LIMITS)
        try:
            return hold_picture(self.read(name), caption)
        except WrongFormatError:
            return Picture(caption, fault="missing in the file, or damaged")

    def parse(self, name: str) -> Element:
        """Return the root of an XML part; raise `WrongFormatError`."""
        return parse_without_namespaces(self.read(name), self._expected)

    def relationships(self, name: str) -> Mapping[str, Relationship]:
        """Return the relationships of a part by id; the target of an external one is an URL."""
        folder, _, file = name.rpartition("/")
        path = posixpath.join(folder, "_rels", f"{file}.rels")
        part = self._names.get(path.lower())
        by_id: dict[str, Relationship] = {}
        for relation in () if part is None else self.parse(part):
            target = relation.get("Target", "")
            if not target:
                continue
            if relation.get("TargetMode") != "External":
                path = posixpath.normpath(posixpath.join(f"/{folder}", unquote(target))).strip("/")
                target = self._names.get(path.lower(), path)
            kind = relation.get("Type", "").rpartition("/")[2]
            by_id[relation.get("Id", "")] = Relationship(kind, target)
        return by_id

    def web_links(self, name: str) -> Mapping[str, str]:
        """Return the URLs to which a part links, by relationship id."""
        return {
            key: relation.target
            for key, relation in self.relationships(name).items()
            if relation.target.startswith(("http://", "https://"))
        }

    def find_related(self, name: str, kind: str) -> str | None:
        """Return the name of a related part of a kind, if the archive contains it."""
        relations = self.relationships(name).values()
        targets = (relation.target for relation in relations if relation.kind == kind)
        return next((target for target in targets if target in self), None)


def parse_xml(data: bytes, expected: str) -> Element:
    """Return the root of an XML document; entity definitions are rejected."""
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        root: Element = fromstring(data, forbid_dtd=False)
    except DefusedXmlException as error:
        raise WrongFormatError(
            f"expected {expected}, found XML that defines entities, which is not accepted for "
            f"safety"
        ) from error
    except (ParseError, ValueError, LookupError) as error:
        raise WrongFormatError(f"expected {expected}, found damaged XML: {error}") from error
    return root


def parse_without_namespaces(data: bytes, expected: str) -> Element:
    """Return the root of an XML document whose names have no namespaces.

    An attribute keeps its namespace if the element has another one of the same local name, which
    is preferred: `id` to `{...}id`.
    """
    root = parse_xml(data, expected)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for name in [name for name in element.attrib if name[0] == "{"]:
            local = name.rpartition("}")[2]
            if local not in element.attrib:
                element.attrib[local] = element.attrib.pop(name)
    return root


def find_child(element: Element | None, *names: str) -> Element | None:
    """Return the descendant at a path of names, or None."""
    return None if element is None else element.find("/".join(names))


def find_first(parent: Element | None, *names: str) -> Element | None:
    """Return the child that has the first of these names, or else the next one, or None."""
    return next((child for name in names for child in find_children(parent, name)), None)


def find_children(element: Element | None, name: str) -> Iterator[Element]:
    """Yield the children with a name."""
    return iter(() if element is None else element.findall(name))


def find_all(element: Element | None, name: str) -> Iterator[Element]:
    """Yield the descendants with a name."""
    return iter(() if element is None else element.iter(name))


def get_value(element: Element | None, *names: str) -> str | None:
    """Return the attribute `val` of the descendant at a path of names."""
    child = find_child(element, *names)
    return None if child is None else child.get("val")


def to_number(stated: str | None, default: int = 0) -> int:
    """Return a stated number, or the default if it is missing, negative or not a number."""
    return int(stated) if stated and stated.isdecimal() and len(stated) < 8 else default


def count(element: Element, name: str) -> int:
    """Return a stated number of columns, rows or repetitions, which is at least 1."""
    return max(1, to_number(element.get(name)))


def to_length(stated: str | None) -> float:
    """Return a stated length without its unit, or 0 if there is none."""
    match = _LENGTH.match(stated or "")
    return 0.0 if match is None else float(match[0])


def is_on(properties: Element | None, name: str) -> bool:
    """Return whether a property is present and not explicitly switched off."""
    element = find_child(properties, name)
    return element is not None and (element.get("val") or "true").lower() not in _OFF


def find_drawn(parent: Element, archive: ZippedXml, part: str) -> Iterator[Picture]:
    """Yield the pictures of a drawing in a part, with its alternative text."""
    texts = (element.get("descr") for element in parent.iter())
    text = next(filter(None, texts), "")
    relations = archive.relationships(part)
    for element in parent.iter():
        stated = (element.get(name, "") for name in _PICTURES.get(element.tag, ()))
        for relation in filter(None, map(relations.get, stated)):
            yield archive.read_picture(relation.target, text)


def read_core_properties(archive: ZippedXml) -> Page:
    """Return a page without content that has the core properties of an office file, if any."""
    name = archive.find_related("", "core-properties")
    return read_properties(None if name is None else archive.parse(name))


def read_properties(parent: Element | None) -> Page:
    """Return a page without content that has the properties which the children of an element
    state: title, description and keywords.
    """
    stated: dict[str, str] = {}
    for element in parent if parent is not None else ():
        text = " ".join(clean_text(element.text or "").split())
        name = element.tag
        stated[name] = f"{stated[name]},{text}" if name in stated else text
    keywords = stated.get("keywords") or stated.get("keyword", "")
    words = (word.strip() for word in keywords.replace(";", ",").split(","))
    description = stated.get("subject", "")
    return Page(
        "",
        choose_title(stated.get("title", "")),
        (),
        description="" if _LEFT_BY_PROGRAMS.match(description) else description,
        keywords=tuple(word for word in words if word)[:64],
    )


def make_page(
    source: str,
    archive: ZippedXml,
    stated: Page,
    title: str,
    blocks: Iterable[Block],
    links: Iterable[tuple[str, str]],
    left_out: LeftOutCounts,
) -> Page:
    """Return the page of a file; the parts with macros and the unknown symbols are counted."""
    blocks = tuple(blocks)
    unknown = sum(block.text.count(UNKNOWN) for block in blocks)
    left_out.add("symbol", f"written as {UNKNOWN}, because its meaning is not known", unknown)
    macros = sum(1 for name in archive if _MACROS.match(name))
    left_out.add("macro", "code in files is not run and is not text", macros)
    return replace(
        stated,
        source=source,
        title=title,
        blocks=blocks,
        links=tuple(links),
        left_out=left_out.list(),
    )


def write_page_headers(lines: Iterable[str]) -> Iterator[Block]:
    """Yield the lines of page headers and footers, without duplicates and page numbers."""
    for line in dict.fromkeys(lines):
        if any(character.isalpha() for character in line) or len(line) > _LONGEST_PAGE_NUMBER:
            yield Block(BlockKind.TEXT, line)


def count_field_in_header(literal: str, left_out: LeftOutCounts) -> None:
    """Count a printed header with fields, unless its text is one word, as by default (`Page 1`)."""
    words = sum(map(str.isalpha, literal.split()))
    left_out.add("printed header", "fields such as page numbers are not text", words > 1)


def end_code(lines: list[str]) -> Iterator[Block]:
    """Yield a block of code if there are lines of code, and empty the list."""
    text = "\n".join(lines).strip("\n")
    lines.clear()
    if text.strip():
        yield make_code(text)


def choose_title(stated: str) -> str:
    """Return a stated title; empty for a default title such as `untitled`."""
    title = " ".join(clean_text(stated).split()).strip("() ")
    match = _LEFT_BY_PROGRAMS.match(title) or _NAME_OF_A_FILE.match(title)
    return "" if match else title


def _explain_old_file(data: bytes, expected: str) -> str:
    # The names in such a file are in UTF-16, in sectors of their own.
    if "EncryptedPackage".encode("utf-16-le") in data:
        return LOCKED
    return (
        f"expected {expected}, found a file in the format of an old Office program: open it there "
        "and save it in the current format"
    )
