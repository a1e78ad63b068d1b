"""Translates a vendor's HTTP status into an error of `llm.errors`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from llm.errors import (
    MissingKey,
    ModelError,
    ModelUnavailable,
    QuotaExhausted,
    RateLimited,
    RejectedRequest,
    UnknownModel,
)

MESSAGE_CHARACTERS = 200
"""The number of characters of a vendor's message that an error repeats."""


def wrong_key(model: str, key_variable: str, status: int) -> MissingKey:
    """Return the error for a refused key, without the message: it repeats parts of the key."""
    return MissingKey(
        f"expected a key in {key_variable} that the vendor accepts for {model!r}, found that it "
        f"was refused (status {status})"
    )


def error_of(
    model: str,
    status: int,
    message: str,
    *,
    key_variable: str,
    parameter: str = "",
    retry_after_seconds: float | None = None,
) -> ModelError:
    """Return the error for a status of 400 or above.

    `message` is the vendor's message, `parameter` the part of the request that it names.
    """
    message = " ".join(message.split())[:MESSAGE_CHARACTERS]
    if status in {401, 403}:
        return wrong_key(model, key_variable, status)
    if status == 404:
        return UnknownModel(f"the vendor knows no model {model!r}: {message}")
    if status == 429:
        return RateLimited(
            f"the vendor limits the rate of {model!r}: {message}",
            retry_after_seconds=retry_after_seconds,
        )
    if status >= 500 or status in {408, 409}:
        return ModelUnavailable(
            f"the vendor of {model!r} failed with status {status}: {message}",
            retry_after_seconds=retry_after_seconds,
        )
    if status == 402:
        return QuotaExhausted(f"the vendor requires payment for {model!r}: {message}")
    return RejectedRequest(
        f"the vendor rejects the request to {model!r} ({status}): {message}", parameter=parameter
    )


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of `Retry-After`, in any of its forms, or None without it."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else -1.0
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
