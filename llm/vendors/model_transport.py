"""Makes calls to a vendor, with rate limits, time limits, retries, and a circuit breaker."""

import asyncio
import copy
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TypeVar

import stamina
import structlog

from envelope.run import Run
from llm.errors import (
    MissingKey,
    ModelError,
    ModelMisconfigured,
    ModelTimeout,
    ModelUnavailable,
    QuotaExhausted,
    RateLimited,
    UnknownReply,
)
from llm.quotas import Limiter

T = TypeVar("T")


def remaining_seconds(run: Run, limit: float) -> float:
    """Return the seconds that one call may take: `limit`, or less if the deadline is near."""
    if run.deadline is None:
        return limit
    left = run.deadline - asyncio.get_running_loop().time()
    return max(0.0, min(limit, left - run.reserve_seconds))


FIRST_TOKEN_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class RetryRules:
    """The retry rules of a model; `attempts` includes the first attempt.

    Waits grow, with jitter, from `wait_initial_seconds` to `wait_max_seconds`. A `Retry-After` is
    respected exactly. If it is longer than `retry_after_max_seconds` or the remaining time, the
    call fails immediately, so that the caller can use a fallback or try again later.
    """

    attempts: int = 2
    wait_initial_seconds: float = 0.5
    wait_max_seconds: float = 5.0
    retry_after_max_seconds: float = 10.0

    def wait_after(self, run: Run, error: Exception) -> bool | float:
        """Return whether to retry after an error, or the exact number of seconds to wait first."""
        # After a timeout, another model is faster than a retry; so is it if the run forbids
        # retries.
        if (
            not isinstance(error, ModelUnavailable)
            or isinstance(error, ModelTimeout | QuotaExhausted)
            or not run.may_retry
        ):
            return False
        wait = error.retry_after_seconds
        if wait is None:
            return remaining_seconds(run, self.wait_max_seconds) > self.wait_initial_seconds
        return wait if wait < remaining_seconds(run, self.retry_after_max_seconds) else False


EMBEDDING_RETRIES = RetryRules(attempts=3)
"""More attempts than usual, because an ingestion makes many calls and has no fallback model."""
FIRST_PAUSE_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 300.0
LONGEST_RETRY_AFTER_SECONDS = 3600.0
"""The longest `Retry-After` that is respected. After that time, a probe is made anyway."""
WINDOW_SECONDS = 60.0
LEAST_FAILURES = 3
"""Minimum number of failed calls within the window that opens the circuit breaker."""
FAILURE_RATE = 0.5

FAILURES = (ModelUnavailable, ModelMisconfigured, UnknownReply)
"""Failures of a server. After any other error, the model did respond."""

log = structlog.get_logger("llm")


@dataclass(frozen=True, slots=True)
class Transport:
    """Calls a model; `timeout_seconds` limits each request, and the run's deadline limits all of
    them.

    `first_token_seconds` limits the wait for the first token of a streamed answer.
    """

    name: str
    timeout_seconds: float
    retries: RetryRules
    limiter: Limiter | None
    first_token_seconds: float = FIRST_TOKEN_SECONDS

    async def call(
        self,
        run: Run,
        tokens: int,
        ask: Callable[[float], Awaitable[T]],
        *,
        time_share: float = 1.0,
    ) -> T:
        """Return the result of `ask(time limit in seconds)`; `tokens` is the maximum token
        usage.
        """

        async def ask_once() -> T:
            await self._reserve_quota(run, tokens)
            return await self.within(run, ask, time_share=time_share)

        rules = self.retries
        repeat = stamina.AsyncRetryingCaller(
            attempts=rules.attempts,
            timeout=None,
            wait_initial=rules.wait_initial_seconds,
            wait_max=rules.wait_max_seconds,
            wait_jitter=rules.wait_initial_seconds,
        )
        return await repeat(partial(rules.wait_after, run), ask_once)

    async def within(
        self, run: Run, ask: Callable[[float], Awaitable[T]], *, time_share: float = 1.0
    ) -> T:
        """Call `ask` once within the time limit; raises `ModelTimeout`."""
        seconds = remaining_seconds(run, self.timeout_seconds * time_share)
        try:
            async with asyncio.timeout(seconds):
                return await ask(seconds)
        except TimeoutError as error:
            raise ModelTimeout(
                f"{self.name!r} did not answer within {seconds:.3g} s",
                had_full_time=time_share == 1.0,
            ) from error
        except ModelTimeout as error:
            error.had_full_time &= time_share == 1.0
            raise

    async def wait_for_first(self, run: Run, coming: Awaitable[T]) -> T:
        """Return the first part of a streamed answer; raises `ModelTimeout` if it is late."""
        seconds = remaining_seconds(run, self.first_token_seconds)
        try:
            async with asyncio.timeout(seconds):
                return await coming
        except TimeoutError as error:
            raise ModelTimeout(
                f"{self.name!r} did not start to respond within {seconds:.3g} s"
            ) from error

    async def _reserve_quota(self, run: Run, tokens: int) -> None:
        if self.limiter is None:
            return
        patience = remaining_seconds(run, self.timeout_seconds)
        while (wait := await self.limiter.acquire(self.name, tokens)) > 0:
            patience -= wait
            if patience < 0:
                raise RateLimited(
                    f"MODEL_LIMITS of {self.name!r} allows no further request for {wait:.3g} s",
                    retry_after_seconds=wait,
                )
            await asyncio.sleep(wait)


class CircuitBreaker:
    """Decides whether one model may be called.

    The breaker opens when at least `LEAST_FAILURES` calls have failed within `WINDOW_SECONDS` and
    they make up at least `FAILURE_RATE` of the calls that finished in that window or are still
    running. It opens immediately after a failure that is bound to recur: a rejected key, an
    exhausted quota, or a `Retry-After` header.

    It stays open for the time in the `Retry-After` header or, without one, for
    `FIRST_PAUSE_SECONDS`, which doubles after each failed probe. Then it is half-open: one call is
    the probe, and all others are rejected until the probe has ended.

    If the server reported errors only for some tasks, a call for another task can be the probe
    before the pause is over, because the cause may be the content of their prompts.
    """

    def __init__(self, model: str, *, clock: Callable[[], float] = monotonic) -> None:
        self._model = model
        self._clock = clock
        self._ended: deque[tuple[float, bool, str]] = deque()
        self._failed_tasks: set[str] = set()
        self._running = 0
        self._opened_until = 0.0
        self._openings = 0
        self._cause: ModelError | None = None
        self._is_probing = False

    def is_open(self) -> bool:
        """Return whether the model must not be called at the moment."""
        return self._cause is not None and (self._is_probing or self._remaining_pause() > 0)

    def enter(self, task: str = "") -> None:
        """Start a call for a task, which is the probe if the pause is over. Raises the error that
        opened the breaker if it is still open.

        Every started call must end with `note_success`, `note_failure` or `abandon`.
        """
        if self._cause is not None and self.is_open() and not self._may_depend_on_task(task):
            raise self._repeat_cause(self._cause)
        self._is_probing = self._cause is not None
        self._running += 1

    def note_success(self) -> None:
        """Count a successful call, and close the breaker."""
        self._end(failed=False)
        if self._cause is not None:
            log.info("model_answers_again", model=self._model)
        self._cause, self._openings, self._is_probing = None, 0, False
        self._failed_tasks.clear()

    def note_failure(self, error: ModelError, task: str = "") -> None:
        """Count a failed call for a task, and open the breaker if the next call would probably fail
        as well.
        """
        if not isinstance(error, FAILURES):
            self.note_success()
            return
        self._end(failed=True, task=task)
        if self._is_probing and self._remaining_pause() > 0 and not _is_lasting(error):
            # A probe for another task during the pause does not make the pause longer.
            self._failed_tasks.add(task)
            self._is_probing = False
        elif self._is_probing or _is_lasting(error) or self._fails_often():
            self._open(error)

    def abandon(self) -> None:
        """End a call without a result, because it was cancelled or did not have enough time."""
        self._running -= 1
        self._is_probing = False

    def _open(self, error: ModelError) -> None:
        pause = self._choose_pause(error)
        if not self.is_open() or self._is_probing:
            # Concurrent calls that fail together count once.
            self._openings += 1
        self._cause, self._is_probing = error, False
        self._failed_tasks |= {task for _, failed, task in self._ended if failed}
        self._opened_until = max(self._opened_until, self._clock() + pause)
        self._ended.clear()
        log.warning(
            "model_left_alone", model=self._model, seconds=round(pause, 1), reason=str(error)
        )

    def _may_depend_on_task(self, task: str) -> bool:
        """Return whether the server may answer this task although others failed."""
        error = self._cause
        return (
            bool(task)
            and not self._is_probing
            and task not in self._failed_tasks
            and isinstance(error, ModelUnavailable | UnknownReply)
            and not isinstance(error, ModelTimeout)
            and not _is_lasting(error)
        )

    def _end(self, *, failed: bool, task: str = "") -> None:
        now = self._clock()
        self._running -= 1
        self._ended.append((now, failed, task))
        while self._ended[0][0] < now - WINDOW_SECONDS:
            self._ended.popleft()

    def _fails_often(self) -> bool:
        failures = sum(failed for _, failed, _ in self._ended)
        calls = len(self._ended) + self._running
        return failures >= LEAST_FAILURES and failures >= FAILURE_RATE * calls

    def _remaining_pause(self) -> float:
        return self._opened_until - self._clock()

    def _choose_pause(self, error: ModelError) -> float:
        if isinstance(error, MissingKey | QuotaExhausted):
            return LONGEST_PAUSE_SECONDS
        retry_after = error.retry_after_seconds if isinstance(error, ModelUnavailable) else None
        if retry_after is not None:
            return min(retry_after, LONGEST_RETRY_AFTER_SECONDS)
        return min(FIRST_PAUSE_SECONDS * 2.0 ** min(self._openings, 10), LONGEST_PAUSE_SECONDS)

    def _repeat_cause(self, cause: ModelError) -> ModelError:
        """Return a copy of the error that opened the breaker, with the remaining time.

        The message does not contain the time, so that equal failures have equal messages.
        """
        error = copy.copy(cause)
        error.args = (f"{cause} (it is not called again for some time)",)
        if isinstance(error, ModelUnavailable):
            error.retry_after_seconds = max(0.0, self._remaining_pause())
        return error


def _is_lasting(error: ModelError) -> bool:
    """Return whether this failure means that further calls will fail as well."""
    if isinstance(error, ModelUnavailable) and error.retry_after_seconds is not None:
        return True
    return isinstance(error, MissingKey | QuotaExhausted)
