"""Finds the text files, pictures and style sheets to which a page refers, in the ingested folder or
its repository; style sheets also in the archive of the page.

Supported are `--8<-- "file"` and `{!file!}` of MkDocs, and `literalinclude` of Sphinx and MyST.
Only files with a suffix in `TEXT_SUFFIXES` are read. Hidden files and files outside the folder or,
inside a working copy of a repository, outside the repository are not read. A reference to a missing
file is removed, with a warning.

Supported options are `caption`, `language`, `lines`, `start-after`, `start-at`, `end-before` and
`end-at`. Other options change the appearance of the code and are ignored.
"""

import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from html import unescape
from itertools import islice
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from knowledge.documents.errors import ReadingError
from knowledge.documents.exports import ArchivedFile
from knowledge.documents.folder import FoundFile, is_private
from knowledge.documents.folder_rules import FolderRules
from knowledge.documents.furniture import WEBSITES
from knowledge.documents.markup.fences import describe_code, take_options
from knowledge.documents.page import make_code
from knowledge.documents.pictures import LARGEST_PICTURE, MOST_BYTES, MOST_PICTURES

_SUFFIXES = frozenset({".md", ".markdown", ".mdx"})
_SPHINX_SUFFIXES = frozenset({".rst", ".rest"})
MARK = b"literalinclude"
_MARKS = (b"--8<--", b"{!", MARK)
_SUFFIX_NAMES = (
    "md markdown mdx rst txt adoc html css scss csv tsv json json5 jsonl yaml yml toml xml sql "
    "graphql proto py pyi ipynb js jsx mjs ts tsx vue java kt kts scala groovy gradle go rs c h cc "
    "cpp hpp cs fs rb php swift dart lua pl r jl ex exs erl hs sh bash zsh fish ps1 bat tf hcl nix "
    "tpl j2 diff patch"
)
TEXT_SUFFIXES = frozenset(f".{name}" for name in _SUFFIX_NAMES.split())
"""Source code, markup and data that people write. Settings and keys (`.env`, `.ini`, `.conf`,
`.properties`, `.pem`, `.key`) and files without a suffix are not included.
"""
_LINE = re.compile(
    r"([ \t]{0,80})(?:-{1,20}8<-{1,20}[ \t]{1,20}[\"']|\{![ \t]{0,9})"
    r"([^\"'\n!{}]{1,500}?)(?:[\"']|[ \t]{0,9}!\})[ \t]{0,80}\Z"
)
_SECTION = re.compile(r"-{1,20}8<-{1,20}[ \t]{1,20}\[(start|end):[ \t]{0,20}([\w.-]{1,100})\]")
_LINES = re.compile(r"[\d:, ]{1,200}\Z")
_MOST_SNIPPETS = 100
_LARGEST_SNIPPET = 256 * 1024

Warn = Callable[[str], None]
_DIRECTIVE = re.compile(
    r"([ \t]{0,80})(?:(`{3,20}|~{3,20}|:{3,20})\{literalinclude\}|\.\.[ \t]{1,20}literalinclude::)"
    r"[ \t]{1,20}(\S{1,500})[ \t]{0,80}\Z"
)
_RANGE = re.compile(r"(\d{0,7})([:-]?)(\d{0,7})\Z")
_MOST_RANGES = 50
_MOST_OPTIONS = 50
_BORDERS = (
    ("start-after", True, 1), ("start-at", True, 0),
    ("end-before", False, 0), ("end-at", False, 1),
)  # fmt: skip
"""Options that state a line by a text in it, whether the part begins there, and how far behind."""
_BESIDE = frozenset(
    {".md", ".markdown", ".mdx", ".html", ".htm", ".xhtml", ".aspx", ".rst", ".adoc", ".asciidoc"}
)
_OF_PICTURES = r"\.(?:png|jpe?g|gif|webp)"
_ADDRESS = re.compile(
    rb"(?<=[\"'(<:\[])[ \t]{0,3}([^\"'()<>:\[\s][^\"'()<>:\n]{0,300}"
    + _OF_PICTURES.encode()
    + rb")",
    re.IGNORECASE,
)
_WITH_SHEETS = WEBSITES | {".aspx"}
_SHEET = re.compile(
    rb"(?<=[\"'])[ \t]{0,3}([^\"'<>:\n]{1,300}\.css)(?=[\"'?#])"
    rb"|(?<=[=(])[ \t]{0,3}([^\s\"'()<>=:]{1,300}\.css)(?=[\s)>?#])",
    re.IGNORECASE,
)
_BASE = re.compile(
    rb"<base\s[^<>]{0,300}?href\s{0,9}=\s{0,9}[\"']?([^\"'<>\s]{1,1000})", re.IGNORECASE
)
_MOST_SHEETS = 100
_LARGEST_SHEETS = 4_000_000
_HEAD_OF_SHEET = 20_000
_PUBLIC_FOLDERS = ("", "static", "public", "docs")
"""Possible locations of a URL that begins with a slash, below a parent folder of the page."""


class _Nearby:
    """Reads the files near a page by their addresses.

    With `may_be_hidden`, they may be in a hidden folder of the ingested folder. Addresses are
    relative to `base`, which is relative to the page.
    """

    def __init__(
        self,
        file: FoundFile,
        groups: Sequence[str],
        base: str = "",
        *,
        may_be_hidden: bool = False,
    ) -> None:
        self._file = file
        self._base = posixpath.dirname(base)
        self._open = file.top if may_be_hidden else None
        self._groups = groups
        self._rules = FolderRules()
        self._page = file.location
        around = (file.top, *file.top.parents) if file.top is not None else ()
        self._limit = next((place for place in around if (place / ".git").exists()), file.top)
        if isinstance(file, ArchivedFile):
            self._page = file.location / file.member.filename
            self._limit = file.location

    def read(self, address: str, largest: int, *, is_exact: bool = False) -> bytes | None:
        """Return the first file that the address may mean and that has at most `largest` bytes.

        With `is_exact`, a relative address means only a file relative to the page.
        """
        address = posixpath.join(self._base, address)
        places = self._list_places(unquote(address))
        for target in islice(places, 1) if is_exact and address[:1] != "/" else places:
            try:
                data = self._read(target, largest)
            except (OSError, ReadingError):
                continue
            if data is not None:
                return data
        return None

    def _read(self, target: Path, largest: int) -> bytes | None:
        if self._limit is None:
            return None
        inner = target.relative_to(self._limit)
        is_open = self._open is not None and target.is_relative_to(self._open)
        is_hidden = not is_open and any(part.startswith(".") for part in inner.parts)
        if is_hidden or is_private(inner):
            return None
        stated = self._rules.find(target).groups
        if stated and not (self._groups and set(self._groups) <= set(stated)):
            return None
        if isinstance(self._file, ArchivedFile):
            return self._file.archive.read_shared(inner.parts, largest)
        if not target.is_file() or target.stat().st_size > largest:
            return None
        return FoundFile(PurePosixPath(inner), target, self._limit).read()

    def _list_places(self, address: str) -> Iterator[Path]:
        """Yield the paths that an address may mean, first the one relative to the page."""
        limit = self._limit
        if limit is None or "\0" in address or "://" in address or address.startswith("//"):
            return
        name = address.lstrip("/")
        folder = Path(os.path.realpath(self._page)).parent
        while folder.is_relative_to(limit):
            for public in _PUBLIC_FOLDERS if address.startswith("/") else ("",):
                target = Path(os.path.realpath(folder / public / name))
                if target.is_relative_to(limit):
                    yield target
            folder = folder.parent


class _Snippets:
    """Resolves the references of one file."""

    def __init__(self, nearby: _Nearby, warn: Warn, note_missing: Warn) -> None:
        self._nearby = nearby
        self._warn = warn
        self._note_missing = note_missing
        self._left = _MOST_SNIPPETS

    def resolve(self, lines: list[str]) -> Iterator[str]:
        for line in lines:
            bare = line.rstrip("\r")
            if (single := _LINE.match(bare)) is not None:
                yield from self._find(single[2], single[1])
            elif _SECTION.search(bare) is None:
                yield line

    def _find(self, reference: str, indent: str) -> Iterator[str]:
        name, _, part = reference.partition(":") if "://" not in reference else (reference, "", "")
        text = self.find_text(name) if not reference.startswith(";") else None
        if text is not None:
            yield from (f"{indent}{line}" for line in _take_part(text.split("\n"), part))

    def find_text(self, name: str) -> str | None:
        """Return the text of a file to which the page refers, or None with a warning."""
        self._left -= 1
        if self._left < 0:
            self._warn(f"only {_MOST_SNIPPETS} files are included in a page")
            return None
        is_text = PurePosixPath(name).suffix.lower() in TEXT_SUFFIXES
        data = self._nearby.read(name, _LARGEST_SNIPPET) if is_text else None
        if data is None:
            self._note_missing(name)
            return None
        return data.decode("utf-8", "replace").replace("\r\n", "\n").rstrip("\n")


def read_with_snippets(
    file: FoundFile, warn: Warn, note_missing: Warn, groups: Sequence[str] = ()
) -> bytes:
    """Return the bytes of a file in which references are replaced by the files.

    Raises `OSError` or a `ReadingError` for the file itself; `note_missing` receives the names of
    missing files. `groups` may read the page.
    """
    data = file.read()
    is_page = file.path.suffix.lower() in _SUFFIXES | _SPHINX_SUFFIXES
    if not is_page or not any(mark in data for mark in _MARKS):
        return data
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return data
    snippets = _Snippets(_Nearby(file, groups, may_be_hidden=True), warn, note_missing)
    lines = text.split("\n")
    if file.path.suffix.lower() in _SUFFIXES:
        lines = list(snippets.resolve(lines))
    included = _replace_literal_includes(lines, snippets)
    return "\n".join(included).encode()


def load_beside(file: FoundFile, data: bytes, groups: Sequence[str]) -> dict[str, bytes]:
    """Return the pictures and style sheets of a page, by the addresses that it uses for them.

    These are the pictures fetched with the page or, if there are none, files in the folder, or in
    the repository around it, that are neither hidden nor restricted to groups other than those that
    may read the page.
    """
    if file.pictures:
        fetched: dict[str, bytes] = {}
        for address, path in file.pictures.items():
            # The page counts its missing pictures.
            with suppress(OSError, ReadingError):
                fetched[address] = FoundFile(file.path, path).read()
        return fetched
    if file.path.suffix.lower() not in _BESIDE:
        return {}
    has_sheets = file.path.suffix.lower() in _WITH_SHEETS
    stated = _BASE.search(data) if has_sheets else None
    base = "" if stated is None else unescape(stated[1].decode("utf-8", "replace"))
    nearby = _Nearby(file, groups, base)
    beside: dict[str, bytes] = {}
    if not isinstance(file, ArchivedFile):
        named = [match[1].decode("utf-8", "replace") for match in _ADDRESS.finditer(data)]
        limits = MOST_PICTURES, MOST_BYTES, LARGEST_PICTURE
        beside = _load(nearby, named, *limits, are_sheets=False)
    if has_sheets:
        limits = _MOST_SHEETS, _LARGEST_SHEETS, _LARGEST_SHEETS
        beside |= _load(nearby, [*_list_sheets(data, "")], *limits, are_sheets=True)
    return beside


def _replace_literal_includes(lines: Sequence[str], snippets: _Snippets) -> Iterator[str]:
    """Yield the lines of a Markdown or reStructuredText page with its directives replaced by
    code.
    """
    at = 0
    while at < len(lines):
        match = _DIRECTIVE.match(lines[at].rstrip("\r"))
        at += 1
        if match is None:
            yield lines[at - 1]
            continue
        indent, fence, name = match.groups()
        following = lines[at : at + _MOST_OPTIONS]
        options, rest = take_options(following)
        closing = next((place for place, line in enumerate(rest[:3]) if line.strip() == fence), -1)
        at += len(following) - len(rest) + closing + 1
        text = snippets.find_text(name.lstrip("/"))
        if text is not None:
            code = _cut_part(text.split("\n"), options)
            language = options.get("language", PurePosixPath(name).suffix[1:])
            written = _write_code(language, code, options, is_fenced=fence is not None)
            yield from (indent + line for line in written)


def _take_part(lines: list[str], part: str) -> Iterator[str]:
    """Return the lines that `part` selects: `2:5`, a section, or all; section markers are
    removed.
    """
    if part and _LINES.match(part) is not None:
        lines = _take_lines(lines, part if ":" in part else f"{part}:")
    elif part:
        lines = list(_take_section(lines, part))
    yield from (line for line in lines if _SECTION.search(line) is None)


def _take_section(lines: list[str], name: str) -> Iterator[str]:
    is_inside = False
    for line in lines:
        match = _SECTION.search(line)
        if match is not None and match[2] == name:
            is_inside = match[1] == "start"
        elif is_inside:
            yield line


def _cut_part(lines: list[str], options: dict[str, str]) -> list[str]:
    if options.get("lines"):
        lines = _take_lines(lines, options["lines"])
    for option, is_start, behind in _BORDERS:
        text = options.get(option)
        if text:
            found = (place for place, line in enumerate(lines) if text in line)
            place = next(found, len(lines)) + behind
            lines = lines[place:] if is_start else lines[:place]
    return lines


def _take_lines(lines: list[str], ranges: str) -> list[str]:
    """Return the lines that a range such as `1,3,5-9,20-` selects."""
    chosen: list[str] = []
    for part in ranges.split(",")[:_MOST_RANGES]:
        match = _RANGE.match(part.strip())
        if match is not None and (match[1] or match[3]):
            first = int(match[1] or 1)
            last = int(match[3] or len(lines)) if match[2] else first
            chosen += lines[max(first - 1, 0) : last]
    return chosen


def _write_code(
    language: str, code: Sequence[str], options: Mapping[str, str], *, is_fenced: bool
) -> Sequence[str]:
    if is_fenced:
        return make_code("\n".join(code), describe_code(language, options)).text.split("\n")
    caption = [f"   :caption: {options['caption']}"] if options.get("caption") else []
    lines = (f"   {line}" for line in code)
    return [f".. code-block:: {language or 'text'}", *caption, "", *lines, ""]


def _load(
    nearby: _Nearby, waiting: list[str], most: int, left: int, largest: int, *, are_sheets: bool
) -> dict[str, bytes]:
    """Return at most `most` files with at most `left` bytes by their addresses relative to the
    page; style sheets with those that they import, which are added to `waiting`.
    """
    files: dict[str, bytes] = {}
    for address in waiting:
        if address in files or len(files) >= most:
            continue
        data = nearby.read(address, min(left, largest), is_exact=are_sheets)
        if data is not None:
            files[address] = data
            left -= len(data)
            if are_sheets:
                waiting += _list_sheets(data[:_HEAD_OF_SHEET], posixpath.dirname(address))
    return files


def _list_sheets(data: bytes, folder: str) -> Iterator[str]:
    """Yield the addresses of style sheets in a page or at the beginning of a style sheet."""
    for match in islice(_SHEET.finditer(data), _MOST_SHEETS):
        address = unescape((match[1] or match[2]).decode("utf-8", "replace"))
        yield posixpath.normpath(posixpath.join(folder, address)) if folder else address
