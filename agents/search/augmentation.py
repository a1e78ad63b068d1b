"""Numbers the sources and combines them with the question.

The prompt of the response agent contains `augmented_prompt` unchanged. The text of each source and
every text from the user is in a separate data block; only text outside of these blocks can refer to
a source. The search has assembled the context for the smallest context window of the models.
"""

from pydantic import BaseModel, JsonValue

from agents.agent import Agent, MayAsk, ProgressStep
from citations.fencing import fence
from citations.marking import escape_brackets
from envelope.outcome import GaveUp, HopOutcome, Wrote
from envelope.role import Role
from envelope.sources import SearchResult, SourceReference

READ_AGAIN = 5
"""The number of best sources of the first search that the writer reads again together with the
results of a further search, because a rule and its consequence may be in different sources.
"""


class Reads(BaseModel, frozen=True):
    """The results of the search, and the question."""

    search_results: tuple[SearchResult, ...] = ()
    search_context: str = ""
    canonical_question: str
    language: str = "en"
    text: str = ""
    assumption: str = ""
    searches_again: bool = False
    quality_analysis: str = ""
    source_references: tuple[SourceReference, ...] = ()


class Writes(MayAsk, frozen=True):
    """The sources and the question as one text, and the sources that may be cited."""

    augmented_prompt: str
    source_references: tuple[SourceReference, ...]
    context_structure: dict[str, JsonValue]


class AugmentationAgent(Agent[Reads, Writes]):
    """Numbers every result that has a text, in the order of the texts.

    If no source answered the question in an earlier attempt, the writer reads the sources that a
    further search found, and the best of the earlier sources, which may complement them.
    """

    role = Role.AUGMENTATION
    step = ProgressStep.SEARCH
    reads = Reads
    writes = Writes

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        outside = [r for r in reads.search_results if not _fits(r, len(reads.search_context))]
        if outside:
            return GaveUp(
                f"expected spans within the {len(reads.search_context)} characters of "
                f"search_context, found {outside[0].span} of {outside[0].chunk_id!r}"
            )
        references = _number_references(reads.search_results)
        return Wrote(
            Writes(
                augmented_prompt=_prompt(reads, references),
                source_references=references,
                context_structure=_structure(references),
            )
        )


def _fits(result: SearchResult, length: int) -> bool:
    return result.span is None or 0 <= result.span[0] <= result.span[1] <= length


def _number_references(results: tuple[SearchResult, ...]) -> tuple[SourceReference, ...]:
    given = [(result, result.span) for result in results if result.span is not None]
    given.sort(key=lambda item: item[1])
    return tuple(
        SourceReference(
            number=number,
            chunk_id=result.chunk_id,
            **result.list_fields(),
            span=span,
            is_cut=result.is_cut,
            is_release_notes=result.is_release_notes,
            found=result.found,
            pictures=result.pictures,
        )
        for number, (result, span) in enumerate(given, start=1)
    )


def _prompt(reads: Reads, references: tuple[SourceReference, ...]) -> str:
    read = _choose_read(reads, references)
    blocks = [_source_block(reference, reads.search_context) for reference in read]
    if reads.assumption:
        blocks.append(fence(reads.assumption, "assumption"))
    if _one_line(reads.text) not in ("", _one_line(reads.canonical_question)):
        blocks.append(fence(reads.text, "what the user typed"))
    blocks.append(fence(reads.canonical_question, "question"))
    return "\n".join(blocks)


def _choose_read(
    reads: Reads, references: tuple[SourceReference, ...]
) -> tuple[SourceReference, ...]:
    """Return the references that the writer reads. Of those that did not answer the question
    before, only the best are included.
    """
    if not reads.searches_again or reads.quality_analysis:
        return references
    best = sorted(reads.source_references, key=lambda reference: reference.number)[:READ_AGAIN]
    known = {reference.chunk_id for reference in reads.source_references}
    left_out = known - {reference.chunk_id for reference in best}
    return tuple(reference for reference in references if reference.chunk_id not in left_out)


def _source_block(reference: SourceReference, context: str) -> str:
    start, end = reference.span
    address = reference.url if reference.url is not None else reference.path
    version = f"version {reference.version}" if reference.version else ""
    parts = (reference.trail, version, address or "", reference.language or "")
    place = " | ".join(_one_line(part) for part in parts if part)
    kind = ", release notes" if reference.is_release_notes else ""
    kind += ", a part of its section" if reference.is_cut else ""
    text = fence(escape_brackets(f"{place}\n\n{context[start:end]}"), "source")
    return f"Source {reference.number}{kind}:\n{text}"


def _one_line(text: str) -> str:
    """Return `text` without line breaks."""
    return " ".join(text.split())


def _structure(references: tuple[SourceReference, ...]) -> dict[str, JsonValue]:
    by_place: dict[str, list[JsonValue]] = {}
    for reference in references:
        page = " > ".join(reference.crumbs) or reference.title
        by_place.setdefault(page, []).append(reference.number)
    languages: list[JsonValue] = [*sorted({r.language for r in references if r.language})]
    pages: list[JsonValue] = [
        {"page": page, "sources": numbers} for page, numbers in by_place.items()
    ]
    return {
        "sources": len(references),
        "characters": sum(r.span[1] - r.span[0] for r in references),
        "languages": languages,
        "pages": pages,
    }
