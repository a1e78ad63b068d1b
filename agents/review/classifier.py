"""Classifies the documents of a review in five dimensions."""

from pydantic import JsonValue

from agents.agent import AgentRole, ProgressStep
from agents.review.specialist import LoopReads, LoopWrites, NoOutput, SpecialistAgent
from envelope.outcome import Wrote
from envelope.role import Role
from envelope.specialists import Extracted
from knowledge.library.library import WholeDocument
from llm.tasks.review import CLASSIFIER, ClassifierInputs, TextUnit

_CHARACTERS = 12_000
_MOST_DOCUMENTS = 8


class Reads(LoopReads, frozen=True):
    """The documents of the review, and the loop of tools so far."""

    extracted: Extracted | None = None


class Writes(LoopWrites, frozen=True):
    """The classes of each document; or the calls of tools before."""

    classification: tuple[dict[str, JsonValue], ...] = ()


class ClassifierAgent(SpecialistAgent[Reads, Writes]):
    """Reads the beginning of each document; of a question without one, of the passages' ones.

    Without a model there is only the language, as the index detected it.
    """

    role = Role.CLASSIFIER
    step = ProgressStep.SEARCH
    model_task = CLASSIFIER
    agent_role = AgentRole.CLASSIFY
    reads = Reads
    writes = Writes

    async def examine(self, reads: Reads) -> Wrote[Writes]:
        found = reads.extracted if reads.extracted is not None else Extracted()
        named = [one.document_id for one in (*found.documents, *found.against)]
        named = named or [one.document_id for one in found.chunks_data]
        documents = await self.toolbox.read_documents(named[:_MOST_DOCUMENTS], reads.groups)
        if not documents:
            return Wrote(Writes(errors=(self.toolbox.make_error("no document to classify"),)))
        if self.toolbox.is_offline:
            return Wrote(Writes(classification=tuple(map(_name_language, documents))))
        inputs = ClassifierInputs(
            question=reads.question,
            language=reads.language,
            documents=tuple(
                TextUnit(
                    id=one.listed.id,
                    heading=one.listed.title,
                    text=one.text[:_CHARACTERS],
                    language=one.listed.language,
                )
                for one in documents
            ),
        )
        turns = reads.turns
        given = await self.toolbox.consult(CLASSIFIER, inputs, turns, reads)
        if isinstance(given, NoOutput):
            return Wrote(Writes(**given.as_writes()))
        known = {one.id for one in inputs.documents}
        classes = [one for one in given.output.documents if one.document_id in known]
        return Wrote(
            Writes(
                classification=tuple(one.model_dump(mode="json") for one in classes),
                errors=given.errors,
            )
        )


def _name_language(one: WholeDocument) -> dict[str, JsonValue]:
    return {"document_id": one.listed.id, "language": one.listed.language}
