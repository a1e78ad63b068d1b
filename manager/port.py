"""The port of the manager: fixed texts in the user's language."""

from typing import Protocol


class ReplyTexts(Protocol):
    """Fixed texts by key, in the user's language."""

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the texts, ISO 639-1."""
        ...

    def text(self, key: str, language: str, **values: str) -> str:
        """Return the text of `key` in `language`, in English where there is none."""
        ...
