"""The passages and documents that tools return, and how they are shown to models."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from math import log

from pydantic import BaseModel, Field

from envelope.sources import MOST_PICTURES, SourcePicture
from knowledge.document import Chunk
from knowledge.index.listing import ListedDocument
from knowledge.index.terms import terms
from knowledge.library.library import WholeDocument
from knowledge.port import Findings, Hit, SearchRequest
from knowledge.sections import join_texts
from tools.calls import CitedPassage, PassageText, ToolCaller
from tools.errors import InvalidInput

MOST_PASSAGES = 30
LONGEST_QUERY = 4_000
LINKED = "is mentioned"
"""The end of the `relation` of a passage that is mentioned in another passage."""
PAGE_CHARACTERS = 8_000
_MOST_LANGUAGES = 8
MOST_DOCUMENTS = 60
_LONGEST_LINE = 200


class FoundPassage(BaseModel, frozen=True):
    """A passage with its citation; `relation` describes how a graph search reached it."""

    citation: CitedPassage
    text: str
    relation: str = ""


class PassageList(BaseModel, frozen=True):
    """Passages, best first; `answerability` (0 to 1) is None if it was not estimated."""

    passages: tuple[FoundPassage, ...] = ()
    answerability: float | None = None
    note: str = ""


class QueryInputs(BaseModel, frozen=True, extra="forbid"):
    """A search query."""

    query: str = Field(
        min_length=1, max_length=LONGEST_QUERY, description="what to look for, in plain words"
    )
    limit: int = Field(default=5, ge=1, le=MOST_PASSAGES, description="passages to return")
    exclude: tuple[str, ...] = Field(
        default=(), max_length=100, description="ids of passages that are known already"
    )


class ShowsPassages:
    """Mixin for tools that return a list of passages."""

    output = PassageList

    def render(self, output: PassageList) -> str:
        return render_passages(output.passages, output.note)

    def cite(self, output: PassageList) -> Iterable[CitedPassage]:
        return cite_passages(output.passages)

    def quote(self, output: PassageList) -> Iterable[PassageText]:
        return quote_passages(output.passages)


class ShowsText(ShowsPassages):
    """Mixin for tools that return continuous text from a document.

    Each section is preceded by the IDs of its passages.
    """

    def render(self, output: PassageList) -> str:
        sections = groupby(output.passages, key=lambda passage: describe_place(passage.citation))
        blocks = [_render_section(place, list(own)) for place, own in sections]
        return "\n\n".join([*blocks, *((output.note,) if output.note else ())])


def make_request(
    inputs: QueryInputs, caller: ToolCaller, *, by_words: bool = False
) -> SearchRequest:
    """Return the search request for a caller, limited to documents that the user may read."""
    return SearchRequest(
        question=inputs.query,
        text=inputs.query,
        language=caller.language or None,
        limit=inputs.limit,
        exclude=inputs.exclude,
        groups=caller.groups,
        run=caller.run,
        by_words=by_words,
    )


def list_passages(findings: Findings) -> PassageList:
    """Return the hits of a search as a list of passages."""
    return PassageList(
        passages=tuple(
            FoundPassage(citation=cite_hit(hit), text=hit.text) for hit in findings.hits
        ),
        answerability=round(findings.answerability, 4),
        note="" if findings.hits else "nothing was found",
    )


def cite_hit(hit: Hit) -> CitedPassage:
    """Return the citation of a hit."""
    return CitedPassage(
        chunk_id=hit.chunk_id,
        document_id=hit.document_id,
        **hit.place.list_fields(),
        score=round(hit.score, 6),
        pictures=_list_pictures(hit.pictures),
    )


def cite_chunk(document: WholeDocument, number: int, score: float = 0.0) -> CitedPassage:
    """Return the citation of the chunk at position `number` of a document."""
    return cite_place(document.listed, document.crumbs, document.chunks[number].chunk, score)


def cite_place(
    listed: ListedDocument, crumbs: tuple[str, ...], chunk: Chunk, score: float = 0.0
) -> CitedPassage:
    """Return the citation of a chunk of a document."""
    return CitedPassage(
        chunk_id=chunk.chunk_id,
        document_id=listed.id,
        title=listed.title,
        crumbs=crumbs,
        heading_path=chunk.heading_path,
        anchor=chunk.anchor,
        url=listed.url,
        path=listed.source,
        language=listed.language,
        version=listed.stated_version or None,
        score=round(score, 6),
        pictures=_list_pictures(chunk.pictures),
    )


def render_passages(passages: Sequence[FoundPassage], note: str = "") -> str:
    """Return passages as text for a model, with id, location, relation, and text."""
    blocks = [
        f"[{passage.citation.chunk_id}] {describe_place(passage.citation)}"
        + (f" ({passage.relation})" if passage.relation else "")
        + f"\n{passage.text}"
        for passage in passages
    ]
    return "\n\n".join([*blocks, *((note,) if note else ())])


def describe_place(citation: CitedPassage) -> str:
    """Return the breadcrumbs, title, headings and version of a passage as one line."""
    path = dict.fromkeys((*citation.crumbs, citation.title, *citation.heading_path))
    version = f" (version {citation.version})" if citation.version else ""
    return " > ".join(path) + version


def cite_passages(passages: Iterable[FoundPassage]) -> list[CitedPassage]:
    """Return the citations of passages, without duplicates."""
    return list({passage.citation.chunk_id: passage.citation for passage in passages}.values())


def quote_passages(passages: Iterable[FoundPassage]) -> list[PassageText]:
    """Return the texts of passages; quotes from the same passage are joined."""
    by_id: dict[str, list[FoundPassage]] = {}
    for passage in passages:
        by_id.setdefault(passage.citation.chunk_id, []).append(passage)
    return [
        PassageText(
            citation=quotes[0].citation,
            text="\n".join(dict.fromkeys(quote.text for quote in quotes)),
            is_linked=any(LINKED in quote.relation for quote in quotes),
        )
        for quotes in by_id.values()
    ]


def read_page(document: WholeDocument, numbers: Sequence[int], page: int) -> PassageList:
    """Return the passages of a page (1-based); raises `InvalidInput` if the page does not exist."""
    pages = _split_pages(document, numbers)
    if page > len(pages):
        raise InvalidInput(f"expected a page from 1 to {len(pages)}, found {page}")
    passages = (
        FoundPassage(citation=cite_chunk(document, number), text=document.chunks[number].chunk.text)
        for number in pages[page - 1]
    )
    note = f"page {page} of {len(pages)}" if len(pages) > 1 else ""
    return PassageList(passages=tuple(passages), note=note)


def describe_documents(
    documents: Sequence[ListedDocument], question: str = "", most: int = MOST_DOCUMENTS
) -> tuple[str, ...]:
    """Return a line for each of up to `most` documents, and one with the number of remaining ones.

    If there are more, documents whose titles share rare words with the question come first.
    """
    shown = documents if len(documents) <= most else _sort_by_words(documents, question)
    lines = [_describe(document) for document in shown[:most]]
    left = len(documents) - len(lines)
    return (*lines, f"... and {left} further documents") if left else tuple(lines)


def list_languages(documents: Iterable[ListedDocument]) -> tuple[str, ...]:
    """Return the languages of documents as ISO 639-1 codes, most frequent first."""
    counts = Counter(document.language for document in documents if document.language)
    return tuple(language for language, _ in counts.most_common(_MOST_LANGUAGES))


def _list_pictures(pictures: Sequence[tuple[str, str]]) -> tuple[SourcePicture, ...]:
    return tuple(SourcePicture(id=name, caption=text) for name, text in pictures[:MOST_PICTURES])


def _render_section(place: str, passages: Sequence[FoundPassage]) -> str:
    ids = " ".join(f"[{passage.citation.chunk_id}]" for passage in passages)
    return f"{ids} {place}\n{join_texts([passage.text for passage in passages]).text}"


def _split_pages(document: WholeDocument, numbers: Sequence[int]) -> list[list[int]]:
    """Split passages into pages; a passage longer than a page gets a separate page."""
    pages: list[list[int]] = [[]]
    room = PAGE_CHARACTERS
    for number in numbers:
        size = len(document.chunks[number].chunk.text)
        if size > room and pages[-1]:
            pages.append([])
            room = PAGE_CHARACTERS
        pages[-1].append(number)
        room -= size
    return pages


def _sort_by_words(documents: Sequence[ListedDocument], question: str) -> list[ListedDocument]:
    asked = {document.language: set(terms(question, document.language)) for document in documents}
    words = [set(terms(document.title, document.language)) for document in documents]
    counts = Counter(word for own in words for word in own)

    def weigh(place: int) -> float:
        shared = asked[documents[place].language] & words[place]
        return -sum(log(1 + len(documents) / counts[word]) for word in shared)

    return [documents[place] for place in sorted(range(len(documents)), key=weigh)]


def _describe(document: ListedDocument) -> str:
    facts = ", ".join(_list_facts(document))
    return f"{document.id}: {document.title}{f' ({facts})' if facts else ''}"[:_LONGEST_LINE]


def _list_facts(document: ListedDocument) -> Iterator[str]:
    if document.kind:
        yield document.kind
    if document.stated_version:
        yield f"version {document.stated_version}"
    yield document.language
