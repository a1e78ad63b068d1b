"""Stops calls to a model that fails, until a probe succeeds."""

import copy
from collections.abc import Callable
from time import monotonic

import structlog

from llm.errors import (
    MissingKey,
    ModelError,
    ModelUnavailable,
    QuotaExhausted,
    UnknownModel,
)

FIRST_PAUSE_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 300.0
LONGEST_RETRY_AFTER_SECONDS = 3600.0
"""The longest `Retry-After` that is respected; after it a probe is made anyway."""

log = structlog.get_logger("llm")


class CircuitBreaker:
    """Decides whether one model may be called.

    A failure of the vendor or of its key opens the breaker: for the vendor's `Retry-After`, else
    for `FIRST_PAUSE_SECONDS`, doubled after each probe that fails. After the pause one call is the
    probe; all others are rejected until it has ended.
    """

    def __init__(self, model: str, *, clock: Callable[[], float] = monotonic) -> None:
        self._model = model
        self._clock = clock
        self._opened_until = 0.0
        self._failures = 0
        self._cause: ModelError | None = None
        self._is_probing = False

    def is_open(self) -> bool:
        """Return whether the model must not be called now."""
        return self._cause is not None and (self._is_probing or self._remaining_pause() > 0)

    def enter(self) -> None:
        """Begin a call; after the pause it is the probe. Raise the cause if the breaker is open.

        Every call that begins has to end with `note_success`, `note_failure` or `abandon`.
        """
        if self._cause is not None and self.is_open():
            raise self._repeat_cause(self._cause)
        self._is_probing = self._cause is not None

    def note_success(self) -> None:
        """Close the breaker: the model answered."""
        if self._cause is not None:
            log.info("model_answers_again", model=self._model)
        self._cause, self._failures, self._is_probing = None, 0, False

    def note_failure(self, error: ModelError) -> None:
        """Open the breaker for a failure that the next call would meet, too."""
        if not isinstance(error, ModelUnavailable | MissingKey | UnknownModel):
            # The model answered: an unusable answer does not predict the next one.
            self.note_success()
            return
        pause = self._choose_pause(error)
        if not self.is_open() or self._is_probing:
            # Calls that run at the same time fail together, and count once.
            self._failures += 1
        self._cause, self._is_probing = error, False
        self._opened_until = max(self._opened_until, self._clock() + pause)
        # Other errors have the vendor's text, which may repeat what people wrote.
        reason = str(error) if isinstance(error, MissingKey) else type(error).__name__
        log.warning("model_left_alone", model=self._model, seconds=round(pause, 1), reason=reason)

    def abandon(self) -> None:
        """End a call without a result: it was cancelled, or had too little time."""
        self._is_probing = False

    def _remaining_pause(self) -> float:
        return self._opened_until - self._clock()

    def _choose_pause(self, error: ModelError) -> float:
        if isinstance(error, MissingKey | UnknownModel | QuotaExhausted):
            return LONGEST_PAUSE_SECONDS
        retry_after = error.retry_after_seconds if isinstance(error, ModelUnavailable) else None
        if retry_after is not None:
            return min(retry_after, LONGEST_RETRY_AFTER_SECONDS)
        return min(FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures, 10), LONGEST_PAUSE_SECONDS)

    def _repeat_cause(self, cause: ModelError) -> ModelError:
        """Return the error that opened the breaker, with the remaining time."""
        left = max(0.0, self._remaining_pause())
        error = copy.copy(cause)
        error.args = (f"{cause} (it is not asked again for {left:.3g} s)",)
        if isinstance(error, ModelUnavailable):
            error.retry_after_seconds = left
        return error
