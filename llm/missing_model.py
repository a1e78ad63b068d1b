"""The model for `GEN_MODEL=offline`; every call raises `NoModel`."""

from envelope.run import OUTSIDE, Run
from llm.errors import NoModel
from llm.port import OFFLINE, I, ModelAnswer, ModelStep, O, Task, TextListener, ToolConversation


class MissingModel:
    """Raises `NoModel` for every call, because callers have fallbacks that do not need a model."""

    name = OFFLINE

    async def ask(
        self,
        task: Task[I, O],
        inputs: I,
        run: Run = OUTSIDE,
        *,
        skip: int = 0,
        listener: TextListener | None = None,
    ) -> ModelAnswer[O]:
        raise _make_error(task.name)

    async def converse(
        self, conversation: ToolConversation, run: Run = OUTSIDE, *, skip: int = 0
    ) -> ModelStep:
        raise _make_error(conversation.task)


def _make_error(task: str) -> NoModel:
    return NoModel(f"no model is configured for the task {task!r}; set GEN_MODEL")
