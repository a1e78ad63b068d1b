"""The facts about the desk and the style of its answers, from the settings."""

from dataclasses import dataclass
from typing import Protocol, Self


class ResponseSettings(Protocol):
    """The settings that the response agent needs."""

    @property
    def domain_name(self) -> str: ...

    @property
    def domain_scope(self) -> str: ...

    @property
    def product_names(self) -> tuple[str, ...]: ...

    @property
    def domain_tone(self) -> str: ...

    @property
    def domain_formatting(self) -> str: ...

    @property
    def glossary(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class DeskDomain:
    """The desk's settings: name, subject, untranslated names, terms with their use, and style.

    `tone` and `formatting` concern the form of answers and leave their content as it is.
    """

    name: str = ""
    scope: str = ""
    product_names: tuple[str, ...] = ()
    glossary: tuple[str, ...] = ()
    tone: str = ""
    formatting: str = ""

    @classmethod
    def of(cls, settings: ResponseSettings) -> Self:
        """Return the facts about the desk that these settings state."""
        return cls(
            name=settings.domain_name,
            scope=settings.domain_scope,
            product_names=settings.product_names,
            glossary=settings.glossary,
            tone=settings.domain_tone,
            formatting=settings.domain_formatting,
        )
