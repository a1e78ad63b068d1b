"""Errors of model calls, by cause and by what the caller can do.

ModelError
├── NoModel              no model is configured for the task
├── ModelMisconfigured   a wrong setting; a retry does not help
│   ├── UnknownProvider    no vendor has this name
│   ├── UnknownModel       the vendor does not have this model
│   ├── WrongAddress       the URL is served by something other than the vendor's API
│   ├── MissingKey         there is no key, or the vendor does not accept it
│   ├── AccessDenied       the vendor does not allow this request
│   ├── UnusableSchema     the task's output has no strict JSON schema
│   └── RealRequestForbidden  this process must not send requests to other machines (tests)
├── ModelUnavailable     the vendor or the network failed; retry later, or use another model
│   ├── RateLimited        too many requests; `retry_after_seconds` if the vendor states it
│   ├── QuotaExhausted     the account has no quota left; a short wait does not help
│   ├── ModelTimeout       no answer within the time limit
│   └── ChainExhausted     every model of a fallback chain failed; `errors` lists their errors,
│                          and `reason` is the reason of the first error
├── BudgetExhausted      a budget of the question or its tenant does not allow the call
├── RejectedRequest      the vendor cannot process our request (a wrong parameter)
│   └── PromptTooLong      the prompt does not fit into the context window
├── Refused              the model does not answer this request
└── UnreadableOutput     the answer does not have the task's type, even after one repair
    └── UnknownReply       the format of the server's reply is unknown
"""

from decimal import Decimal

from citations.links import plain_line
from envelope.texts import Texts
from llm.port import Usage

NO_MODEL = "no_model"
REASONS = (
    NO_MODEL, "misconfigured", "model_gone", "bad_key", "unavailable", "too_busy", "quota_spent",
    "too_slow", "budget_spent", "rejected", "too_long", "refused", "unreadable",
)  # fmt: skip
"""Reasons why a model call failed."""
NAMED_REASONS = frozenset(REASONS) - {NO_MODEL}
"""The reasons for which there is a text in every language."""
_LONGEST_REASON = 160
USUAL_WAIT_SECONDS = 5.0
"""How long to wait after a failure for which the server did not state a time."""


class ModelError(Exception):
    """A model call failed.

    `usage` and `cost_usd` refer to the failed call, because vendors also charge for refusals.
    `reason` is a stable slug for replies, metrics and logs: see `REASONS`.
    """

    usage: Usage = Usage()
    cost_usd: Decimal | None = Decimal(0)
    reason: str = "unavailable"


class NoModel(ModelError):  # noqa: N818 - names a state
    """No model is configured for the task."""

    reason = NO_MODEL


class ModelMisconfigured(ModelError):  # noqa: N818 - names a state
    """A setting is wrong; a retry does not help."""

    reason = "misconfigured"


class UnknownProvider(ModelMisconfigured):
    """No vendor has this name."""


class UnknownModel(ModelMisconfigured):
    """The vendor does not have this model."""

    reason = "model_gone"


class WrongAddress(ModelMisconfigured):
    """The URL is served by something other than the API of the vendor."""


class MissingKey(ModelMisconfigured):
    """There is no key, or the vendor does not accept it."""

    reason = "bad_key"


class AccessDenied(ModelMisconfigured):
    """The vendor denies this request, because of the key, the model or the text."""

    reason = "rejected"


class UnusableSchema(ModelMisconfigured):
    """The task's output cannot be described with a strict JSON schema."""


class RealRequestForbidden(ModelMisconfigured):
    """This process must not send requests to other machines."""


class ModelUnavailable(ModelError):  # noqa: N818 - as above
    """The vendor or the network failed after all retries; another attempt or model may succeed.

    `retry_after_seconds` is None if the vendor does not state it.
    """

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class RateLimited(ModelUnavailable):
    """The rate limit for requests or tokens was exceeded."""

    reason = "too_busy"


class QuotaExhausted(ModelUnavailable):
    """The account has no quota left."""

    reason = "quota_spent"


class ModelTimeout(ModelUnavailable):
    """There was no answer within the time limit.

    `had_full_time` is False if the call had only a share of the limit. In that case, the model may
    succeed with more time.
    """

    def __init__(self, message: str, *, had_full_time: bool = True) -> None:
        super().__init__(message)
        self.had_full_time = had_full_time

    reason = "too_slow"


class ChainExhausted(ModelUnavailable):
    """Every model of a fallback chain failed; `errors` lists their errors in the order of the
    calls.
    """

    def __init__(self, message: str, errors: tuple[ModelError, ...]) -> None:
        super().__init__(message)
        self.errors = errors
        if errors:
            self.reason = errors[0].reason


class BudgetExhausted(ModelError):  # noqa: N818 - as above
    """A budget does not allow the call, so the call was not made; `amount` is the name of the
    exhausted amount.
    """

    reason = "budget_spent"

    def __init__(self, message: str, *, amount: str = "") -> None:
        super().__init__(message)
        self.amount = amount


class RejectedRequest(ModelError):  # noqa: N818 - as above
    """The vendor cannot process the request.

    `parameter` is the rejected part of the request, if the vendor names it. `explanation` is the
    vendor's complete message, of which the error message may contain only a part.
    """

    reason = "rejected"

    def __init__(self, message: str, *, parameter: str = "", explanation: str = "") -> None:
        super().__init__(message)
        self.parameter = parameter
        self.explanation = explanation or message


class PromptTooLong(RejectedRequest):
    """The prompt does not fit into the context window of the model."""

    reason = "too_long"


class Refused(ModelError):  # noqa: N818 - as above
    """The model does not answer this request."""

    reason = "refused"


class UnreadableOutput(ModelError):  # noqa: N818 - as above
    """The answer does not have the task's output type, even after one repair."""

    reason = "unreadable"


class UnknownReply(UnreadableOutput):
    """The format of the server's reply is unknown, so its content cannot be judged."""


def has_unusable_output(error: ModelError) -> bool:
    """Return whether every called model responded, but refused or wrote an unreadable answer."""
    if isinstance(error, ChainExhausted):
        return bool(error.errors) and all(
            has_unusable_output(model_error) for model_error in error.errors
        )
    return isinstance(error, Refused | UnreadableOutput) and not isinstance(error, UnknownReply)


def is_refusal(error: ModelError) -> bool:
    """Return whether every model that was called refused to answer."""
    if isinstance(error, ChainExhausted):
        return bool(error.errors) and all(map(is_refusal, error.errors))
    return isinstance(error, Refused)


def may_depend_on_content(error: ModelError) -> bool:
    """Return whether the request may succeed with only a part of its content.

    A vendor may refuse a request (403, a content filter) because of one of its texts.
    """
    if isinstance(error, ChainExhausted):
        return any(map(may_depend_on_content, error.errors))
    is_rejected = isinstance(error, RejectedRequest | AccessDenied)
    return is_rejected or has_unusable_output(error)


def name_failure(error: ModelError) -> str:
    """Return the reason of a failed call, or an empty string if no model is configured for the
    task.
    """
    return "" if error.reason == NO_MODEL else error.reason


def is_too_long(error: ModelError) -> bool:
    """Return whether the prompt did not fit into the context window of a called model."""
    errors = error.errors if isinstance(error, ChainExhausted) else (error,)
    return any(isinstance(model_error, PromptTooLong) for model_error in errors)


def find_wait_seconds(error: ModelError) -> float | None:
    """Return the seconds after which the same call may succeed, or None if waiting does not help.

    Waiting does not help after a timeout or an exhausted quota.
    """
    if isinstance(error, ChainExhausted):
        waits = (find_wait_seconds(model_error) for model_error in error.errors)
        return min((wait for wait in waits if wait is not None), default=None)
    if isinstance(error, QuotaExhausted | ModelTimeout) or not isinstance(error, ModelUnavailable):
        return None
    stated = error.retry_after_seconds
    return USUAL_WAIT_SECONDS if stated is None else stated


def explain_failed_lookup(texts: Texts, error: str, language: str) -> str:
    """Return a statement that something could not be looked up, with the reason if there is one.

    `error` begins with one of `NAMED_REASONS` and a colon, or is a description.
    """
    slug = error.partition(":")[0]
    reason = plain_line(error)[:_LONGEST_REASON]
    if slug in NAMED_REASONS:
        reason = texts.text(f"reason_{slug}", language)
    if not reason:
        return texts.text("report_unread", language)
    return texts.text("report_unread_because", language, reason=reason)
