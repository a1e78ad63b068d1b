"""Finds the documents of a review, and the passages that a question requires."""

from collections.abc import Sequence

from pydantic import JsonValue

from agents.agent import AgentRole, ProgressStep
from agents.named_documents import MOST_OFFERS, TitledDocument, find_scope, list_named
from agents.review.passages import cut_document
from agents.review.specialist import (
    LoopReads,
    LoopTurns,
    LoopWrites,
    NoOutput,
    SpecialistAgent,
)
from envelope.outcome import Wrote
from envelope.role import Role
from envelope.specialists import (
    Extracted,
    ExtractedPassage,
    ReviewedDocument,
    ReviewScope,
)
from envelope.tool_loop import NO_TRIAGE, Triage
from llm.port import OFFLINE, ModelMessage, ToolUse
from llm.tasks.review import (
    EXTRACTOR,
    CandidateDocument,
    ExtractorInputs,
    ExtractorOutput,
    TextUnit,
)
from tools.calls import PassageText
from tools.passages import describe_place

_DEFAULT_K, _MOST_K = 6, 10
_MOST_CANDIDATES = 40
_MOST_NAMED = 160
"""Maximum number of documents named by the question that are shown to the model."""
_MOST_READ = 12
"""The number of documents whose beginning is shown, so that a law can be distinguished from a
contract.
"""
_BEGINNING = 300
_SEARCHES = ("hybrid_search", "search")
_MOST_CHARACTERS = 12_000
"""Maximum total number of characters of the passages that are passed on."""
_REQUEST = "request"
_TITLE_CHARACTERS = 6_000
"""Maximum total number of characters of titles, because a branch returns at most 32 kB."""
_SHORTEST_TITLE = 30


class Reads(LoopReads, frozen=True):
    """The question, the documents that the request names, and the tool calls made so far."""

    triage: Triage = NO_TRIAGE
    review: ReviewScope | None = None


class Writes(LoopWrites, frozen=True):
    """The results, or tool calls to make first."""

    extracted: Extracted | None = None


class ExtractorAgent(SpecialistAgent[Reads, Writes]):
    """Uses the documents that the request names, and finds others by their titles.

    Only documents and passages that the person may read are used; IDs invented by a model are
    omitted.
    """

    role = Role.EXTRACTOR
    step = ProgressStep.SEARCH
    model_task = EXTRACTOR
    agent_role = AgentRole.EXTRACT
    reads = Reads
    writes = Writes

    async def examine(self, reads: Reads) -> Wrote[Writes]:
        if reads.review is not None and reads.review.documents and reads.review.against:
            return Wrote(Writes(extracted=await self._take(reads.review, reads.groups)))
        turns = reads.turns
        passages = _list_passages(turns)
        inputs = ExtractorInputs(
            question=reads.question,
            language=reads.language,
            candidates=await self._list_candidates(reads),
            passages=tuple(
                TextUnit(
                    id=passage.citation.chunk_id,
                    heading=describe_place(passage.citation),
                    text=passage.text,
                )
                for passage in passages
            ),
            most_results=count_results(reads.triage),
        )
        if self.toolbox.is_offline:
            return Wrote(await self._search(reads, turns, passages, inputs))
        given = await self.toolbox.consult(EXTRACTOR, inputs, turns, reads)
        if isinstance(given, NoOutput):
            return Wrote(Writes(**given.as_writes()))
        extracted = await self._collect(given.output, reads, passages, given.decided_by)
        return Wrote(Writes(extracted=extracted, errors=given.errors))

    async def _search(
        self,
        reads: Reads,
        turns: LoopTurns,
        passages: Sequence[PassageText],
        inputs: ExtractorInputs,
    ) -> Writes:
        """Without a model, do one search for the question, and use the documents that it names."""
        tools = self.toolbox.profile.tools
        name = next((search for search in _SEARCHES if search in tools), "")
        if name and not turns.messages and self.toolbox.tools is not None:
            arguments: JsonValue = {"query": inputs.question, "limit": inputs.most_results}
            call = ToolUse(call_id="extractor-1-1", name=name, arguments=arguments)
            asked = self.toolbox.call_tools([call], ModelMessage(calls=(call,)))
            return Writes(**asked.as_writes())
        known = [
            TitledDocument(candidate.id, candidate.title, candidate.source, candidate.language)
            for candidate in inputs.candidates
        ]
        scope = find_scope(inputs.question, known, reads.language)
        output = ExtractorOutput(
            documents=tuple(document.id for document in scope.documents),
            against=tuple(document.id for document in scope.against),
            notes=scope.notes,
        )
        return Writes(extracted=await self._collect(output, reads, passages, OFFLINE))

    async def _list_candidates(self, reads: Reads) -> tuple[CandidateDocument, ...]:
        """Return the documents that the question may refer to; for some of them, with the beginning
        of their text.
        """
        library = self.toolbox.library
        attached = await library.list_attached(reads.groups, self.run)
        listed = [*attached, *await library.list_documents(reads.groups)]
        titled = [
            TitledDocument(document.id, document.title, document.source, document.language)
            for document in listed
        ]
        named = list_named(reads.canonical_question, titled)
        others = [document for document in titled if document not in named]
        chosen = [*named[:_MOST_NAMED], *others[: max(0, _MOST_CANDIDATES - len(named))]]
        given = {document.id for document in attached}
        beginnings = await self._read_beginnings(
            [document.id for document in chosen[:_MOST_READ]], reads.groups
        )
        return tuple(
            CandidateDocument(
                id=document.id,
                title=document.title,
                source=document.source,
                language=document.language,
                is_attached=document.id in given,
                beginning=beginnings.get(document.id, ""),
            )
            for document in chosen
        )

    async def _read_beginnings(self, names: Sequence[str], groups: Sequence[str]) -> dict[str, str]:
        if self.toolbox.is_offline:
            return {}
        read = await self.toolbox.read_documents(names, groups)
        return {document.listed.id: document.text[:_BEGINNING] for document in read}

    async def _collect(
        self,
        output: ExtractorOutput,
        reads: Reads,
        passages: Sequence[PassageText],
        decided_by: str,
    ) -> Extracted:
        request = reads.review if reads.review is not None else ReviewScope()
        scope = ReviewScope(
            documents=request.documents or output.documents,
            against=request.against or output.against,
        )
        extracted = await self._take(scope, reads.groups)
        wanted = frozenset(output.chunk_ids)
        kept = [passage for passage in passages if passage.citation.chunk_id in wanted] or list(
            passages
        )
        data = _bound_passages(kept)
        return extracted.model_copy(
            update={
                "analysis": output.analysis[:2_000],
                "offers": output.offers[:MOST_OFFERS],
                "chunk_ids": tuple(passage.chunk_id for passage in data),
                "chunks_data": data,
                "citations": tuple(
                    describe_place(passage_text.citation) for passage_text in kept[: len(data)]
                ),
                "notes": (*output.notes, *extracted.notes),
                "decided_by": decided_by,
            }
        )

    async def _take(self, scope: ReviewScope, groups: Sequence[str]) -> Extracted:
        """Return the existing documents in a scope; a note lists each one that does not exist."""
        wanted = (*scope.documents, *scope.against)
        read = {
            document.listed.id: document
            for document in await self.toolbox.read_documents(wanted, groups)
        }
        longest = max(_SHORTEST_TITLE, _TITLE_CHARACTERS // max(len(read), 1))
        known = {
            name: ReviewedDocument(
                document_id=name,
                title=document.listed.title[:longest],
                language=document.listed.language,
                source=document.listed.source[:longest],
                units=len(cut_document(document).units),
            )
            for name, document in read.items()
        }
        lost = [name for name in wanted if name not in known]
        return Extracted(
            documents=tuple(known[name] for name in scope.documents if name in known),
            against=tuple(
                known[name]
                for name in scope.against
                if name in known and name not in scope.documents
            ),
            notes=tuple(f"there is no document {name[:200]!r} with text" for name in lost),
            decided_by=_REQUEST,
        )


def count_results(triage: Triage) -> int:
    """Return how many passages a search returns, which is more for more complex questions."""
    return _DEFAULT_K + round((_MOST_K - _DEFAULT_K) * triage.complexity / 100)


def _list_passages(turns: LoopTurns) -> list[PassageText]:
    quoted = (passage_text for result in turns.results for passage_text in result.quoted)
    return list({passage_text.citation.chunk_id: passage_text for passage_text in quoted}.values())


def _bound_passages(passages: Sequence[PassageText]) -> tuple[ExtractedPassage, ...]:
    extracted_passages: list[ExtractedPassage] = []
    room = _MOST_CHARACTERS
    for passage in passages:
        room -= len(passage.text)
        if room < 0 and extracted_passages:
            break
        extracted_passages.append(
            ExtractedPassage(
                chunk_id=passage.citation.chunk_id,
                document_id=passage.citation.document_id,
                title=passage.citation.title,
                heading_path=passage.citation.heading_path,
                content=passage.text,
                score=passage.citation.score,
            )
        )
    return tuple(extracted_passages)
