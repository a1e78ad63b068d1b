"""A finished model call is not paid twice: a redelivered envelope finds the answer."""

from dataclasses import dataclass
from typing import Protocol

from envelope.question import Question
from llm.call_log import record, record_calls
from llm.call_scope import CallScope, current_scope
from llm.port import I, Model, ModelAnswer, O, Task
from llm.prompts import Prompts
from llm.stored_calls.fingerprint import fingerprint
from llm.stored_calls.kept_answer import decode, encode


@dataclass(frozen=True, slots=True)
class CallKey:
    """Names one call of one hop, whichever delivery of its envelope makes it."""

    question: Question
    stage: str
    attempt: int
    prompt_hash: str


class CallStore(Protocol):
    """Keeps answers while their question lives; forgets them with it."""

    async def get(self, key: CallKey) -> bytes | None:
        """Return the answer of a call; raises when its question has ended."""
        ...

    async def put(self, key: CallKey, answer: bytes) -> None: ...


class StoredModel:
    """Looks for a stored answer of this hop before asking, and stores what was asked.

    A found answer has the usage and cost of when it was paid, and its calls are recorded again
    with `from_store`: the delivery that paid died before its journal was written, or wrote the
    same calls without that mark. Outside of a `call_scope` it only asks.
    """

    def __init__(self, model: Model, store: CallStore, *, prompts: Prompts | None) -> None:
        self.name = model.name
        self._model = model
        self._store = store
        self._prompts = prompts

    async def ask(self, task: Task[I, O], inputs: I, *, skip: int = 0) -> ModelAnswer[O]:
        scope = current_scope()
        if scope is None:
            return await self._model.ask(task, inputs, skip=skip)
        key = self._key(scope, task, inputs, skip)
        frame = await self._store.get(key)
        found = decode(frame, task.output) if frame is not None else None
        if found is None:
            return await self._ask(key, task, inputs, skip)
        answer, calls = found
        for call in calls:
            record(call)
        return answer

    async def _ask(self, key: CallKey, task: Task[I, O], inputs: I, skip: int) -> ModelAnswer[O]:
        with record_calls() as calls:
            answer = await self._model.ask(task, inputs, skip=skip)
        await self._store.put(key, encode(answer, calls))
        return answer

    def _key(self, scope: CallScope, task: Task[I, O], inputs: I, skip: int) -> CallKey:
        asked = f"{self.name}+{skip}"
        prompt_hash = fingerprint(task, inputs, asked=asked, prompts=self._prompts)
        return CallKey(scope.question, scope.stage, scope.attempt, prompt_hash)
