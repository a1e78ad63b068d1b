"""Reads what a page says of itself before it begins: a small mapping in YAML."""

import re
from dataclasses import dataclass

import yaml

from knowledge.documents.decoding import clean_text

MAX_CHARACTERS = 16_384
_FENCED = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_MOST_KEYWORDS = 64


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The stated values; the others are empty or None."""

    title: str = ""
    description: str = ""
    keywords: tuple[str, ...] = ()
    language: str | None = None
    url: str | None = None
    warnings: tuple[str, ...] = ()


class _PlainLoader(yaml.SafeLoader):
    """The safe loader without aliases: a few of them can stand for billions of values."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("it uses aliases")
        return super().compose_node(parent, index)


def take(text: str) -> tuple[FrontMatter, str]:
    """Return the front matter and the text after it; what cannot be used becomes a warning."""
    found = _FENCED.match(text[: MAX_CHARACTERS + 16])
    if found is None:
        return FrontMatter(), text
    rest = text[found.end() :]
    try:
        stated = yaml.load(found[1], _PlainLoader)  # noqa: S506 - a subclass of the safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = str(error).split("\n", 1)[0]
        return FrontMatter(warnings=(f"front matter was ignored: {reason}",)), rest
    if stated is None:
        return FrontMatter(), rest
    if not isinstance(stated, dict):
        kind = type(stated).__name__
        warning = f"front matter was ignored: expected a mapping, found {kind}"
        return FrontMatter(warnings=(warning,)), rest
    return _from_mapping(stated), rest


def _from_mapping(stated: dict[object, object]) -> FrontMatter:
    return FrontMatter(
        title=_text(stated.get("title")),
        description=_text(stated.get("description")),
        keywords=_texts(stated.get("keywords")) or _texts(stated.get("tags")),
        language=_text(stated.get("lang")) or _text(stated.get("language")) or None,
        url=_text(stated.get("url")) or _text(stated.get("canonical_url")) or None,
    )


def _text(value: object) -> str:
    return clean_text(value).strip() if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list):
        return ()
    return tuple(text for item in value[:_MOST_KEYWORDS] if (text := _text(item)))
