"""Answers from a script, for tests: outputs, errors and gates, in order or by task."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import BaseModel

from envelope.run import OUTSIDE, Run
from llm.errors import ModelError
from llm.port import (
    I,
    ModelAnswer,
    ModelCall,
    ModelMessage,
    ModelStep,
    O,
    StopReason,
    Task,
    ToolConversation,
    Usage,
    record,
)


class ScriptError(ModelError):
    """The script of a scripted model and the calls differ."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Answers with `then` once `opened` is set; `reached` is set when the model was asked."""

    then: "Scripted"
    opened: asyncio.Event
    reached: asyncio.Event


Scripted = BaseModel | ModelError | Gate | Callable[[BaseModel], BaseModel]
"""What a script may hold: an output, an error to raise, a gate, or a function of the inputs."""


def gate(then: Scripted) -> Gate:
    """Return a closed gate before `then`."""
    return Gate(then, asyncio.Event(), asyncio.Event())


@dataclass(frozen=True, slots=True)
class RecordedPrompt:
    """One call of a scripted model."""

    task: str
    inputs: BaseModel
    skip: int


class ScriptedModel:
    """Returns scripted outputs; an additional call or an output of the wrong type is an error.

    The script is one sequence for all tasks, or a mapping from a task's name to its sequence.
    `calls` has the calls in order.
    """

    def __init__(
        self,
        script: Iterable[Scripted] | Mapping[str, Iterable[Scripted]],
        *,
        name: str = "scripted",
        usage: Usage = Usage(),  # noqa: B008 - frozen
        cost_usd: Decimal | None = Decimal(0),
    ) -> None:
        self.name = name
        self.calls: list[RecordedPrompt] = []
        self._usage = usage
        self._cost_usd = cost_usd
        self._by_task = (
            {task: deque(steps) for task, steps in script.items()}
            if isinstance(script, Mapping)
            else None
        )
        self._in_order: deque[Scripted] = deque() if isinstance(script, Mapping) else deque(script)

    async def ask(
        self, task: Any, inputs: Any, run: Run = OUTSIDE, **options: Any
    ) -> ModelAnswer[Any]:
        self.calls.append(RecordedPrompt(task.name, inputs, options.get("skip", 0)))
        try:
            output = _check_type(task, await self._play(inputs, self._next(task.name)))
        except ModelError as error:
            record(self._call(task.name, f"{type(error).__name__}: {error}"))
            raise
        record(self._call(task.name, None))
        return ModelAnswer(output, self.name, self._usage, self._cost_usd, 0.0)

    async def converse(
        self, conversation: ToolConversation, run: Run = OUTSIDE, *, skip: int = 0
    ) -> ModelStep:
        self.calls.append(RecordedPrompt(conversation.task, conversation, skip))
        try:
            message = await self._play(conversation, self._next(conversation.task))
        except ModelError as error:
            record(self._call(conversation.task, f"{type(error).__name__}: {error}"))
            raise
        if not isinstance(message, ModelMessage):
            raise ScriptError(f"expected a ModelMessage, found {type(message).__name__}")
        record(self._call(conversation.task, None))
        stop = StopReason.TOOL_USE if message.calls else StopReason.END_TURN
        return ModelStep(message, stop, self.name, self._usage, self._cost_usd, 0.0)

    def assert_complete(self) -> None:
        """Raise `ScriptError` if a part of the script was not used."""
        left = {"": len(self._in_order)} if self._by_task is None else _lengths(self._by_task)
        left = {task: number for task, number in left.items() if number}
        if left:
            unused = ", ".join(f"{n} of {t!r}" if t else str(n) for t, n in left.items())
            raise ScriptError(f"expected the whole script to be asked for, left over: {unused}")

    def _next(self, task_name: str) -> Scripted:
        steps = self._in_order if self._by_task is None else self._by_task.get(task_name)
        if not steps:
            raise ScriptError(
                f"expected no more questions, found task {task_name!r} "
                f"as question {len(self.calls)}"
            )
        return steps.popleft()

    async def _play(self, inputs: BaseModel, step: Scripted) -> BaseModel:
        while isinstance(step, Gate):
            step.reached.set()
            await step.opened.wait()
            step = step.then
        if isinstance(step, ModelError):
            raise step
        return step if isinstance(step, BaseModel) else step(inputs)

    def _call(self, task_name: str, error: str | None) -> ModelCall:
        return ModelCall(task_name, self.name, self._usage, self._cost_usd, 0.0, error=error)


def _check_type(task: Task[I, O], output: BaseModel) -> O:
    if not isinstance(output, task.output):
        raise ScriptError(
            f"expected an output of {task.output.__module__}.{task.output.__qualname__} "
            f"for task {task.name!r}, found {type(output).__qualname__}"
        )
    return output


def _lengths(script: Mapping[str, deque[Scripted]]) -> dict[str, int]:
    return {task: len(steps) for task, steps in script.items()}
