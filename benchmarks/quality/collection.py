"""Ingests a folder's documents into a temporary index, with a searcher over it.

Envelopes pass between manager and agents in this process, until the manager finishes the question.
Nothing is stored between two questions.
"""

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agents.agent import Agent
from broker.values import Delivery, Finish, Forward, Settlement
from config.settings import Settings
from config.texts import load_texts
from deploy.assembly.agent_factory import AgentFactory
from deploy.assembly.knowledge import Knowledge, make_searcher
from envelope.conversation import Turn
from envelope.envelope import Envelope, decode
from envelope.memory_access import MemoryFound, MemoryWrite
from envelope.question import Question
from envelope.role import Role
from knowledge.embedding import Embedder, local_embedder
from knowledge.index.embedded import open_embedded
from knowledge.index.qdrant import Identity
from knowledge.ingestion import ingest
from knowledge.ingestion_report import PlainReport
from knowledge.isolation.messages import ReadingLimits
from knowledge.isolation.reader_process import ReaderProcess
from knowledge.language.detector import ScriptAndNgramDetector
from knowledge.rule_descriptions import RuleDescriber
from llm.missing_model import MissingModel
from llm.port import Model
from manager.flows import FLOWS
from manager.machine import Limits
from manager.manager import Manager
from memory.port import Ended, Overflow, Remembered
from worker.agent_handler import AgentHandler

_LONG_SECONDS = 600.0


class EvaluationDesk:
    """One desk over one collection; questions are independent of each other."""

    def __init__(self, settings: Settings, knowledge: Knowledge) -> None:
        offline = MissingModel()

        def model(_task: str) -> Model:
            return offline

        self._factory = AgentFactory(
            settings, knowledge, model, ScriptAndNgramDetector(), self._read_languages
        )
        self._index = knowledge.index
        self._settings = settings
        self._handlers: dict[str, AgentHandler] = {}

    async def _read_languages(self, groups: tuple[str, ...]) -> Mapping[str, float]:
        return await self._index.visible_to(groups).languages()

    async def ask(self, text: str, history: Sequence[Turn] = ()) -> tuple[Finish, Envelope]:
        """Return the end of the question, and its envelope at that time."""
        manager = self._manager(tuple(history[-self._settings.history_turns :]))
        envelope = _make_envelope(text)
        while True:
            settled = await manager.handle(_delivery(envelope), envelope)
            if isinstance(settled, Finish):
                return settled, envelope
            envelope = _decode_forwarded(settled)
            settled = await self._handler(envelope.target_role).handle(
                _delivery(envelope), envelope
            )
            envelope = _decode_forwarded(settled)

    def _manager(self, history: tuple[Turn, ...]) -> Manager:
        return Manager(
            FLOWS,
            _FixedHistory(history),
            load_texts(),
            limits=Limits(
                research=self._settings.max_research,
                regenerate=self._settings.max_regenerate,
                rounds=self._settings.max_clarification_rounds,
                process_count=self._settings.max_process_count,
                total_time_seconds=_LONG_SECONDS,
            ),
            quality_threshold=self._settings.quality_score_threshold,
        )

    def _handler(self, role: str) -> AgentHandler:
        if role not in self._handlers:
            agent: Agent[Any, Any] = self._factory.agent(role)
            self._handlers[role] = AgentHandler(agent, limit_seconds=_LONG_SECONDS)
        return self._handlers[role]


class _FixedHistory:
    """A memory that returns one given history and stores nothing."""

    def __init__(self, history: tuple[Turn, ...]) -> None:
        self._history = history

    async def recall(self, question: Question) -> Remembered:
        return Remembered(history=self._history, kept=len(self._history))

    def reads(self, question: Question) -> None:
        return None

    def parse_recall(self, found: MemoryFound) -> Remembered:
        return Remembered(history=self._history, kept=len(self._history))

    async def claim_pause(self, question: Question, pause_id: str) -> None:
        return None

    async def overflowing(self, question: Question, *, kept: int, added: int) -> Overflow:
        return Overflow()

    def writes(self, question: Question, ended: Ended) -> tuple[MemoryWrite, ...]:
        return ()


def _make_envelope(text: str) -> Envelope:
    return Envelope(
        tenant="evaluate",
        assistant="desk",
        channel="evaluate",
        conversation_id="conversation",
        message_id="message",
        create_ts=0.0,
        update_ts=0.0,
        deadline_ts=_LONG_SECONDS,
        target_role=Role.MANAGER.value,
        payload={"text": text},
    )


def _delivery(envelope: Envelope) -> Delivery:
    return Delivery(
        entry_id="0-1",
        role=envelope.target_role,
        shard=0,
        consumer="evaluate",
        count=1,
        question=envelope.question,
        frame=b"",
        remaining_seconds=_LONG_SECONDS,
    )


def _decode_forwarded(settled: Settlement) -> Envelope:
    if not isinstance(settled, Forward):
        raise TypeError(f"expected an envelope to be sent on, found {type(settled).__name__}")
    return decode(settled.sends[0].whole())


@asynccontextmanager
async def open_collection(
    corpus: Sequence[Path], settings: Settings, embedder: Embedder | None
) -> AsyncIterator[Knowledge]:
    """Provide a temporary index of these files."""
    model = local_embedder() if embedder is None else embedder
    with tempfile.TemporaryDirectory(prefix="refdesk-evaluate-") as folder:
        identity = Identity("evaluate", "desk", model.name, model.dimensions)
        index = await open_embedded(Path(folder), identity)
        try:
            with ReaderProcess(ReadingLimits()) as reader:
                await ingest(
                    corpus,
                    index,
                    model,
                    RuleDescriber(),
                    reader,
                    PlainReport(lambda _line: None),
                    language_of=lambda _text: "en",
                )
            yield Knowledge(index, model, make_searcher(settings, index, model))
        finally:
            await index.close()
