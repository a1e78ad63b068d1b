"""Reuses stored answers for redelivered hops and for equal questions from other users.

Calls with the same fingerprint may share an answer.
"""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from typing import Protocol, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import to_json

from envelope.question import Question
from envelope.run import OUTSIDE, Run
from llm.errors import (
    AccessDenied,
    ChainExhausted,
    ModelError,
    ModelTimeout,
    PromptTooLong,
    Refused,
    RejectedRequest,
    UnreadableOutput,
    may_depend_on_content,
)
from llm.port import (
    OFFLINE,
    ConversationModel,
    I,
    Model,
    ModelAnswer,
    ModelCall,
    ModelStep,
    O,
    Task,
    TextListener,
    ToolConversation,
    Usage,
    record,
    record_calls,
)
from llm.prompts import Prompts

_FINAL_MARKS = " .?!\uff1f\u3002\uff01\u061f"
MOST_TIMEOUTS = 2
"""The number of timeouts of a model in one question after which the model is not called again for
the question.
"""
_TIMEOUTS = "timeouts"
"""The stage name under which timeouts are counted among the stored calls of a question."""


class _StoredAnswer(BaseModel, frozen=True):
    """An answer with its output as nested JSON, and the calls made for it."""

    output: str
    model: str
    usage: Usage
    cost_usd: Decimal | None
    milliseconds: float
    calls: tuple[ModelCall, ...] = ()


class _StoredStep(BaseModel, frozen=True):
    """A step of a conversation, and the calls made for it."""

    step: ModelStep
    calls: tuple[ModelCall, ...] = ()


A = TypeVar("A")
_ERRORS: dict[str, type[ModelError]] = {
    error.__name__: error
    for error in (
        AccessDenied,
        RejectedRequest,
        PromptTooLong,
        Refused,
        UnreadableOutput,
    )
}
_STORED_ANSWER = TypeAdapter(_StoredAnswer)
_STORED_STEP = TypeAdapter(_StoredStep)


@dataclass(frozen=True, slots=True)
class CallKey:
    """Identifies one call of one hop across redeliveries of its envelope.

    `stage` includes the branch, so equal calls in two branches are different calls.
    """

    question: Question
    stage: str
    attempt: int
    prompt_hash: str


class CallStore(Protocol):
    """Stores answers until their question ends."""

    async def get(self, key: CallKey) -> bytes | None:
        """Return the stored answer of a call, if any; raises an error if its question has ended."""
        ...

    async def put(self, key: CallKey, answer: bytes) -> None: ...


class SpeedStore(Protocol):
    """Stores the output speed of models."""

    async def add(self, model: str, tokens: int, milliseconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class CacheKey:
    """Identifies a shared answer within its tenant and assistant.

    `question` is the question that makes the call; it is not part of the key.
    """

    tenant: str
    assistant: str
    content_hash: str
    question: Question = field(compare=False)


class CacheStore(Protocol):
    """Stores answers for a short time."""

    async def get(self, key: CacheKey) -> bytes | None: ...

    async def put(self, key: CacheKey, answer: bytes, *, ttl_seconds: int) -> None: ...


@dataclass(slots=True)
class CacheCounts:
    """Cache hits and misses; `saved_usd` excludes hits whose price is unknown."""

    hits: int = 0
    misses: int = 0
    saved_usd: Decimal = Decimal(0)
    hits_of_unknown_price: int = 0

    def add_hit(self, cost_usd: Decimal | None) -> None:
        """Count a hit for an answer with this cost."""
        self.hits += 1
        if cost_usd is None:
            self.hits_of_unknown_price += 1
        else:
            self.saved_usd += cost_usd


class SharedCache:
    """Answers that all questions of an assistant share for `ttl_seconds`."""

    def __init__(self, store: CacheStore, *, ttl_seconds: int) -> None:
        self.counts = CacheCounts()
        self._store = store
        self._ttl_seconds = ttl_seconds
        self._locks: dict[CacheKey, asyncio.Lock] = {}
        self._waiting: Counter[CacheKey] = Counter()

    async def get(self, key: CacheKey) -> bytes | None:
        """Return the shared answer, or None if there is none or it has expired."""
        return await self._store.get(key)

    async def put(self, key: CacheKey, answer: bytes) -> None:
        """Share an answer."""
        await self._store.put(key, answer, ttl_seconds=self._ttl_seconds)

    @asynccontextmanager
    async def lock(self, key: CacheKey) -> AsyncIterator[None]:
        """Let only one caller at a time in this process look up the answer for a key and pay for
        it.
        """
        # A lock rather than a shared future: if the caller inside is cancelled, the next one asks.
        lock = self._locks.setdefault(key, asyncio.Lock())
        self._waiting[key] += 1
        try:
            async with lock:
                yield
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key], self._locks[key]


class StoredModel:
    """Looks up an answer in two stores before it calls the model, and stores paid answers.

    `calls` stores the answers of the running question for redelivered hops. A stored answer keeps
    its original usage and cost, and its calls are recorded again with `from_store`, because the
    delivery that paid for it may have ended before its journal was written. A request that fails
    because of its content is stored as well, and fails again without being sent.

    `cache` stores answers that are shared by the questions of one assistant. A hit is free and is
    recorded with `from_cache`. Within a process, equal calls wait for each other. The cache is not
    used for a further attempt, because its result must differ from the rejected answer.

    For a run without a question, nothing is looked up or stored.
    """

    def __init__(
        self,
        model: Model,
        calls: CallStore | None = None,
        *,
        prompts: Prompts | None,
        cache: SharedCache | None = None,
        speeds: SpeedStore | None = None,
    ) -> None:
        self.name = model.name
        self._model = model
        self._calls = calls
        self._cache = cache
        self._prompts = prompts
        self._speeds = speeds

    async def ask(
        self,
        task: Task[I, O],
        inputs: I,
        run: Run = OUTSIDE,
        *,
        skip: int = 0,
        listener: TextListener | None = None,
    ) -> ModelAnswer[O]:
        if run.question is None:
            return await self._model.ask(task, inputs, run, skip=skip, listener=listener)

        async def ask_model() -> ModelAnswer[O]:
            return await self._model.ask(task, inputs, run, skip=skip, listener=listener)

        asked = f"{self.name}+{skip}"
        content_hash = fingerprint(task, inputs, asked=asked, prompts=self._prompts)
        if self._calls is None:
            return await self._ask_shared(run, content_hash, task, ask_model)
        key = CallKey(run.question, run.place, run.attempt, content_hash)
        frame = await self._calls.get(key)
        _raise_stored(frame)
        stored = decode(frame, task.output) if frame is not None else None
        if stored is not None:
            return _replay(*stored)
        answer, calls = await self._pay(
            key, self._calls, lambda: self._ask_shared(run, content_hash, task, ask_model)
        )
        await self._calls.put(key, encode(answer, calls))
        await self._measure(calls)
        return answer

    async def converse(
        self, conversation: ToolConversation, run: Run = OUTSIDE, *, skip: int = 0
    ) -> ModelStep:
        """Return the next message, from the store for a redelivered hop.

        Equal conversations in one hop are numbered, so that each is a separate call. A step of
        another question is reused only if `sharing` allows it, for a user with the same groups, and
        after identical tool results, so that steps are not shared across relevant changes to the
        index.
        """
        model = self._model
        if not isinstance(model, ConversationModel):
            raise RejectedRequest(f"the model {self.name!r} does not support tool calls")
        if run.question is None or self._calls is None:
            return await model.converse(conversation, run, skip=skip)
        content_hash = digest(f"{self.name}+{skip}", conversation.model_dump_json())
        number = run.count_equal(content_hash)
        key = CallKey(run.question, run.place, run.attempt, f"{content_hash}-{number}")
        frame = await self._calls.get(key)
        _raise_stored(frame)
        stored = decode_step(frame) if frame is not None else None
        if stored is not None:
            for call in stored[1]:
                record(replace(call, from_cache=False))
            return stored[0]
        step, calls = await self._pay(
            key,
            self._calls,
            lambda: self._step_shared(model, run, conversation, skip, is_first=not number),
        )
        await self._calls.put(key, encode_step(step, calls))
        await self._measure(calls)
        return step

    async def _measure(self, calls: Sequence[ModelCall]) -> None:
        """Store the speed of the calls that were just made, once their answer has been stored."""
        if self._speeds is None:
            return
        for call in calls:
            is_own = not call.from_store and not call.from_cache and call.error is None
            if is_own and call.usage.output_tokens:
                await self._speeds.add(call.model, call.usage.output_tokens, call.milliseconds)

    async def _pay(
        self, key: CallKey, store: CallStore, call: Callable[[], Awaitable[A]]
    ) -> tuple[A, Sequence[ModelCall]]:
        """Return the result of a call and the recorded calls; store a failure if it is final."""
        with record_calls() as calls:
            try:
                async with self._in_time(key.question, store):
                    return await call(), calls
            except ModelError as error:
                if _is_final(error):
                    stored = _store_error(error).model_copy(update={"calls": tuple(calls)})
                    await store.put(key, stored.model_dump_json().encode())
                raise

    @asynccontextmanager
    async def _in_time(self, question: Question, calls: CallStore) -> AsyncIterator[None]:
        """Count timeouts of a question across processes; raises `ModelTimeout` after too many."""
        key = CallKey(question, _TIMEOUTS, 0, self.name)
        count = int(await calls.get(key) or 0)
        if count >= MOST_TIMEOUTS:
            raise ModelTimeout(
                f"{self.name!r} exceeded its time limit {count} times for this question and is "
                "not called again"
            )
        try:
            yield
        except (ModelTimeout, ChainExhausted) as error:
            if _is_for_time(error):
                await calls.put(key, str(count + 1).encode())
            raise

    async def _step_shared(
        self,
        model: ConversationModel,
        run: Run,
        conversation: ToolConversation,
        skip: int,
        *,
        is_first: bool,
    ) -> ModelStep:
        cache = self._cache
        may_share = conversation.sharing is not None and is_first and not run.attempt
        # Without a model, a cache lookup costs more than it saves.
        if cache is None or not may_share or self.name == OFFLINE:
            return await model.converse(conversation, run, skip=skip)
        asked = fingerprint_conversation(conversation, asked=f"{self.name}+{skip}")
        question = run.find_question()
        key = CacheKey(question.tenant, question.assistant, asked, question)
        async with cache.lock(key):
            frame = await cache.get(key)
            shared = decode_step(frame) if frame is not None else None
            if shared is not None:
                step = shared[0]
                _record_hit(cache, key, conversation.task, step.model, step.cost_usd)
                return replace(step, usage=Usage(), cost_usd=Decimal(0), milliseconds=0.0)
            cache.counts.misses += 1
            step = await model.converse(conversation, run, skip=skip)
            if step.model != OFFLINE:
                await cache.put(key, encode_step(step))
            return step

    async def _ask_shared(
        self,
        run: Run,
        content_hash: str,
        task: Task[I, O],
        ask: Callable[[], Awaitable[ModelAnswer[O]]],
    ) -> ModelAnswer[O]:
        if self._cache is None or run.attempt > 0:
            return await ask()
        question = run.find_question()
        key = CacheKey(question.tenant, question.assistant, content_hash, question)
        async with self._cache.lock(key):
            frame = await self._cache.get(key)
            shared = decode(frame, task.output) if frame is not None else None
            if shared is not None:
                return self._hit(self._cache, key, task, shared[0])
            self._cache.counts.misses += 1
            answer = await ask()
            if answer.model != OFFLINE or self.name == OFFLINE:
                # An answer of the `offline` fallback is not shared.
                await self._cache.put(key, encode(answer))
            return answer

    def _hit(
        self, cache: SharedCache, key: CacheKey, task: Task[I, O], answer: ModelAnswer[O]
    ) -> ModelAnswer[O]:
        _record_hit(cache, key, task.name, answer.model, answer.cost_usd)
        return replace(answer, usage=Usage(), cost_usd=Decimal(0), milliseconds=0.0)


class _StoredError(BaseModel, frozen=True):
    """A stored error caused by the content of a request; for a chain, it includes the errors of its
    models.
    """

    kind: str
    text: str
    errors: "tuple[_StoredError, ...]" = ()
    calls: tuple[ModelCall, ...] = ()


def fingerprint(task: Task[I, O], inputs: I, *, asked: str, prompts: Prompts | None) -> str:
    """Return a hash (32 hexadecimal digits) of everything that determines an answer.

    The hash covers the model name `asked`, the task, its parameters, the schema of its output, and
    the rendered prompt or, if no prompt is rendered (offline), the inputs.
    """
    content = (
        json.dumps(inputs.model_dump(mode="json"))
        if prompts is None
        else prompts.render(task.name, inputs).hash
    )
    parts = (
        asked,
        task.name,
        str(task.temperature),
        str(task.max_output_tokens),
        _schema_text(task.output),
        content,
    )
    return digest(*parts)


def fingerprint_conversation(conversation: ToolConversation, *, asked: str) -> str:
    """Return a hash (32 hexadecimal digits) of everything that determines the next message.

    Differences in white space and final punctuation of the first message are ignored.
    """
    content = conversation.model_dump_json()
    first = conversation.messages[0].text
    plain = " ".join(first.split()).rstrip(_FINAL_MARKS)
    return digest(asked, content.replace(to_json(first).decode(), to_json(plain).decode()))


def digest(*parts: str) -> str:
    """Return a hash (32 hexadecimal digits) of these texts and their boundaries."""
    # A lone surrogate is hashed as its escape sequence, because it cannot be encoded.
    text = json.dumps(parts, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def encode_step(step: ModelStep, calls: Sequence[ModelCall] = ()) -> bytes:
    """Encode a step for storage."""
    return _STORED_STEP.dump_json(_StoredStep(step=step, calls=tuple(calls)))


def decode_step(frame: bytes) -> tuple[ModelStep, Sequence[ModelCall]] | None:
    """Decode a stored step and its calls, marked `from_store`; return None for an unknown
    version.
    """
    try:
        stored = _STORED_STEP.validate_json(frame)
    except ValidationError:
        return None
    calls = [replace(call, from_store=True) for call in stored.calls]
    return replace(stored.step, from_store=True), calls


def encode(answer: ModelAnswer[O], calls: Sequence[ModelCall] = ()) -> bytes:
    """Encode an answer for storage."""
    stored = _StoredAnswer(
        output=answer.output.model_dump_json(),
        model=answer.model,
        usage=answer.usage,
        cost_usd=answer.cost_usd,
        milliseconds=answer.milliseconds,
        calls=tuple(calls),
    )
    return _STORED_ANSWER.dump_json(stored)


def decode(frame: bytes, output: type[O]) -> tuple[ModelAnswer[O], Sequence[ModelCall]] | None:
    """Decode a stored answer and its calls, marked `from_store`; return None for an unknown
    version.
    """
    try:
        stored = _STORED_ANSWER.validate_json(frame)
        read = output.model_validate_json(stored.output)
    except ValidationError:
        return None
    answer = ModelAnswer(
        read, stored.model, stored.usage, stored.cost_usd, stored.milliseconds, from_store=True
    )
    return answer, [replace(call, from_store=True) for call in stored.calls]


@lru_cache(maxsize=64)
def _schema_text(output: type[BaseModel]) -> str:
    return json.dumps(output.model_json_schema(), sort_keys=True)


def _is_final(error: ModelError) -> bool:
    """Return whether the same request would fail again with each of the called models."""
    errors = error.errors if isinstance(error, ChainExhausted) else (error,)
    return bool(errors) and all(map(may_depend_on_content, errors))


def _store_error(error: ModelError) -> _StoredError:
    errors = error.errors if isinstance(error, ChainExhausted) else ()
    kind = next((name for name, known in _ERRORS.items() if type(error) is known), "")
    return _StoredError(kind=kind, text=str(error), errors=tuple(map(_store_error, errors)))


def _make_error(stored: _StoredError) -> ModelError:
    if stored.errors:
        return ChainExhausted(stored.text, tuple(map(_make_error, stored.errors)))
    return _ERRORS.get(stored.kind, ModelError)(stored.text)


def _raise_stored(frame: bytes | None) -> None:
    """Raise the error stored in a frame, if any, and record the calls that caused it."""
    try:
        stored = _StoredError.model_validate_json(frame or b"")
    except ValidationError:
        return
    for call in stored.calls:
        record(replace(call, from_store=True, from_cache=False))
    raise _make_error(stored)


def _is_for_time(error: ModelError) -> bool:
    if isinstance(error, ChainExhausted):
        return all(isinstance(model_error, ModelTimeout) for model_error in error.errors)
    return isinstance(error, ModelTimeout)


def _record_hit(
    cache: SharedCache, key: CacheKey, task: str, model: str, cost_usd: Decimal | None
) -> None:
    """Record a free call whose answer was paid for by another question."""
    cache.counts.add_hit(cost_usd)
    record(
        ModelCall(
            task=task,
            model=model,
            usage=Usage(),
            cost_usd=Decimal(0),
            milliseconds=0.0,
            from_store=True,
            prompt_hash=key.content_hash,
            from_cache=True,
            saved_usd=cost_usd,
        )
    )


def _replay(answer: ModelAnswer[O], calls: Sequence[ModelCall]) -> ModelAnswer[O]:
    for call in calls:
        record(replace(call, from_cache=False))
    return answer
