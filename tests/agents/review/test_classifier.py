"""Documents are classified by all of their parts, and what was not read is stated."""

from collections.abc import Sequence
from typing import Any

from agents.review.classifier import ClassifierAgent, Reads, Writes
from agents.review.specialist import Toolbox
from envelope.outcome import Wrote
from envelope.specialists import Extracted, ReviewedDocument, SpecialistName, SpecialistProfile
from knowledge.document import Chunk
from knowledge.index.listing import ListedDocument
from knowledge.library.library import ChunkWithVector, WholeDocument
from llm.errors import ModelTimeout
from llm.tasks.review import ClassifiedDocument, ClassifierInputs, ClassifierOutput
from tests.support.scripted_model import ScriptedModel

NOTHING: Any = None
HEALTH = "The patient register lists each diagnosis."


class OneDocument:
    """A library of one document of this many paragraphs; the last one names health data."""

    def __init__(self, paragraphs: int) -> None:
        texts = [f"Roof {at}: the keeper repairs it. " * 30 for at in range(paragraphs)]
        texts.append(HEALTH)
        chunks = (
            ChunkWithVector(Chunk(chunk_id=f"lease#{at}", ordinal=at, text=text), None)
            for at, text in enumerate(texts)
        )
        listed = ListedDocument("lease", "Lease", "lease.md", "/", "en", len(texts))
        self.document = WholeDocument(listed, ("Lease",), "lease", tuple(chunks))

    async def read(self, names: Sequence[str], *_: object) -> list[WholeDocument]:
        return [self.document] if "lease" in names else []


def classify(inputs: ClassifierInputs) -> ClassifierOutput:
    """Judge each part by its text alone."""
    named = any(HEALTH in document.text for document in inputs.documents)
    return ClassifierOutput(
        documents=(
            ClassifiedDocument(
                document_id="lease",
                document_type="contract",
                domain="legal",
                complexity="high" if named else "low",
                language="en",
                sensitivity="special categories" if named else "internal",
            ),
        )
    )


async def run(paragraphs: int, answers: Sequence[Any], further: Sequence[str] = ()) -> Writes:
    library: Any = OneDocument(paragraphs)
    profile = SpecialistProfile(name=SpecialistName.CLASSIFIER)
    agent = ClassifierAgent(Toolbox(profile, ScriptedModel(list(answers)), library, NOTHING))
    documents = tuple(
        ReviewedDocument(document_id=title.lower(), title=title, language="en")
        for title in ("Lease", *further)
    )
    outcome = await agent.work(
        Reads(canonical_question="Which kind is it?", extracted=Extracted(documents=documents))
    )
    assert isinstance(outcome, Wrote)
    return outcome.writes


async def test_health_data_on_the_last_page_makes_the_whole_document_sensitive() -> None:
    written = await run(100, [classify] * 5)

    [found] = written.classification
    assert found["sensitivity"] == "special categories"
    assert found["complexity"] == "high"
    assert found["share_read"] == 1.0


async def test_a_document_beyond_the_limit_states_the_share_that_was_read() -> None:
    written = await run(2_000, [classify] * 16)

    [found] = written.classification
    assert found["share_read"] == 0.19
    assert found["sensitivity"] == "internal"


async def test_a_part_that_no_model_answered_lowers_the_share_and_is_reported() -> None:
    written = await run(40, [classify, ModelTimeout("too slow")])

    [found] = written.classification
    assert found["share_read"] == 0.63
    [error] = written.errors
    assert "too slow" in error.text


async def test_classes_of_another_document_are_reported_as_none() -> None:
    foreign = ClassifiedDocument(
        document_id="other", document_type="law", domain="legal", complexity="low",
        language="en", sensitivity="public",
    )  # fmt: skip

    written = await run(1, [ClassifierOutput(documents=(foreign,))])

    assert written.classification == ()
    assert [error.text for error in written.errors] == ["the model did not classify: Lease"]


async def test_documents_beyond_the_eighth_are_named_with_their_number() -> None:
    written = await run(1, [classify], further=[f"Annex {at}" for at in range(1, 10)])

    assert [item["document_id"] for item in written.classification] == ["lease"]
    assert [error.text for error in written.errors] == [
        "only the first 8 documents are classified; 2 more are not: Annex 8; Annex 9"
    ]
