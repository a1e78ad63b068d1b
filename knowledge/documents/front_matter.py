"""Reads the front matter of a page: a short mapping in YAML, or in TOML between `+++`."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, time
from itertools import chain

import yaml

from envelope.question import parse_groups
from knowledge.documents.decoding import clean_text
from knowledge.documents.page import BlockKind, LeftOut, Page
from knowledge.documents.stated_version import parse_stated_version

MAX_CHARACTERS = 16_384
_FENCED = re.compile(
    r"\A(?:---[ \t]*\n(?P<yaml>.*?)^(?:---|\.\.\.)|\+\+\+[ \t]*\n(?P<toml>.*?)^\+\+\+)"
    r"[ \t]*(?:\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
_FENCES = ("---", "+++")
_MOST_KEYWORDS = 64

_MAY_STATE_GROUPS = re.compile(r"^[\"']?groups[\"']?[ \t]*[:=]", re.IGNORECASE | re.MULTILINE)
_USED = frozenset(
    {"title", "description", "keywords", "tags", "lang", "language", "url", "canonical_url"}
    | {"groups", "version"}
)
_SETTING = "words and numbers are settings of the website rather than statements"
_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{4}")
_SAMPLE_CHARACTERS = 2000
_Stated = tuple[dict[object, object], list[tuple[str, str]]]
"""The values of a front matter, and each as written; of a structure, the statements in it."""


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The values of the front matter; missing ones are empty or None. `fields` are values with
    other names.

    `unclear_groups` is the reason why the groups that may read the page cannot be determined. Such
    a page must not be read, because it would be public.
    """

    title: str = ""
    description: str = ""
    keywords: tuple[str, ...] = ()
    language: str | None = None
    url: str | None = None
    version: str = ""
    groups: tuple[str, ...] = ()
    unclear_groups: str = ""
    fields: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    warnings: tuple[str, ...] = ()


class _PlainLoader(yaml.SafeLoader):
    """A safe loader without aliases, because a few aliases can expand to billions of values."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("it uses aliases")
        return super().compose_node(parent, index)


def take(text: str) -> tuple[FrontMatter, str]:
    """Return the front matter and the text after it; unusable values become warnings."""
    match = _FENCED.match(text[: MAX_CHARACTERS + 16])
    if match is None:
        head = text[:MAX_CHARACTERS]
        is_unclear = head.startswith(_FENCES) and _MAY_STATE_GROUPS.search(head) is not None
        return FrontMatter(unclear_groups="its front matter is not closed" * is_unclear), text
    rest = text[match.end() :]
    source = match["yaml"] if match["toml"] is None else match["toml"]
    read = _read_yaml if match["toml"] is None else _read_toml
    try:
        stated, pairs = read(source)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = str(error).split("\n", 1)[0]
        return _ignore(source, f"front matter was ignored: {reason}"), rest
    written = [(clean_text(name), " ".join(clean_text(value).split())) for name, value in pairs]
    version = next((value for name, value in written if name.casefold() == "version"), "")
    fields = [(name, value) for name, value in written if name.casefold() not in _USED]
    shown = tuple(f"{name}: {value}" for name, value in fields if _is_statement(value))
    mixed = {clean_text(str(name)) for name, value in stated.items() if _has_settings(value)}
    left = [name for name, value in fields if name in mixed or not _is_statement(value)]
    left_out = LeftOut("front matter field", len(left), _SETTING, tuple(left[:5]))
    return (
        replace(
            _from_mapping(stated),
            version=parse_stated_version(version),
            fields=shown,
            left_out=(left_out,) if left else (),
        ),
        rest,
    )


def parse_stated_groups(value: object) -> tuple[str, ...]:
    """Return the groups that a document states, as a list or a string; raises `ValueError`."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not names:
        raise ValueError(
            f"expected a list of group names, found {value!r:.80}; omit it for a public document"
        )
    return parse_groups(names)


def list_keywords(value: object) -> tuple[str, ...]:
    """Return the keywords that a document states, as a list or a string."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list):
        return ()
    return tuple(text for item in value[:_MOST_KEYWORDS] if (text := _text(item)))


def find_stated_language(page: Page) -> str | None:
    """Return the language code that a page states (`pt` for `pt-BR`), or None."""
    stated = (page.language or "").replace("_", "-").partition("-")[0].strip().lower()
    return stated if len(stated) in (2, 3) and stated.isascii() and stated.isalpha() else None


def make_sample(page: Page) -> str:
    """Return the title and the first characters of a page, without code."""
    parts: list[str] = [page.title]
    room = _SAMPLE_CHARACTERS
    for block in page.blocks:
        if block.kind is not BlockKind.CODE and room > 0:
            parts.append(block.text[:room])
            room -= len(block.text)
    return "\n".join(parts)


def _read_yaml(source: str) -> _Stated:
    loader = _PlainLoader(source)
    node = loader.get_single_node()
    stated = {} if node is None else loader.construct_document(node)
    if not (isinstance(stated, dict) and isinstance(node, yaml.MappingNode | None)):
        raise ValueError(f"expected a mapping, found {type(stated).__name__}")
    # As written, because YAML would parse `1.10` as the number 1.1.
    return stated, [
        (
            key.value,
            value.value
            if isinstance(value, yaml.ScalarNode)
            else "; ".join(_list_statements(stated.get(key.value))),
        )
        for key, value in (node.value if node is not None else ())
        if isinstance(key, yaml.ScalarNode)
    ]


def _read_toml(source: str) -> _Stated:
    # As written, because 1.10 would be the number 1.1.
    stated: dict[object, object] = dict(tomllib.loads(source, parse_float=str).items())
    scalars = (str, int, date, time)
    return stated, [
        (
            str(name),
            str(value) if isinstance(value, scalars) else "; ".join(_list_statements(value)),
        )
        for name, value in stated.items()
    ]


def _list_statements(value: object) -> Iterator[str]:
    """Yield the texts in a structure that are statements; all texts of a list that has one."""
    if isinstance(value, str):
        yield from [value] if _is_statement(value) else ()
        return
    items = list(
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    )
    texts = [item for item in items if isinstance(item, str)]
    if isinstance(value, list) and len(texts) == len(items) and any(map(_is_statement, texts)):
        yield from texts
    else:
        yield from chain.from_iterable(map(_list_statements, items))


def _has_settings(value: object) -> bool:
    """Return whether a structure has parts that are no statements."""
    if not isinstance(value, dict | list):
        return False
    waiting: list[object] = [value]
    parts = 0
    while waiting:
        part = waiting.pop()
        inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        waiting += inner
        parts += not isinstance(part, dict | list)
    return parts > len(list(_list_statements(value)))


def _is_statement(value: str) -> bool:
    """Return whether a value is informative: a date, or several words."""
    words = value.split()
    is_text = len(words) > 1 and all(word[0].isalnum() or word[0] in "(\"'" for word in words)
    return _DATE.match(value) is not None or is_text


def _ignore(stated: str, warning: str) -> FrontMatter:
    is_unclear = _MAY_STATE_GROUPS.search(stated) is not None
    return FrontMatter(warnings=(warning,), unclear_groups=warning if is_unclear else "")


def _from_mapping(stated: dict[object, object]) -> FrontMatter:
    named = [value for key, value in stated.items() if _text(key).casefold() == "groups"]
    groups: tuple[str, ...] = ()
    unclear = ""
    try:
        groups = parse_groups(name for value in named for name in parse_stated_groups(value))
    except ValueError as error:
        unclear = str(error)
    return FrontMatter(
        groups=groups,
        unclear_groups=unclear,
        title=_text(stated.get("title")),
        description=_text(stated.get("description")),
        keywords=list_keywords(stated.get("keywords")) or list_keywords(stated.get("tags")),
        language=_text(stated.get("lang")) or _text(stated.get("language")) or None,
        url=_text(stated.get("url")) or _text(stated.get("canonical_url")) or None,
    )


def _text(value: object) -> str:
    return clean_text(value).strip() if isinstance(value, str) else ""
