"""The passages and documents that tools return, and how a model reads them."""

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
"""What the relation of a passage says that another one names."""
PAGE_CHARACTERS = 8_000
_MOST_LANGUAGES = 8
MOST_DOCUMENTS = 60
_LONGEST_LINE = 200


class FoundPassage(BaseModel, frozen=True):
    """A passage with the citation that leads to it; `relation` says how it was reached."""

    citation: CitedPassage
    text: str
    relation: str = ""


class PassageList(BaseModel, frozen=True):
    """Passages, best first; `answerability` is None where nothing was judged."""

    passages: tuple[FoundPassage, ...] = ()
    answerability: float | None = None
    note: str = ""


class QueryInputs(BaseModel, frozen=True, extra="forbid"):
    """A search in words."""

    query: str = Field(
        min_length=1, max_length=LONGEST_QUERY, description="what to look for, in plain words"
    )
    limit: int = Field(default=5, ge=1, le=MOST_PASSAGES, description="passages to return")
    exclude: tuple[str, ...] = Field(
        default=(), max_length=100, description="ids of passages that are known already"
    )


class ShowsPassages:
    """The output of a tool is a list of passages."""

    output = PassageList

    def render(self, output: PassageList) -> str:
        return render_passages(output.passages, output.note)

    def cite(self, output: PassageList) -> Iterable[CitedPassage]:
        return cite_passages(output.passages)

    def quote(self, output: PassageList) -> Iterable[PassageText]:
        return quote_passages(output.passages)


class ShowsText(ShowsPassages):
    """The output of a tool is a text of a document, which a model reads as it stands there.

    The ids of its passages precede each section.
    """

    def render(self, output: PassageList) -> str:
        sections = groupby(output.passages, key=lambda one: describe_place(one.citation))
        blocks = [_render_section(place, list(own)) for place, own in sections]
        return "\n\n".join([*blocks, *((output.note,) if output.note else ())])


def make_request(
    inputs: QueryInputs, caller: ToolCaller, *, by_words: bool = False
) -> SearchRequest:
    """Return the search for a caller; it finds only documents that the person may read."""
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
    """Return the hits of a search as passages."""
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
    """Return the citation of a chunk of a document by its position."""
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
    """Return passages as a model reads them: id, place, relation, text."""
    blocks = [
        f"[{found.citation.chunk_id}] {describe_place(found.citation)}"
        + (f" ({found.relation})" if found.relation else "")
        + f"\n{found.text}"
        for found in passages
    ]
    return "\n\n".join([*blocks, *((note,) if note else ())])


def describe_place(citation: CitedPassage) -> str:
    """Return the title with crumbs and headings."""
    path = dict.fromkeys((*citation.crumbs, citation.title, *citation.heading_path))
    version = f" (version {citation.version})" if citation.version else ""
    return " > ".join(path) + version


def cite_passages(passages: Iterable[FoundPassage]) -> list[CitedPassage]:
    """Return the citations of passages, each once."""
    return list({found.citation.chunk_id: found.citation for found in passages}.values())


def quote_passages(passages: Iterable[FoundPassage]) -> list[PassageText]:
    """Return the texts of passages, each passage once with all that is quoted of it."""
    by_id: dict[str, list[FoundPassage]] = {}
    for passage in passages:
        by_id.setdefault(passage.citation.chunk_id, []).append(passage)
    return [
        PassageText(
            citation=found[0].citation,
            text="\n".join(dict.fromkeys(passage.text for passage in found)),
            is_linked=any(LINKED in passage.relation for passage in found),
        )
        for found in by_id.values()
    ]


def read_page(document: WholeDocument, numbers: Sequence[int], page: int) -> PassageList:
    """Return the passages of one page; raises `InvalidInput` for a page that there is not."""
    pages = _divide(document, numbers)
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
    """Return a line for each of the first documents, and one that counts the others.

    Where there are more, those come first whose titles share the rarest words with the question.
    """
    shown = documents if len(documents) <= most else _sort_by_words(documents, question)
    lines = [_describe(document) for document in shown[:most]]
    left = len(documents) - len(lines)
    return (*lines, f"... and {left} further documents") if left else tuple(lines)


def list_languages(documents: Iterable[ListedDocument]) -> tuple[str, ...]:
    """Return the languages of documents, ISO 639-1, the most frequent first."""
    counts = Counter(document.language for document in documents if document.language)
    return tuple(language for language, _ in counts.most_common(_MOST_LANGUAGES))


def _list_pictures(pictures: Sequence[tuple[str, str]]) -> tuple[SourcePicture, ...]:
    return tuple(SourcePicture(id=name, caption=text) for name, text in pictures[:MOST_PICTURES])


def _render_section(place: str, passages: Sequence[FoundPassage]) -> str:
    ids = " ".join(f"[{passage.citation.chunk_id}]" for passage in passages)
    return f"{ids} {place}\n{join_texts([passage.text for passage in passages]).text}"


def _divide(document: WholeDocument, numbers: Sequence[int]) -> list[list[int]]:
    """Return the passages of each page; one that is longer than a page has a page of its own."""
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
