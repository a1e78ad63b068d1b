"""Answers without a key and without a network: each task by its deterministic rule."""

import asyncio
from collections.abc import Mapping
from decimal import Decimal
from importlib import import_module
from time import perf_counter

from llm.call_log import record
from llm.conversations.port import ModelStep
from llm.conversations.turns import ToolConversation
from llm.errors import ModelError, NoModel
from llm.port import I, ModelAnswer, ModelCall, O, Task, Usage
from llm.stored_calls.fingerprint import fingerprint

RULES: Mapping[str, str] = {
    "hyde_expansion": "llm.offline.wordings",
}
"""The module of each task, whose `answer(inputs)` is its rule; imported at the first call."""


class OfflineModel:
    """The deterministic baseline; it costs nothing, and its answers name it as `offline`."""

    name = "offline"

    def __init__(self, rules: Mapping[str, str] = RULES) -> None:
        self._rules = rules

    async def ask(self, task: Task[I, O], inputs: I, *, skip: int = 0) -> ModelAnswer[O]:
        started = perf_counter()
        try:
            # In a thread: a long text must not block the event loop.
            output = await asyncio.to_thread(self._answer, task, inputs)
        except NoModel:
            raise  # nothing was asked
        except ModelError as error:
            record(_call(task, inputs, started, f"{type(error).__name__}: {error}"))
            raise
        call = _call(task, inputs, started, None)
        record(call)
        return ModelAnswer(output, self.name, call.usage, call.cost_usd, call.milliseconds)

    async def converse(self, conversation: ToolConversation, *, skip: int = 0) -> ModelStep:
        raise NoModel(f"expected a model for the task {conversation.task!r}, found none: set one")

    def _answer(self, task: Task[I, O], inputs: I) -> O:
        module = self._rules.get(task.name)
        if module is None:
            raise NoModel(f"expected a model for the task {task.name!r}, found none: set one")
        output = import_module(module).answer(inputs)
        if not isinstance(output, task.output):
            raise TypeError(
                f"expected {module}.answer to return {task.output.__qualname__}, "
                f"found {type(output).__qualname__}"
            )
        return output


def _call(task: Task[I, O], inputs: I, started: float, error: str | None) -> ModelCall:
    return ModelCall(
        task=task.name,
        model=OfflineModel.name,
        usage=Usage(),
        cost_usd=Decimal(0),
        milliseconds=(perf_counter() - started) * 1000,
        error=error,
        prompt_hash=fingerprint(task, inputs, asked=OfflineModel.name, prompts=None),
    )
