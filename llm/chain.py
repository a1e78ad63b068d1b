"""Fallback chains: if a model fails, is slow, or its circuit breaker is open, the next model is
called.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Generic, TypeVar

import structlog

from envelope.run import OUTSIDE, Run
from llm.errors import (
    AccessDenied,
    BudgetExhausted,
    ChainExhausted,
    MissingKey,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    NoModel,
    RateLimited,
    Refused,
    RejectedRequest,
    UnknownModel,
    UnreadableOutput,
    WrongAddress,
    is_too_long,
)
from llm.port import (
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
    shorten_results,
)
from llm.vendors.model_transport import CircuitBreaker, remaining_seconds

log = structlog.get_logger("llm")
A = TypeVar("A", bound="ModelAnswer[Any] | ModelStep")
C = TypeVar("C")

FALLBACK_ON = (
    NoModel, ModelUnavailable, UnknownModel, WrongAddress, MissingKey, AccessDenied,
    RejectedRequest, UnreadableOutput, Refused, BudgetExhausted,
)  # fmt: skip
"""Errors that cause a fallback. Programming errors do not, because every model would fail."""
PATIENCE_SECONDS = 5.0
RESERVE_SECONDS = 1.0
"""The part of a hop's time, in seconds, that is reserved for later models."""
AskOne = Callable[[Model, Run], Awaitable[A]]
"""Calls one model of a chain, with a run that is limited to the model's share of the time."""


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One model of a chain; `breaker` is None for a model without a vendor."""

    model: Model
    breaker: CircuitBreaker | None = None

    def is_callable(self) -> bool:
        """Return whether this is a vendor's model whose breaker is closed."""
        return self.breaker is not None and not self.breaker.is_open()


@dataclass(frozen=True, slots=True)
class Asked:
    """The context of one call to a chain: task, run, and listener for partial output."""

    task_name: str
    run: Run
    listener: TextListener | None = None


class FallbackChain:
    """A chain of models that are called in order until one answers.

    If a model fails, the next one is called immediately. If a model has neither answered nor
    written any text after `patience_seconds`, it keeps running, and the next vendor model is called
    in parallel; the first answer wins. A model without a vendor, such as `offline`, is called only
    if nothing else is running. Failing models are skipped for a while (see `CircuitBreaker`). Every
    model records its failures (`llm.port`), so the journal shows fallbacks. If no model answers
    because the prompt is too long, the chain is called once more with the shorter inputs of
    `Task.shorten`, or with shorter tool results.
    """

    def __init__(
        self, links: Sequence[ChainLink], *, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        if not links:
            raise ValueError("a chain requires at least one model")
        self._links = tuple(links)
        self._patience_seconds = patience_seconds
        vendors = sum(link.breaker is not None for link in links)
        self._last_start = (vendors or len(self._links)) - 1
        self.name = ",".join(link.model.name for link in links)

    async def ask(
        self,
        task: Task[I, O],
        inputs: I,
        run: Run = OUTSIDE,
        *,
        skip: int = 0,
        listener: TextListener | None = None,
    ) -> ModelAnswer[O]:
        async def race(sent: I) -> ModelAnswer[O]:
            async def ask_one(model: Model, run: Run) -> ModelAnswer[O]:
                return await model.ask(task, sent, run, listener=listener)

            return await self._race(Asked(task.name, run, listener), ask_one, skip)

        return await _send(task.name, inputs, race, task.shorten)

    async def converse(
        self, conversation: ToolConversation, run: Run = OUTSIDE, *, skip: int = 0
    ) -> ModelStep:
        async def race(sent: ToolConversation) -> ModelStep:
            async def ask_one(model: Model, run: Run) -> ModelStep:
                if not isinstance(model, ConversationModel):
                    raise RejectedRequest(f"the model {model.name!r} does not support tool calls")
                return await model.converse(sent, run)

            return await self._race(Asked(conversation.task, run), ask_one, skip)

        return await _send(conversation.task, conversation, race, shorten_results)

    async def _race(self, asked: Asked, ask: AskOne[A], skip: int) -> A:
        links = self._links[min(skip, self._last_start) :]
        return await _Race(links, asked, ask, self._patience_seconds).run()

    def __repr__(self) -> str:
        return f"FallbackChain({self.name!r})"


class _Race(Generic[A]):
    """One call of a chain, in which models may run in parallel."""

    def __init__(
        self,
        links: Sequence[ChainLink],
        asked: Asked,
        ask: AskOne[A],
        patience_seconds: float,
    ) -> None:
        self._links = links
        self._asked = asked
        self._ask = ask
        self._patience_seconds = patience_seconds
        self._waiting = deque(links)
        self._running: dict[asyncio.Task[A | Exception], tuple[ChainLink, float]] = {}
        self._errors: list[ModelError] = []
        self._fault: Exception | None = None
        self._characters = 0

    async def run(self) -> A:
        """Return the first answer; raises the errors of the models if there is none."""
        answer: A | None = None
        async with asyncio.TaskGroup() as group:
            try:
                self._start_next(group)
                while self._running and answer is None and self._fault is None:
                    answer = await self._wait(group)
            finally:
                self._stop_running(answer)
        if answer is None and self._fault is not None:
            raise self._fault
        if answer is None:
            raise _make_exhausted_error(self._links, self._errors)
        return answer

    async def _wait(self, group: asyncio.TaskGroup) -> A | None:
        """Wait for the next event; return an answer, or None for any other event."""
        has_next = self._has_next()
        patience = min(
            self._patience_seconds,
            remaining_seconds(self._asked.run, 2 * self._patience_seconds) / 2,
        )
        ended, _ = await asyncio.wait(
            self._running,
            timeout=patience if has_next else None,
            return_when=asyncio.FIRST_COMPLETED,
        )
        answers = [self._finish(task) for task in ended]
        answer = next((finished for finished in answers if finished is not None), None)
        is_late = has_next and (ended or not self._is_being_written())
        if answer is None and (is_late or not self._running):
            self._start_next(group)
        return answer

    def _is_being_written(self) -> bool:
        """Return whether more text has arrived since the last check, in which case the model does
        not count as late.
        """
        listener = self._asked.listener
        before, self._characters = self._characters, listener.characters if listener else 0
        return self._characters > before

    def _has_next(self) -> bool:
        """Return whether the next usable model belongs to a vendor, so that it can run in parallel.

        Models with an open circuit breaker are skipped. A model without a vendor is started only
        when no other model is running.
        """
        following = (link for link in self._waiting if link.breaker is None or link.is_callable())
        first = next(following, None)
        return first is not None and first.breaker is not None

    def _start_next(self, group: asyncio.TaskGroup) -> None:
        """Start the next usable model; models with an open circuit breaker count as failed."""
        while self._waiting:
            link = self._waiting.popleft()
            try:
                if link.breaker is not None:
                    link.breaker.enter(self._asked.task_name)
            except ModelError as error:
                self._errors.append(error)
                _record_omission(self._asked.task_name, link, error)
                continue
            restricted = self._asked.run.restrict(
                reserve_seconds=RESERVE_SECONDS if self._waiting else 0.0,
                may_retry=not any(later.is_callable() for later in self._waiting),
            )
            task = group.create_task(_ask_link(link, self._ask, restricted))
            self._running[task] = (link, asyncio.get_running_loop().time())
            return

    def _finish(self, task: asyncio.Task[A | Exception]) -> A | None:
        link, started = self._running.pop(task)
        outcome = task.result()
        if not isinstance(outcome, Exception):
            if link.breaker is not None:
                link.breaker.note_success()
            return outcome
        if isinstance(outcome, FALLBACK_ON):
            self._errors.append(outcome)
            self._report_failure(link, started, outcome)
        else:
            self._fault = outcome
            if link.breaker is not None:
                link.breaker.abandon()
        return None

    def _report_failure(self, link: ChainLink, started: float, error: ModelError) -> None:
        """Report the failure to the circuit breaker, unless there was not enough time or budget for
        the call.
        """
        if link.breaker is None:
            return
        taken = asyncio.get_running_loop().time() - started
        is_hasty = isinstance(error, ModelTimeout) and (
            taken < self._patience_seconds or not error.had_full_time
        )
        if is_hasty or isinstance(error, BudgetExhausted):
            link.breaker.abandon()
        else:
            link.breaker.note_failure(error, self._asked.task_name)

    def _stop_running(self, answer: A | None) -> None:
        for task, (link, started) in self._running.items():
            task.cancel()
            if link.breaker is None:
                continue
            if answer is None:
                link.breaker.abandon()
                continue
            slow = ModelTimeout(
                f"expected an answer of {link.model.name!r} before {answer.model!r} gave one, "
                "found none"
            )
            self._report_failure(link, started, slow)


async def _send(
    task_name: str,
    content: C,
    send: Callable[[C], Awaitable[A]],
    shorten: Callable[[C], C] | None,
) -> A:
    """Call `send` with the content, and once more with shortened content if it is too long."""
    try:
        return await send(content)
    except ModelError as error:
        shorter = content if shorten is None else shorten(content)
        if not is_too_long(error) or shorter == content:
            raise
        log.warning("sources_left_out", task=task_name, reason=str(error))
    return await send(shorter)


async def _ask_link(link: ChainLink, ask: AskOne[A], run: Run) -> A | Exception:
    """Return the answer or the error; a raised error would cancel the other models' tasks."""
    try:
        return await ask(link.model, run)
    except Exception as error:  # noqa: BLE001 - raised again outside of the group
        return error


def _record_omission(task_name: str, link: ChainLink, error: ModelError) -> None:
    record(
        ModelCall(
            task=task_name,
            model=link.model.name,
            usage=Usage(),
            cost_usd=Decimal(0),
            milliseconds=0.0,
            error=f"{type(error).__name__}: {error}",
        )
    )


def _make_exhausted_error(links: Sequence[ChainLink], errors: Sequence[ModelError]) -> ModelError:
    if len(errors) == 1:
        return errors[0]
    why = "; ".join(str(error) for error in errors)
    message = f"all {len(links)} models of the chain failed: {why}"
    if all(isinstance(error, BudgetExhausted) for error in errors):
        return errors[0]
    limited = [error for error in errors if isinstance(error, RateLimited)]
    if len(limited) == len(errors):
        known = [
            error.retry_after_seconds for error in limited if error.retry_after_seconds is not None
        ]
        return RateLimited(message, retry_after_seconds=min(known, default=None))
    return ChainExhausted(message, tuple(errors))
