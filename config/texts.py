"""Reads the fixed texts, one file per language, and formats them."""

import string
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from config.errors import TextsError

FOLDER = Path(__file__).parent / "texts"
FALLBACK = "en"


class FixedTexts:
    """The fixed texts of all languages; each language has the same keys and placeholders."""

    def __init__(
        self, texts: Mapping[str, Mapping[str, str]], defaults: Mapping[str, str] | None = None
    ) -> None:
        self._texts = texts
        self._defaults = dict(defaults or {})

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the texts, BCP 47."""
        return tuple(self._texts)

    def text(self, key: str, language: str, **values: str) -> str:
        """Return the text of `key` in `language`, or in English if the language has no texts.

        Raises `TextsError` if the key does not exist or a placeholder has no value.
        """
        of_language = self._texts.get(language, self._texts[FALLBACK])
        if key not in of_language:
            raise TextsError(f"there is no fixed text with the key {key!r}")
        try:
            return of_language[key].format_map({**self._defaults, **values})
        except KeyError as missing:
            raise TextsError(f"the text {key!r} requires a value for {missing}") from None


def load_texts(folder: Path = FOLDER, **defaults: str) -> FixedTexts:
    """Load the texts of all files in `folder`; `defaults` are placeholder values for all texts.

    Raises `TextsError` if a file cannot be read, or languages differ in keys or placeholders.
    """
    return FixedTexts(_read_folder(folder), defaults)


def names_in(text: str) -> set[str]:
    """Return the placeholders of the text."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@cache
def _read_folder(folder: Path) -> Mapping[str, Mapping[str, str]]:
    """Read a folder once per process, because several agents load the same texts."""
    texts = {path.stem: _read(path) for path in sorted(folder.glob("*.toml"))}
    if FALLBACK not in texts:
        raise TextsError(f"{FALLBACK}.toml is missing in {folder}, which contains {sorted(texts)}")
    for language, of_language in texts.items():
        _check(language, of_language, texts[FALLBACK])
    return texts


def _read(path: Path) -> dict[str, str]:
    try:
        texts = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TextsError(f"the fixed texts in {path.name} cannot be read: {error}") from error
    return {key: str(text) for key, text in texts.items()}


def _check(language: str, texts: Mapping[str, str], pattern: Mapping[str, str]) -> None:
    differing = sorted(texts.keys() ^ pattern.keys())
    if differing:
        raise TextsError(
            f"{language}.toml and {FALLBACK}.toml must have the same keys; the key "
            f"{differing[0]!r} is missing in one of them"
        )
    for key, text in texts.items():
        if names_in(text) != names_in(pattern[key]):
            raise TextsError(
                f"{language}.toml: the text {key!r} must contain the placeholders "
                f"{sorted(names_in(pattern[key]))}; it contains {sorted(names_in(text))}"
            )
