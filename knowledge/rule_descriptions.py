"""Describes a page with rules: description, summary, key points, and keywords.

Everything is extracted from the page, in its words and language. Existing descriptions (`Prepared`,
front matter) are kept; only missing ones are added.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from knowledge.chunking import sentences, weight
from knowledge.documents.page import Block, BlockKind, Page, Prepared
from knowledge.stop_words import STOP_WORDS

VERSION = "1"

_DESCRIPTION_CHARACTERS = 240
_SUMMARY_WORDS = 120
_SENTENCE_WORDS = 40
_MOST_KEYPOINTS = 16
_MOST_DEFINITIONS = 400
_MOST_IDENTIFIERS = 24
_MOST_HEADINGS = 24
_MOST_FREQUENT = 12
_LEAST_COUNT = 3

_DEFINITION = re.compile(
    "[\u2018\u201c\u201e\u00ab'\"\u300c]([^\u2018\u2019\u201c\u201d\u00ab\u00bb'\"\u300d\n]{2,80})"
    "[\u2019\u201d\u201c\u00bb'\"\u300d]\\s{0,2}[,:(]?\\s{0,2}"
    "(?:means?\\b|is defined as|refers to|stands for|bedeutet|bezeichnet|signifie|d\u00e9signe"
    "|significa|se entiende|si intende|entende-se|oznacza|betekent"
    "|\u043e\u0437\u043d\u0430\u0447\u0430\u0435\u0442|\u043e\u0437\u043d\u0430\u0447\u0430\u0454"
    "|\u3068\u306f|\u662f\u6307|\u6307\u7684\u662f|\u064a\u0639\u0646\u064a"
    "|\u0915\u093e \u0905\u0930\u094d\u0925)"
)
_INLINE_CODE = re.compile(r"`([^`\n]{2,60})`")
_IDENTIFIER = re.compile(r"[\w./:@$-]{2,60}")
_WORD = re.compile(r"[^\W\d_][\w-]{3,39}")


@dataclass(frozen=True, slots=True)
class Description:
    """The description, summary, key points and keywords of a page.

    `problem` is the reason why a method other than the describer's own produced it. If
    `is_provisional` is true, the next ingestion describes the page again.
    """

    description: str = ""
    summary: str = ""
    keypoints: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    problem: str = ""
    is_provisional: bool = False


class RuleDescriber:
    """Describes pages with the rules in this module, without a model.

    `name` can be that of a different method, so that its descriptions of unchanged pages are kept.
    """

    concurrency = 1

    def __init__(self, name: str = f"rules-{VERSION}") -> None:
        self.name = name

    async def describe(self, page: Page, language: str, by_rules: Description) -> Description:
        return by_rules


def describe(page: Page) -> Description:
    """Return the rule-based description; existing parts of the page are kept."""
    made = Description(_lead(page), _summary(page), _keypoints(page), keywords(page))
    return complete_description(page, made)


def complete_description(page: Page, made: Description) -> Description:
    """Return `made`, with generated descriptions replaced by existing ones from the page."""
    prepared = page.prepared if page.prepared is not None else Prepared()
    return replace(
        made,
        description=page.description or made.description,
        summary=prepared.summary or made.summary,
        keypoints=prepared.keypoints or made.keypoints,
        keywords=page.keywords if page.keywords and prepared.chunks else made.keywords,
    )


def definitions(text: str) -> tuple[str, ...]:
    """Return the terms that a text defines, which are quoted and followed by `means` or a
    synonym.
    """
    return tuple(_once(_definitions((text,))))


def keywords(page: Page) -> tuple[str, ...]:
    """Return stated keywords, defined terms, identifiers, headings and frequent words."""
    prose = [block.text for block in page.blocks if block.kind is not BlockKind.CODE]
    words = (
        *page.keywords,
        *islice(_definitions(prose), _MOST_DEFINITIONS),
        *islice(_once(_identifiers(prose)), _MOST_IDENTIFIERS),
        *islice(_once(_headings(page)), _MOST_HEADINGS),
        *_frequent(prose),
    )
    return tuple(_once(words))


def _lead(page: Page) -> str:
    text = next((block.text for block in page.blocks if block.kind is BlockKind.TEXT), "")
    lead = ""
    for sentence in sentences(text[: 4 * _DESCRIPTION_CHARACTERS]):
        if lead and len(lead) + len(sentence) > _DESCRIPTION_CHARACTERS:
            break
        lead = f"{lead} {sentence}".strip()
    return _shorten(lead, _DESCRIPTION_CHARACTERS)


def _summary(page: Page) -> str:
    taken: list[str] = []
    room = _SUMMARY_WORDS
    for _, lead in _leads(page):
        room -= weight(lead)
        if taken and room < 0:
            break
        if lead:
            taken.append(lead)
    return " ".join(taken)


def _keypoints(page: Page) -> tuple[str, ...]:
    points = (f"{heading}: {lead}" if lead else heading for heading, lead in _leads(page))
    return tuple(islice(_once(point for point in points if point), _MOST_KEYPOINTS))


def _leads(page: Page) -> Iterator[tuple[str, str]]:
    """Yield each section's heading with the first sentence below it."""
    heading, lead = page.title, ""
    for block in page.blocks:
        if block.kind is BlockKind.HEADING:
            if lead or heading != page.title:
                yield heading, lead
            heading, lead = block.text, ""
        elif not lead and block.kind in (BlockKind.TEXT, BlockKind.ITEM):
            lead = _first_sentence(block)
    yield heading, lead


def _first_sentence(block: Block) -> str:
    text = block.text.lstrip("-*0123456789.) \t")
    return _shorten(next(sentences(text[:4000]), ""), _SENTENCE_WORDS * 8)


def _definitions(texts: Iterable[str]) -> Iterator[str]:
    return (match[1].strip() for text in texts for match in _DEFINITION.finditer(text))


def _identifiers(texts: Iterable[str]) -> Iterator[str]:
    codes = (match[1].strip() for text in texts for match in _INLINE_CODE.finditer(text))
    counts = Counter(code.removesuffix("()") for code in codes if _IDENTIFIER.match(code))
    return (code for code, _ in counts.most_common())


def _headings(page: Page) -> Iterator[str]:
    yield page.title
    for block in page.blocks:
        if block.kind is BlockKind.HEADING:
            yield block.text.replace("`", "")


def _frequent(texts: Iterable[str]) -> list[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(word.lower() for word in _WORD.findall(text))
    usual = counts.most_common(_MOST_FREQUENT + len(STOP_WORDS))
    words = (word for word, count in usual if count >= _LEAST_COUNT and word not in STOP_WORDS)
    return list(islice(words, _MOST_FREQUENT))


def _once(texts: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for text in texts:
        if text and text.lower() not in seen:
            seen.add(text.lower())
            yield text


def _shorten(text: str, characters: int) -> str:
    if len(text) <= characters:
        return text
    cut = text[: characters - 1]
    space = cut.rfind(" ")
    return f"{cut[:space] if space > characters // 2 else cut}\u2026"
