"""A fallback chain: asks the next model when one is unavailable, and says so."""

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from llm.errors import (
    ChainExhausted,
    MissingKey,
    ModelError,
    ModelUnavailable,
    RateLimited,
    RejectedRequest,
    UnknownModel,
    UnreadableOutput,
)
from llm.port import I, Model, ModelAnswer, O, StreamingModel, Task

FALLBACK_ON = (ModelUnavailable, UnknownModel, MissingKey, RejectedRequest, UnreadableOutput)
"""A refusal is an answer, and what is wrong in the program is wrong for every model."""


class FallbackChain:
    """Models asked one after the other, until one answers.

    Every model records its own failure (`llm.call_log`), so that a fallback is in the journal;
    `fallbacks` counts them by the two models and the error, for the metrics.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        if not models:
            raise ValueError("expected at least one model in a chain, found none")
        self._models = tuple(models)
        self.name = ",".join(model.name for model in models)
        self.fallbacks: Counter[tuple[str, str, str]] = Counter()

    async def ask(self, task: Task[I, O], inputs: I, *, skip: int = 0) -> ModelAnswer[O]:
        models = self._models[min(skip, len(self._models) - 1) :]
        errors: list[ModelError] = []
        for position, model in enumerate(models):
            try:
                return await model.ask(task, inputs)
            except FALLBACK_ON as error:
                errors.append(error)
                if position + 1 < len(models):
                    following = models[position + 1].name
                    self.fallbacks[model.name, following, type(error).__name__] += 1
        raise _make_exhausted_error(models, errors)

    async def stream(self, task: Task[I, O], inputs: I) -> AsyncGenerator[str, None]:
        """Yield the pieces of an answer's text as they come.

        The next model is asked only while no piece was yielded: none can be taken back.
        """
        errors: list[ModelError] = []
        for model in self._models:
            is_shown = False
            try:
                async with aclosing(_read_pieces(model, task, inputs)) as pieces:
                    async for piece in pieces:
                        is_shown = True
                        yield piece
                return
            except FALLBACK_ON as error:
                if is_shown:
                    raise
                errors.append(error)
        raise _make_exhausted_error(self._models, errors)

    def __repr__(self) -> str:
        return f"FallbackChain({self.name!r})"


async def _read_pieces(model: Model, task: Task[I, O], inputs: I) -> AsyncGenerator[str, None]:
    if not isinstance(model, StreamingModel):
        yield (await model.ask(task, inputs)).output.model_dump_json()
        return
    async with aclosing(model.stream(task, inputs)) as pieces:
        async for piece in pieces:
            yield piece


def _make_exhausted_error(models: Sequence[Model], errors: Sequence[ModelError]) -> ModelError:
    if len(errors) == 1:
        return errors[0]
    why = "; ".join(f"{model.name}: {error}" for model, error in zip(models, errors, strict=True))
    message = f"expected an answer from one of {len(models)} models, all failed: {why}"
    limited = [error for error in errors if isinstance(error, RateLimited)]
    if len(limited) == len(errors):
        known = [
            error.retry_after_seconds for error in limited if error.retry_after_seconds is not None
        ]
        return RateLimited(message, retry_after_seconds=min(known, default=None))
    return ChainExhausted(message, tuple(errors))
