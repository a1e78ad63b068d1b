"""Answers without a key and without a network: each task by its deterministic rule."""

import asyncio
from collections.abc import Mapping
from decimal import Decimal
from importlib import import_module
from time import perf_counter

from llm.call_log import record
from llm.conversations.port import ModelStep
from llm.conversations.turns import StopReason, ToolConversation
from llm.errors import ModelError, NoModel, UnknownTask
from llm.port import I, ModelAnswer, ModelCall, O, Task, Usage
from llm.stored_calls.fingerprint import digest, fingerprint

RULES: Mapping[str, str] = {
    "triage": "llm.offline.planning.triage_rules",
    "assess": "llm.offline.planning.assess_rules",
    "plan_swarm": "llm.offline.planning.proposals",
    "hyde_expansion": "llm.offline.wordings",
    "synthesize_findings": "llm.offline.planning.proposals",
}
"""The module of each task, whose `answer(inputs)` is its rule; imported at the first call."""
CONVERSATION_RULES: Mapping[str, str] = {
    "reason": "llm.offline.planning.planner",
    "work_on_task": "llm.offline.planning.planner",
}
"""The module of each task with tools, whose `write_next(conversation)` is its rule."""


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
        started = perf_counter()
        module = CONVERSATION_RULES.get(conversation.task)
        if module is None:
            raise UnknownTask(
                f"expected a conversation with an offline rule ({', '.join(CONVERSATION_RULES)}), "
                f"found {conversation.task!r}: set a model for it"
            )
        message = await asyncio.to_thread(import_module(module).write_next, conversation)
        call = ModelCall(
            task=conversation.task,
            model=self.name,
            usage=Usage(),
            cost_usd=Decimal(0),
            milliseconds=(perf_counter() - started) * 1000,
            prompt_hash=digest(conversation.model_dump_json()),
        )
        record(call)
        stop = StopReason.TOOL_USE if message.calls else StopReason.END_TURN
        return ModelStep(message, stop, self.name, call.usage, call.cost_usd, call.milliseconds)

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
