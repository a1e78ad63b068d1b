"""Detects languages by script, letters, n-grams and prior probabilities.

The distributed model is compressed and contains 140 languages, which take most of its memory;
decompression takes half a second. The model is reduced during decompression, so that it is never
completely in memory, and memory-mapped from files, so that only pages that are accessed are loaded.
The files can be kept for the next process.
"""

import hashlib
import json
import lzma
import math
import mmap
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol
from zipfile import ZipFile

from knowledge.language.port import PRIOR_SHARE, Detection
from knowledge.language.scripts import (
    CANDIDATES,
    LANGUAGES_OF_SCRIPT,
    decide_by_script,
    in_script,
    missing_letters,
)
from knowledge.stop_words import function_words

if TYPE_CHECKING:
    from numpy import dtype
    from numpy.typing import NDArray

_USUAL = {
    "en": 1.4, "ru": 1.2, "ar": 0.7, "hi": 0.7, "de": 0.5, "es": 0.5, "fr": 0.5,
    "pt": 0.5, "uk": 0.5,
}  # fmt: skip
"""The logarithm of the prior probability of a language, relative to the others."""
_RARE = frozenset(
    {"af", "be", "ca", "et", "hr", "kk", "lt", "lv", "mk", "mn", "mr", "ne", "sl", "sr", "sw"}
)
_RARE_WEIGHT = -1.5
_SHARPNESS = 2.0
"""The factor of n-gram scores, per square root of the number of bytes in the text, that calibrates
the confidence.
"""
_MISSING_LETTER = 1.0
_SMALL_WORD = 2.0
_ENOUGH_SMALL_WORDS = 3
_ALONE_IN_SCRIPT = frozenset(
    names[0] for names in LANGUAGES_OF_SCRIPT.values() if len(names) == 1
) - {"ja"}
_APART = re.compile(r"[^\w']+")


class NGrams(Protocol):
    """Ranks languages by the n-grams of a text; scores are unnormalized natural logarithms."""

    def rank(self, text: str) -> list[tuple[str, float]]:
        """Return all languages of the model with their scores, best first."""
        ...


_LOADED: dict[tuple[str, ...], NGrams] = {}
"""The models in this process, by their languages; they are memory-mapped from files and never
change.
"""
_FORMAT = 1
_ROWS_AT_ONCE = 4_096
_BYTES_AT_ONCE = 1 << 18
_AS_THEY_ARE = ("nextmove", "nextmove_row", "out_feat")
_MAPPED = ("ptc", *_AS_THEY_ARE)
_CALLS_PER_RELEASE = 4


class ScriptAndNgramDetector:
    """Uses the script if it is unambiguous, and the n-gram model otherwise.

    The model is loaded on first use, from the folder `kept_in` if given. Instances keep no state
    between texts.
    """

    def __init__(
        self, *, candidates: Sequence[str] = CANDIDATES, kept_in: Path | None = None
    ) -> None:
        self._candidates = tuple(candidates)
        self._kept_in = kept_in

    def detect(
        self,
        text: str,
        *,
        prior: Mapping[str, float] | None = None,
        prior_share: float = PRIOR_SHARE,
        candidates: Sequence[str] | None = None,
    ) -> Detection:
        """Return the language of `text`; see `Detector`."""
        allowed = self._candidates if candidates is None else tuple(candidates)
        decided = decide_by_script(text, prior, allowed)
        if isinstance(decided, Detection):
            return decided
        words, possible = decided.words, decided.possible
        if decided.script not in {"latin", "han"}:
            words = in_script(words, decided.script)
        return self._likeliest(words, possible, _log_prior(possible, prior or {}, prior_share))

    def _likeliest(
        self, words: str, possible: Sequence[str], beforehand: Mapping[str, float]
    ) -> Detection:
        evidence = self._evidence(words, possible)
        scores = {name: evidence[name] + beforehand[name] for name in possible}
        best = max(possible, key=scores.__getitem__)
        total = sum(math.exp(score - scores[best]) for score in scores.values())
        return Detection(best, round(1 / total, 4))

    def _evidence(self, words: str, possible: Sequence[str]) -> dict[str, float]:
        scale = _SHARPNESS / math.sqrt(len(words.encode()))
        missing = missing_letters(words)
        small = function_words(_APART.split(words.lower()))
        ranked = dict(self._ngrams.rank(words))
        lowest = min(ranked.values())
        return {
            name: scale * ranked.get(name, lowest)
            - _MISSING_LETTER * missing.get(name, 0)
            + _SMALL_WORD * min(small.get(name, 0), _ENOUGH_SMALL_WORDS)
            for name in possible
        }

    @cached_property
    def _ngrams(self) -> NGrams:
        languages = tuple(name for name in self._candidates if name not in _ALONE_IN_SCRIPT)
        # An evaluation opens several desks, and to unpack a model takes half a second.
        if languages not in _LOADED:
            _LOADED[languages] = load(languages, self._kept_in)
        return _LOADED[languages]


class _Lean:
    """A model that regularly releases the memory pages that it has read.

    Each text reads a few different pages, so that over time nearly all pages would be resident. The
    pages remain in the system's cache, so reading them again takes only microseconds.
    """

    def __init__(self, model: NGrams, maps: Sequence[mmap.mmap]) -> None:
        self._model = model
        self._maps = maps
        self._calls = 0

    def rank(self, text: str) -> list[tuple[str, float]]:
        """Return all languages of the model with their scores, best first."""
        ranked = self._model.rank(text)
        self._calls += 1
        if self._calls % _CALLS_PER_RELEASE == 0 and hasattr(mmap, "MADV_DONTNEED"):
            for pages in self._maps:
                pages.madvise(mmap.MADV_DONTNEED)
        return ranked


def load(languages: Sequence[str], kept_in: Path | None = None) -> NGrams:
    """Return the model for `languages`, without those that it does not support.

    If a folder is given, the unpacked model is kept there, and unpacked again if its files are
    unreadable.
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


def _log_prior(
    possible: Sequence[str], prior: Mapping[str, float], prior_share: float
) -> dict[str, float]:
    usual = {
        name: math.exp(_USUAL.get(name, _RARE_WEIGHT if name in _RARE else 0.0))
        for name in possible
    }
    total = sum(usual.values())
    known = sum(prior.get(name, 0.0) for name in possible)
    share = prior_share if known > 0 else 0.0
    return {
        name: math.log(
            (1 - share) * usual[name] / total
            + share * (prior.get(name, 0.0) / known if known > 0 else 0.0)
        )
        for name in possible
    }


def _name(languages: Sequence[str]) -> str:
    made_of = json.dumps([_FORMAT, version("py3langid"), *languages])
    return hashlib.blake2b(made_of.encode(), digest_size=8).hexdigest()


def _keep(languages: Sequence[str], folder: Path) -> None:
    """Unpack the model next to `folder` and move each file into it; other processes may move
    identical files.
    """
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
        array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
    return array


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
