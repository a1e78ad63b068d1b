"""Reads what the sheets of an old Excel workbook (BIFF) have beside their cells.

The library that reads the cells skips these records ([MS-XLS] 2.3).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct

from knowledge.documents.page import LeftOutCounts
from knowledge.documents.tables import CONDITIONAL

_HEAD = Struct("<HH")
_BEGIN, _END = frozenset({0x0009, 0x0209, 0x0409, 0x0809}), 0x000A
_BEGINNING = b"\x09\x08"
_SHEET, _OBJECT, _BOX, _CONTINUATION = 0x0085, 0x005D, 0x01B6, 0x003C
_HEADERS = frozenset({0x0014, 0x0015})
_BACKGROUNDS = frozenset({0x01B0, 0x0879, 0x00E9})
"""Conditional formats, and a picture behind a sheet."""
_CELLS = frozenset({0x00FD, 0x0203, 0x027E, 0x00BD, 0x0201, 0x00BE, 0x0208})
_NOTE = 0x19
_STRINGS = 0x00FC
_HEAD_OF_STRINGS = Struct("<II")
"""The numbers of uses of strings and of strings, which precede the strings of a workbook."""
_DEFINED_NAME, _CELL_NOTE, _UNUSED = 0x0018, 0x001C, b"\xff\x1f"
_AUTHOR = Struct("<HB")
"""The number of characters of a name, and their size, after the place of a note in 8 bytes."""
_CONTROLS = (*range(0x0B, 0x0E), *range(0x10, 0x13))
_OBJECTS = {
    0x05: ("chart", "charts in .xls are not read: save the workbook as .xlsx"),
    0x08: ("object", "pictures and files in .xls are not read: save the workbook as .xlsx"),
    **dict.fromkeys(_CONTROLS, ("form control", "controls on sheets are not read")),
}
_CONDITION = 0x01B1
_SIZE_OF_RUN = 8


@dataclass(slots=True)
class Box:
    """The text of a box, of `length` characters, and its fonts by the places where they begin."""

    length: int
    text: str = ""
    runs: list[tuple[int, int]] = field(default_factory=list)

    def add(self, data: bytes) -> None:
        """Add the next part of the text or, after it, of its fonts."""
        if len(self.text) < self.length:
            self.text += _decode(data, self.length - len(self.text))
        else:
            places = range(0, len(data), _SIZE_OF_RUN)
            runs = ((_read_number(data, at), _read_number(data, at + 2)) for at in places)
            self.runs += (run for run in runs if run[0] < self.length)


@dataclass(slots=True)
class SheetParts:
    """What a sheet has beside its cells: text boxes, printed headers, and other objects.

    `may_have_backgrounds`: a picture or a condition may change what is behind its cells.
    """

    boxes: list[Box] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    left_out: LeftOutCounts = field(default_factory=LeftOutCounts)
    may_have_backgrounds: bool = False
    _is_skipped: bool = False
    _is_open: bool = False

    def add(self, kind: int, data: bytes) -> None:
        """Add a record of the sheet."""
        if kind == _CONTINUATION and self._is_open:
            self.boxes[-1].add(data)
            return
        self._is_open = kind == _BOX and not self._is_skipped
        self.may_have_backgrounds |= kind in _BACKGROUNDS
        if self._is_open:
            self.boxes.append(Box(_read_number(data, 10)))
        elif kind == _CONDITION:
            self.left_out.add(*CONDITIONAL)
        elif kind == _OBJECT:
            self._add_object(_read_number(data, 4))
        elif kind in _HEADERS:
            self.headers.append(_decode(data[2:], _read_number(data, 0)))

    def _add_object(self, shown: int) -> None:
        self._is_skipped = shown == _NOTE or shown in _CONTROLS
        if shown in _OBJECTS:
            self.left_out.add(*_OBJECTS[shown])


def read_parts(stream: bytes, left_out: LeftOutCounts) -> list[SheetParts]:
    """Return the parts of each sheet with cells; count the other sheets of the workbook."""
    sheets: dict[int, SheetParts] = {}
    current: SheetParts | None = None
    depth = 0
    for at, kind, data in _list_records(stream):
        if kind == _SHEET:
            if data[5:6] == b"\0":
                place = _read_number(data, 0) + 0x10000 * _read_number(data, 2)
                sheets[place] = SheetParts()
            else:
                name = _decode(data[7:], len(data))
                left_out.add("sheet", "only sheets with cells are read", name=name)
        elif kind in _BEGIN or kind == _END:
            # A chart on a sheet begins and ends inside of it.
            current = sheets.get(at) if depth == 0 else current
            depth += -1 if kind == _END else 1
        elif current is not None and depth == 1:
            current.add(kind, data)
    return list(sheets.values())


def mend_records(stream: bytes) -> bytes:
    """Return the stream of a workbook without defined names and authors of notes, at some of which
    the library fails, and with the true number of its strings: some programs state more.
    """
    if not stream.startswith(_BEGINNING):
        return stream
    mended = bytearray(stream)
    is_biff8 = stream[4:6] == b"\0\6"
    for at, kind, data in _list_records(stream):
        following = _read_number(stream, at + _HEAD.size + len(data))
        if kind == _DEFINED_NAME:
            mended[at : at + 2] = _UNUSED
        elif kind == _CELL_NOTE and is_biff8 and len(data) >= 8 + _AUTHOR.size:
            _AUTHOR.pack_into(mended, at + _HEAD.size + 8, len(data) - 8 - _AUTHOR.size, 0)
        elif kind == _STRINGS and following != _CONTINUATION:
            number = _count_strings(data)
            _HEAD_OF_STRINGS.pack_into(mended, at + _HEAD.size, number, number)
    return bytes(mended)


def _list_records(stream: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the place, the kind and the data of each record other than cells."""
    at = 0
    while at + _HEAD.size <= len(stream):
        kind, size = _HEAD.unpack_from(stream, at)
        end = at + _HEAD.size + size
        if kind not in _CELLS:
            yield at, kind, stream[at + _HEAD.size : end]
        at = end


def _count_strings(data: bytes) -> int:
    """Return the number of strings in a record; each states its length, and what is behind it."""
    number, at = 0, _HEAD_OF_STRINGS.size
    while at + 3 <= len(data):
        has_runs, has_phonetic, is_wide = (data[at + 2] >> bit & 1 for bit in (3, 2, 0))
        head = at + 3 + 2 * has_runs
        size = has_phonetic and int.from_bytes(data[head : head + 4], "little")
        size += 4 * has_phonetic + 4 * has_runs * _read_number(data, at + 3)
        at = head + size + _read_number(data, at) * (1 + is_wide)
        number += at <= len(data)
    return number


def _read_number(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "little")


def _decode(data: bytes, length: int) -> str:
    """Return the text of at most `length` characters after the byte that states their size."""
    is_wide = bool(data[:1]) and data[0] & 1
    encoding = "utf-16-le" if is_wide else "latin-1"
    return data[1 : 1 + length * (1 + is_wide)].decode(encoding, "replace")
