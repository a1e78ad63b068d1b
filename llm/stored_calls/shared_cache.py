"""A cache that all questions of an assistant share: the same thing is asked once."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Protocol

from envelope.question import Question
from llm.call_log import record
from llm.call_scope import CallScope, current_scope
from llm.port import I, Model, ModelAnswer, ModelCall, O, Task, Usage
from llm.prompts import Prompts
from llm.stored_calls.fingerprint import fingerprint
from llm.stored_calls.kept_answer import decode, encode


@dataclass(frozen=True, slots=True)
class CacheKey:
    """Names an answer within its tenant and assistant, by everything that decides about it.

    `question` is the one that asks, which any other may do in its place.
    """

    tenant: str
    assistant: str
    content_hash: str
    question: Question = field(compare=False)


class CacheStore(Protocol):
    """Keeps answers for a short time."""

    async def get(self, key: CacheKey) -> bytes | None: ...

    async def put(self, key: CacheKey, answer: bytes, *, ttl_seconds: int) -> None: ...


@dataclass(slots=True)
class CacheCounts:
    """What a cache did; `saved_usd` leaves out hits whose price is unknown, which are counted."""

    hits: int = 0
    misses: int = 0
    saved_usd: Decimal = Decimal(0)
    hits_of_unknown_price: int = 0


class CachedModel:
    """Gives the answer that was given before, for the same tenant, content, model and parameters.

    In one process the same thing is asked once at a time: who asks meanwhile waits for that answer.
    A hit costs nothing and is recorded with `from_store`. Outside of a `call_scope` nobody knows
    whose question it is, and it only asks; so it does in a further attempt, which wants another
    answer than the one that was turned down.
    """

    def __init__(
        self, model: Model, store: CacheStore, *, prompts: Prompts | None, ttl_seconds: int
    ) -> None:
        self.name = model.name
        self.counts = CacheCounts()
        self._model = model
        self._store = store
        self._prompts = prompts
        self._ttl_seconds = ttl_seconds
        self._locks: dict[CacheKey, asyncio.Lock] = {}
        self._waiting: Counter[CacheKey] = Counter()

    async def ask(self, task: Task[I, O], inputs: I, *, skip: int = 0) -> ModelAnswer[O]:
        scope = current_scope()
        if scope is None or scope.attempt > 0:
            return await self._model.ask(task, inputs, skip=skip)
        key = self._key(scope, task, inputs, skip)
        async with self._alone(key):
            frame = await self._store.get(key)
            found = decode(frame, task.output) if frame is not None else None
            if found is not None:
                return self._hit(key, task, found[0])
            self.counts.misses += 1
            answer = await self._model.ask(task, inputs, skip=skip)
            await self._store.put(key, encode(answer), ttl_seconds=self._ttl_seconds)
            return answer

    @asynccontextmanager
    async def _alone(self, key: CacheKey) -> AsyncIterator[None]:
        # A lock rather than a shared future: when the one who asks is cancelled, the next asks.
        lock = self._locks.setdefault(key, asyncio.Lock())
        self._waiting[key] += 1
        try:
            async with lock:
                yield
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key], self._locks[key]

    def _hit(self, key: CacheKey, task: Task[I, O], answer: ModelAnswer[O]) -> ModelAnswer[O]:
        self.counts.hits += 1
        if answer.cost_usd is None:
            self.counts.hits_of_unknown_price += 1
        else:
            self.counts.saved_usd += answer.cost_usd
        record(
            ModelCall(
                task=task.name,
                model=answer.model,
                usage=Usage(),
                cost_usd=Decimal(0),
                milliseconds=0.0,
                from_store=True,
                prompt_hash=key.content_hash,
            )
        )
        return replace(answer, usage=Usage(), cost_usd=Decimal(0), milliseconds=0.0)

    def _key(self, scope: CallScope, task: Task[I, O], inputs: I, skip: int) -> CacheKey:
        asked = f"{self.name}+{skip}"
        content_hash = fingerprint(task, inputs, asked=asked, prompts=self._prompts)
        question = scope.question
        return CacheKey(question.tenant, question.assistant, content_hash, question)
