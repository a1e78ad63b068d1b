"""From all of the writer's sources, selects those that the judge reads.

The judge reads the cited sources, the sections next to them, the top search results, and, for each
sentence, the sources with the most words, numbers, and names in common with it. These may reveal an
uncited source, the correct source for a wrong citation, or a contradiction.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from math import log

from citations.blocks import BlockForm, LineBlock
from citations.citing import claims_something
from citations.claims import sentences
from citations.faults import CheckedAnswer, references_by_number, text_of
from citations.marking import remove_marks
from envelope.sources import SourceReference
from knowledge.index.terms import terms
from llm.tasks.search import JudgedSource

LEADING = 5
"""The number of sources at the beginning of the prompt that the judge always reads. They probably
answer the question, even if the answer omits something or is in a different language.
"""
CANDIDATES = 3
"""The number of sources with the most in common with a sentence that the judge reads for it."""


def select_sources(answer: CheckedAnswer) -> tuple[JudgedSource, ...]:
    """Return the sources that the judge reads, numbered as in the writer's prompt, with those cited
    in the answer first.
    """
    numbered = {reference.number: reference for reference in answer.references}
    texts = {number: _write(reference, answer.context) for number, reference in numbered.items()}
    used = references_by_number(answer.used, answer.references).values()
    cited = {reference.number for reference in used}
    leading = sorted(numbered)[:LEADING]
    chosen = {*cited, *leading, *_find_neighbours(numbered, cited)}
    chosen.update(_find_candidates(answer, numbered, texts))
    return tuple(
        JudgedSource(
            number=number,
            place=texts[number][0],
            text=texts[number][1],
            is_cut=numbered[number].is_cut,
            is_cited=number in cited,
        )
        for number in sorted(chosen, key=lambda number: (number not in cited, number))
    )


def _write(reference: SourceReference, context: str) -> tuple[str, str]:
    """Return the location of a source with its version, because two versions may differ, and its
    text.
    """
    first, _, text = text_of(reference, context).partition("\n")
    place = " > ".join(dict.fromkeys((*reference.crumbs, *reference.heading_path))) or first
    return f"{place} (version {reference.version})" if reference.version else place, text


def _find_neighbours(
    numbered: Mapping[int, SourceReference], cited: Collection[int]
) -> Iterator[int]:
    """Yield the sources before and after a cited one in its document."""
    documents: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, reference in numbered.items():
        document, _, ordinal = reference.chunk_id.rpartition("#")
        if ordinal.isdecimal():
            documents[document].append((int(ordinal), number))
    for places in documents.values():
        ordered = [number for _, number in sorted(places)]
        for position, number in enumerate(ordered):
            if number in cited:
                yield from ordered[max(0, position - 1) : position + 2]


def _find_candidates(
    answer: CheckedAnswer,
    numbered: Mapping[int, SourceReference],
    texts: Mapping[int, tuple[str, str]],
) -> Iterator[int]:
    """Yield, for each sentence, the sources that share the most of its terms, with rare terms
    weighted higher.

    A paragraph as a whole would be closest to the sources of its longer sentences.
    """
    held = {
        number: frozenset(terms("\n".join(text), numbered[number].language or "en"))
        for number, text in texts.items()
    }
    counts = Counter(term for own in held.values() for term in own)
    weights = {term: log(1 + len(held) / count) for term, count in counts.items()}
    for claim in chain.from_iterable(map(_split, filter(claims_something, answer.blocks))):
        claimed = frozenset(terms(remove_marks(claim), answer.language))
        shared = {
            number: sum(weights[term] for term in claimed.intersection(own))
            for number, own in held.items()
        }
        best = sorted(filter(shared.__getitem__, shared), key=lambda number: -shared[number])
        yield from best[:CANDIDATES]


def _split(block: LineBlock) -> Iterable[str]:
    """Return the sentences of prose; a table row and code are treated as one sentence each."""
    is_prose = block.kind in (BlockForm.PARAGRAPH, BlockForm.ITEM)
    return sentences(block.text) if is_prose else (block.text,)
