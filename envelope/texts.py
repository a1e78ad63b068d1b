"""The port through which agents, manager and gateway read fixed texts."""

from typing import Protocol


class Texts(Protocol):
    """Fixed texts by key, in English if there is none in the user's language."""

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the texts, ISO 639-1."""
        ...

    def text(self, key: str, language: str, **values: str) -> str:
        """Return the text of `key` with its placeholders filled in."""
        ...
