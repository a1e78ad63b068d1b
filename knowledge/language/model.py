"""Loads the n-gram model of `py3langid`, reduced to the requested languages.

The distributed model is compressed and has 140 languages, which need most of its memory;
decompression takes half a second. The model is reduced during decompression, so that it is never
completely in memory, and mapped from files, so that only accessed pages are loaded. The files can
be kept for the next process.
"""

import hashlib
import json
import lzma
import mmap
import shutil
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol
from zipfile import ZipFile

if TYPE_CHECKING:
    from numpy import dtype
    from numpy.typing import NDArray

_FORMAT = 1
_ROWS_AT_ONCE = 4_096
_BYTES_AT_ONCE = 1 << 18
_AS_THEY_ARE = ("nextmove", "nextmove_row", "out_feat")
_MAPPED = ("ptc", *_AS_THEY_ARE)
_CALLS_PER_RELEASE = 4


class NGrams(Protocol):
    """Ranks languages by the n-grams of a text; scores are natural logarithms, unnormalised."""

    def rank(self, text: str) -> list[tuple[str, float]]:
        """Return every language of the model with its score, best first."""
        ...


def load(languages: Sequence[str], kept_in: Path | None = None) -> NGrams:
    """Return the model for `languages`, without those that it does not know.

    With a folder the unpacked model is kept there, and unpacked again if its files are unreadable.
    """
    if kept_in is None:
        with tempfile.TemporaryDirectory(prefix="refdesk-") as passing:
            _unpack(languages, Path(passing))
            return _open(Path(passing))
    folder = kept_in / _name(languages)
    try:
        return _open(folder)
    except (OSError, ValueError, EOFError):
        _keep(languages, folder)
        return _open(folder)


def _name(languages: Sequence[str]) -> str:
    made_of = json.dumps([_FORMAT, version("py3langid"), *languages])
    return hashlib.blake2b(made_of.encode(), digest_size=8).hexdigest()


def _keep(languages: Sequence[str], folder: Path) -> None:
    """Unpack into a sibling of `folder` and move each file; other processes move equal files."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    passing = Path(tempfile.mkdtemp(prefix="unpacking-", dir=folder.parent))
    try:
        _unpack(languages, passing)
        folder.mkdir(exist_ok=True)
        for file in passing.iterdir():
            file.replace(folder / file.name)
    finally:
        shutil.rmtree(passing, ignore_errors=True)


def _open(folder: Path) -> NGrams:
    import numpy as np
    from py3langid.langid import LanguageIdentifier

    maps, arrays = zip(*(_map_file(folder / f"{name}.npy") for name in _MAPPED), strict=True)
    ptc, nextmove, nextmove_row, out_feat = arrays
    identifier = LanguageIdentifier(
        ptc,
        np.load(folder / "pc.npy"),
        json.loads((folder / "languages.json").read_text("utf-8")),
        memoryview(nextmove),
        memoryview(out_feat),
        tk_row=memoryview(nextmove_row),
    )
    return _Lean(identifier, maps)


def _map_file(file: Path) -> "tuple[mmap.mmap, NDArray[Any]]":
    import numpy as np

    with file.open("rb") as opened:
        shape, kind = _header(opened)
        start = opened.tell()
        pages = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    return pages, np.frombuffer(pages, kind, offset=start).reshape(shape)


class _Lean:
    """A model that regularly releases the memory pages that it has read.

    Each text reads a few different pages; over time nearly all would be resident. The pages remain
    in the system's cache, so that reading them again takes microseconds.
    """

    def __init__(self, model: NGrams, maps: Sequence[mmap.mmap]) -> None:
        self._model = model
        self._maps = maps
        self._calls = 0

    def rank(self, text: str) -> list[tuple[str, float]]:
        """Return every language of the model with its score, best first."""
        ranked = self._model.rank(text)
        self._calls += 1
        if self._calls % _CALLS_PER_RELEASE == 0 and hasattr(mmap, "MADV_DONTNEED"):
            for pages in self._maps:
                pages.madvise(mmap.MADV_DONTNEED)
        return ranked


def _unpack(languages: Sequence[str], folder: Path) -> None:
    from py3langid.langid import MODEL_DIR, MODEL_FILE

    with tempfile.TemporaryFile() as unpacked:
        with lzma.open(MODEL_DIR / MODEL_FILE) as packed:
            shutil.copyfileobj(packed, unpacked, length=_BYTES_AT_ONCE)
        unpacked.seek(0)
        with ZipFile(unpacked) as arrays:
            _cut(arrays, languages, folder)


def _cut(arrays: ZipFile, languages: Sequence[str], folder: Path) -> None:
    import numpy as np

    names = [str(name) for name in _array(arrays, "classes")]
    columns = [column for column, name in enumerate(names) if name in languages]
    np.save(folder / "ptc.npy", _columns(arrays, "ptc", columns))
    np.save(folder / "pc.npy", _array(arrays, "pc")[columns])
    for name in _AS_THEY_ARE:
        with arrays.open(f"{name}.npy") as member, (folder / f"{name}.npy").open("wb") as file:
            shutil.copyfileobj(member, file, length=_BYTES_AT_ONCE)
    kept_names = json.dumps([names[column] for column in columns])
    (folder / "languages.json").write_text(kept_names, "utf-8")


def _array(arrays: ZipFile, name: str) -> "NDArray[Any]":
    import numpy as np

    with arrays.open(f"{name}.npy") as member:
        found: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
    return found


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
