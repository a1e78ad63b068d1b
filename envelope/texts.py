"""The fixed texts of the desk, as everyone who shows one needs them."""

from typing import Protocol


class Texts(Protocol):
    """Fixed texts by key, in English where there is none in the user's language."""

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the texts, ISO 639-1."""
        ...

    def text(self, key: str, language: str, **values: str) -> str:
        """Return the text of `key` with its placeholders filled in."""
        ...
