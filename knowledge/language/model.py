"""Loads the n-gram model of `py3langid`, cut to the languages that are asked for.

As it comes the model holds 140 languages; most of its memory is theirs. It is cut while it is read,
so that it is never whole in memory; what remains of it large is mapped from a file without a name.
"""

import lzma
import shutil
import tempfile
from collections.abc import Sequence
from mmap import ACCESS_READ, mmap
from typing import IO, TYPE_CHECKING, Any, Protocol
from zipfile import ZipFile

if TYPE_CHECKING:
    from numpy import dtype
    from numpy.typing import NDArray

_ROWS_AT_ONCE = 4_096
_BYTES_AT_ONCE = 1 << 18
_SHORT = 2
"""Bytes of the smaller kind of whole numbers in the model; the larger kind has four."""


class NGrams(Protocol):
    """Ranks languages by the n-grams of a text; scores are natural logarithms, unnormalised."""

    def rank(self, text: str) -> list[tuple[str, float]]:
        """Return every language of the model with its score, best first."""
        ...


def load(languages: Sequence[str]) -> NGrams:
    """Return the model for `languages`, those that it does not know left out."""
    from py3langid.langid import MODEL_DIR, MODEL_FILE

    with tempfile.TemporaryFile() as unpacked:
        with lzma.open(MODEL_DIR / MODEL_FILE) as packed:
            shutil.copyfileobj(packed, unpacked, length=_BYTES_AT_ONCE)
        unpacked.seek(0)
        with ZipFile(unpacked) as arrays:
            return _cut(arrays, languages)


def _cut(arrays: ZipFile, languages: Sequence[str]) -> NGrams:
    from py3langid.langid import LanguageIdentifier

    names = [str(name) for name in _array(arrays, "classes")]
    columns = [column for column, name in enumerate(names) if name in languages]
    identifier: NGrams = LanguageIdentifier(
        _columns(arrays, "ptc", columns),
        _array(arrays, "pc")[columns],
        [names[column] for column in columns],
        _numbers(arrays, "nextmove"),
        _numbers(arrays, "out_feat"),
        tk_row=_numbers(arrays, "nextmove_row"),
    )
    return identifier


def _array(arrays: ZipFile, name: str) -> "NDArray[Any]":
    import numpy as np

    with arrays.open(f"{name}.npy") as member:
        found: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
    return found


def _numbers(arrays: ZipFile, name: str) -> memoryview:
    """Return a row of whole numbers, mapped from a file: what is never looked at is not loaded."""
    with arrays.open(f"{name}.npy") as member, tempfile.TemporaryFile() as file:
        _, kind = _header(member)
        shutil.copyfileobj(member, file, length=_BYTES_AT_ONCE)
        file.flush()
        mapped = memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))
    return mapped.cast("B").cast("H") if kind.itemsize == _SHORT else mapped.cast("B").cast("i")


def _columns(arrays: ZipFile, name: str, columns: list[int]) -> "NDArray[Any]":
    import numpy as np

    with arrays.open(f"{name}.npy") as member:
        (rows, width), kind = _header(member)
        cut: NDArray[Any] = np.empty((rows, len(columns)), dtype=kind)
        for first in range(0, rows, _ROWS_AT_ONCE):
            count = min(_ROWS_AT_ONCE, rows - first)
            block = np.frombuffer(member.read(count * width * kind.itemsize), dtype=kind)
            cut[first : first + count] = block.reshape(count, width)[:, columns]
    return cut


def _header(member: "IO[bytes]") -> "tuple[tuple[int, ...], dtype[Any]]":
    import numpy as np

    np.lib.format.read_magic(member)
    shape, _, kind = np.lib.format.read_array_header_1_0(member)
    return shape, kind
