"""Classifies the documents of a review in five dimensions."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from pydantic import JsonValue

from agents.agent import AgentRole, ProgressStep
from agents.review.passages import divide_sizes
from agents.review.specialist import (
    GivenOutput,
    LoopReads,
    LoopWrites,
    ReadsScope,
    SpecialistAgent,
)
from envelope.outcome import Wrote
from envelope.role import Role
from envelope.specialists import ErrorSeverity, SpecialistError
from knowledge.library.library import WholeDocument
from llm.tasks.review import CLASSIFIER, ClassifiedDocument, ClassifierInputs, TextUnit

_PART_CHARACTERS = 12_000
_CALL_CHARACTERS, _CALL_PARTS = 24_000, 8
_MOST_PARTS = 32
"""Maximum number of parts that are read, across all documents."""
_MOST_DOCUMENTS = 8
_COMPLEXITIES = ("low", "medium", "high")
_SENSITIVITIES = ("public", "internal", "personal", "confidential", "special categories")


class Reads(LoopReads, ReadsScope, frozen=True):
    """The documents of the review, and the tool calls made so far."""


class Writes(LoopWrites, frozen=True):
    """The classes of each document, or tool calls to make first."""

    classification: tuple[dict[str, JsonValue], ...] = ()


class ClassifierAgent(SpecialistAgent[Reads, Writes]):
    """Reads each document in parts, up to a limit. For a question without a document, it reads the
    passages found.

    If a document was read only in part, the result states the share that was read. Documents beyond
    the eighth are listed in an entry of `errors`. Without a model, only the language is known, as
    detected by the index.
    """

    role = Role.CLASSIFIER
    step = ProgressStep.SEARCH
    model_task = CLASSIFIER
    agent_role = AgentRole.CLASSIFY
    reads = Reads
    writes = Writes

    async def examine(self, reads: Reads) -> Wrote[Writes]:
        extracted = reads.scope
        titles = {
            document.document_id: document.title
            for document in (*extracted.documents, *extracted.against)
        }
        titles = titles or {passage.document_id: passage.title for passage in extracted.chunks_data}
        chosen, beyond = [*titles][:_MOST_DOCUMENTS], [*titles.values()][_MOST_DOCUMENTS:]
        documents = await self.toolbox.read_documents(chosen, reads.groups)
        if not documents:
            return Wrote(Writes(errors=(self.toolbox.make_error("no document to classify"),)))
        if self.toolbox.is_offline:
            languages = tuple(map(_name_language, documents))
            return Wrote(Writes(classification=languages, errors=self._name_beyond(beyond)))
        inputs = [
            ClassifierInputs(
                question=reads.question, language=reads.language, documents=tuple(map(_show, own))
            )
            for own in _divide(_list_parts(documents))
        ]
        given = await self.toolbox.consult_each(
            CLASSIFIER, inputs, reads.turns, reads, by="documents"
        )
        if (asked := given.calls) is not None:
            return Wrote(Writes(**asked.as_writes()))
        classes: dict[str, list[ClassifiedDocument]] = defaultdict(list)
        shares: dict[str, int] = defaultdict(int)
        for own, outcome in given.outcomes:
            answered = outcome.output.documents if isinstance(outcome, GivenOutput) else ()
            for name, document in _match(own.documents, answered):
                classes[name].append(document)
                shares[name] += sum(len(part.text) for part in own.documents if part.id == name)
        classified = [
            _merge(
                classes[document.listed.id], shares[document.listed.id] / max(len(document.text), 1)
            )
            for document in documents
            if document.listed.id in classes
        ]
        lost = [
            document.listed.title for document in documents if document.listed.id not in classes
        ]
        unnamed = self._name_lost(lost) if not given.errors else ()
        errors = (*given.errors, *unnamed, *self._name_beyond(beyond))
        return Wrote(Writes(classification=tuple(classified), errors=errors))

    def _name_beyond(self, titles: Sequence[str]) -> tuple[SpecialistError, ...]:
        if not titles:
            return ()
        text = (
            f"only the first {_MOST_DOCUMENTS} documents are classified; "
            f"{len(titles)} more are not: {'; '.join(titles)}"
        )
        return (self.toolbox.make_error(text, ErrorSeverity.MEDIUM),)

    def _name_lost(self, lost: Sequence[str]) -> tuple[SpecialistError, ...]:
        if not lost:
            return ()
        text = f"the model did not classify: {'; '.join(lost)}"
        return (self.toolbox.make_error(text, ErrorSeverity.MEDIUM),)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a document, and the number of parts in the document."""

    document: WholeDocument
    number: int
    count: int
    text: str


def _list_parts(documents: Sequence[WholeDocument]) -> Iterator[_Part]:
    """Yield the parts to read, taking the next part of each document in turn, up to the limit."""
    cut = [_cut(document) for document in documents]
    in_turn = [part for row in zip_longest(*cut) for part in row if part is not None]
    chosen = set(map(id, in_turn[:_MOST_PARTS]))
    for own in cut:
        yield from (part for part in own if id(part) in chosen)


def _cut(document: WholeDocument) -> list[_Part]:
    text = document.text
    starts = range(0, max(len(text), 1), _PART_CHARACTERS)
    return [
        _Part(document, number, len(starts), text[start : start + _PART_CHARACTERS])
        for number, start in enumerate(starts, start=1)
    ]


def _divide(parts: Iterator[_Part]) -> Iterator[Sequence[_Part]]:
    listed = list(parts)
    sizes = [len(part.text) for part in listed]
    for first, last in divide_sizes(sizes, _CALL_CHARACTERS, _CALL_PARTS):
        yield listed[first : last + 1]


def _show(one: _Part) -> TextUnit:
    listed = one.document.listed
    part = f" ({one.number}/{one.count})" if one.count > 1 else ""
    return TextUnit(
        id=listed.id, heading=f"{listed.title}{part}", text=one.text, language=listed.language
    )


def _match(
    parts: Sequence[TextUnit], given: Sequence[ClassifiedDocument]
) -> Iterator[tuple[str, ClassifiedDocument]]:
    """Yield the first entry for each document in the parts."""
    known = {document.document_id: document for document in reversed(given)}
    for name in dict.fromkeys(part.id for part in parts):
        if name in known:
            yield name, known[name]


def _merge(own: Sequence[ClassifiedDocument], share: float) -> dict[str, JsonValue]:
    """Return the classes of a document, based on the classes of its parts.

    The type and the domain are those of the first part. The complexity and the sensitivity are the
    highest of any part.
    """
    joined = own[0].model_copy(
        update={
            "complexity": max((document.complexity for document in own), key=_COMPLEXITIES.index),
            "sensitivity": max((document.sensitivity for document in own), key=_rank_sensitivity),
        }
    )
    return {**joined.model_dump(mode="json"), "share_read": min(round(share, 2), 1.0)}


def _rank_sensitivity(name: str) -> int:
    plain = name.strip().lower()
    return _SENSITIVITIES.index(plain) if plain in _SENSITIVITIES else -1


def _name_language(document: WholeDocument) -> dict[str, JsonValue]:
    return {"document_id": document.listed.id, "language": document.listed.language}
