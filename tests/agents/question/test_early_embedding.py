"""A vendor embeds a question while a model still writes about it; the search pays nothing again."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from agents.question.guardrails import GuardrailsAgent
from agents.question.guardrails import Reads as GuardrailsReads
from agents.question.translation import CombinedCall, Reads, TranslationAgent, Writes
from envelope.conversation import Turn
from envelope.outcome import Wrote
from envelope.run import OUTSIDE, Run
from knowledge.errors import EmbeddingFailed
from knowledge.port import CALIBRATION, Findings, SearchRequest
from knowledge.search.query import wordings
from knowledge.search.question_vectors import EarlyEmbedding, QuestionVectors
from llm.errors import UnreadableOutput
from llm.port import ModelAnswer, Usage
from llm.tasks.question import ScopeOutput
from tests.support.embedders import UniformEmbedder
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import within

FIRST = Turn(speaker="user", text="How do I create a routing rule?")
ANSWER = Turn(speaker="assistant", text="Open Routing > Rules.")
QUESTION = "How do I test a routing rule?"
BEGINNING = f'{{"canonical_question": "{QUESTION}", "context_type"'
REST = ': "follow_up", "verdict": "within", "details": null}'


class Vendor(UniformEmbedder):
    """An embedder that reports when it is asked, and that may fail."""

    name = "vectors@vendor"
    dimensions = 1

    def __init__(self, *, fails: bool = False) -> None:
        self.asked: list[list[str]] = []
        self.was_asked = asyncio.Event()
        self._fails = fails

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.asked.append([*texts])
        self.was_asked.set()
        if self._fails:
            raise EmbeddingFailed("out of order")
        return [[1.0] for _ in texts]


class WritingModel:
    """Writes the beginning of an output, waits until the vendor is asked, and ends it."""

    name = "writing@vendor"

    def __init__(self, vendor: Vendor, *, whole: str = BEGINNING + REST) -> None:
        self._vendor = vendor
        self._whole = whole

    async def ask(self, task: Any, inputs: Any, run: Run = OUTSIDE, **options: Any) -> Any:
        with options["listener"].attempt() as writing:
            writing.add(BEGINNING)
            async with within():
                await self._vendor.was_asked.wait()
        if not self._whole:
            raise UnreadableOutput("no JSON")
        output = task.output.model_validate_json(self._whole)
        return ModelAnswer(output, self.name, Usage(), None, 0.0)


async def understand(vectors: QuestionVectors, model: WritingModel) -> Writes:
    agent = TranslationAgent(
        model=None,
        combined=CombinedCall(
            model, WordSearcher(), "Example SMS", early_embedding=EarlyEmbedding(vectors)
        ),
    )
    reads = Reads(text="Und wie teste ich sie?", language="de", history=(FIRST, ANSWER))
    outcome = await agent.work(reads)
    assert isinstance(outcome, Wrote)
    return outcome.writes


async def test_a_question_is_embedded_while_the_rest_of_the_combined_call_is_written() -> None:
    vendor = Vendor()
    vectors = QuestionVectors(vendor)

    writes = await understand(vectors, WritingModel(vendor))
    search = SearchRequest(question=QUESTION, related=(FIRST.text,), previous_answer=ANSWER.text)
    await vectors.embed_questions(wordings(search).embedded)

    assert writes.early_embedding == "kept"
    assert vendor.asked == [[QUESTION, FIRST.text, ANSWER.text]]


async def test_a_question_that_the_call_replaces_was_embedded_for_nothing_and_is_noted() -> None:
    vendor = Vendor()
    repaired = BEGINNING.replace("test", "delete") + REST

    writes = await understand(QuestionVectors(vendor), WritingModel(vendor, whole=repaired))

    assert writes.early_embedding == "discarded"


async def test_an_embedding_that_fails_early_costs_no_understanding() -> None:
    vendor = Vendor(fails=True)

    writes = await understand(QuestionVectors(vendor), WritingModel(vendor))

    assert writes.understanding is not None
    assert writes.understanding.canonical_question == QUESTION


class UnreachableStore:
    """A store of vectors whose server does not answer."""

    async def get(self, run: Run, key: str) -> bytes | None:
        raise ConnectionError("no answer")

    async def put(self, run: Run, key: str, vector: bytes) -> None:
        raise ConnectionError("no answer")


async def test_a_store_that_does_not_answer_costs_no_early_embedding_its_question() -> None:
    vectors = QuestionVectors(Vendor())
    vectors.share_through(UnreachableStore())
    request = SearchRequest(question=QUESTION)

    await EarlyEmbedding(vectors, store_errors=(ConnectionError,)).embed(request)
    with pytest.raises(ConnectionError):
        await EarlyEmbedding(vectors).embed(request)


class JudgingModel(ScriptedModel):
    """Gives its verdict once the vendor was asked to embed."""

    def __init__(self, vendor: Vendor, *, fails: bool = False) -> None:
        super().__init__([ScopeOutput(verdict="within", confidence=0.9, analysis="")])
        self._vendor = vendor
        self._fails = fails

    async def ask(self, task: Any, inputs: Any, run: Run = OUTSIDE, **options: Any) -> Any:
        async with within():
            await self._vendor.was_asked.wait()
        if self._fails:
            raise LookupError("unexpected")
        return await super().ask(task, inputs, **options)


class WordSearcher:
    """A searcher that keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[SearchRequest] = []

    async def search(self, request: SearchRequest) -> Findings:
        self.asked.append(request)
        return Findings(
            hits=(),
            quality="good",
            answerability=0.9,
            coverage=1.0,
            fallbacks=(CALIBRATION,),
        )


def make_guardrails(vendor: Vendor, *, fails: bool = False) -> tuple[GuardrailsAgent, WordSearcher]:
    searcher = WordSearcher()
    agent = GuardrailsAgent(
        model=JudgingModel(vendor, fails=fails),
        searcher=searcher,
        domain_name="Example SMS",
        early_embedding=EarlyEmbedding(QuestionVectors(vendor)),
    )
    return agent, searcher


async def test_a_question_is_embedded_while_the_scope_model_judges_what_words_found() -> None:
    vendor = Vendor()
    agent, searcher = make_guardrails(vendor)

    outcome = await agent.work(GuardrailsReads(canonical_question=QUESTION))

    assert isinstance(outcome, Wrote)
    assert (outcome.writes.within_scope, outcome.writes.decided_by) == (True, "own_call")
    assert vendor.asked == [[QUESTION]]
    assert [request.by_words for request in searcher.asked] == [True]


async def test_an_error_of_the_scope_stage_is_raised_as_it_is() -> None:
    agent, _ = make_guardrails(Vendor(), fails=True)

    with pytest.raises(LookupError, match="unexpected"):
        await agent.work(GuardrailsReads(canonical_question=QUESTION))
