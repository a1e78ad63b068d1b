"""Errors of asking models, told apart by whose fault it is and what the caller can do.

ModelError
├── ModelMisconfigured   the operator's: asking again does not help, a setting does
│   ├── UnknownProvider    nobody answers to that name here
│   ├── UnknownModel       the vendor has no such model
│   ├── MissingKey         there is no key, or the vendor does not accept it
│   ├── UnknownTask        no rule or no prompt answers this task
│   ├── UnusableSchema     the task's output has no strict JSON schema
│   └── RealRequestForbidden  this process may not leave the machine (tests)
├── ModelUnavailable     the vendor's or the network's: later, or another model
│   ├── RateLimited        too much at once; `retry_after_seconds` tells when, if the vendor did
│   ├── QuotaExhausted     the account may ask no more; waiting a minute does not help
│   ├── ModelTimeout       no answer in the time there was
│   └── ChainExhausted     every model of a fallback chain failed; `errors` holds why
├── RejectedRequest      ours: the vendor cannot work with the request (too long, bad parameter)
├── Refused              the model's: it will not answer this; ask something else
├── UnreadableOutput     the model's: the answer is not of the task's type, after one repair
└── ScriptError          a test's: the script and what was asked differ
"""

from decimal import Decimal

from llm.port import Usage


class ModelError(Exception):
    """A model did not give an answer.

    `usage` and `cost_usd` tell what the failed call took: a refusal is paid too.
    """

    usage: Usage = Usage()
    cost_usd: Decimal | None = Decimal(0)


class ModelMisconfigured(ModelError):  # noqa: N818 - says what is so
    """A setting is wrong; asking again does not help."""


class UnknownProvider(ModelMisconfigured):
    """Nobody answers to that name here."""


class UnknownModel(ModelMisconfigured):
    """The vendor has no such model."""


class MissingKey(ModelMisconfigured):
    """There is no key, or the vendor does not accept it."""


class UnknownTask(ModelMisconfigured):
    """No rule or no prompt answers this task."""


class UnusableSchema(ModelMisconfigured):
    """The task's output has no strict JSON schema."""


class RealRequestForbidden(ModelMisconfigured):
    """This process may not send requests beyond this machine."""


class ModelUnavailable(ModelError):  # noqa: N818 - as above
    """The vendor or the network failed, after the retries; later or elsewhere it may work.

    `retry_after_seconds` is None when the vendor did not tell.
    """

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class RateLimited(ModelUnavailable):
    """Too much was asked at once."""


class QuotaExhausted(ModelUnavailable):
    """The account may ask no more."""


class ModelTimeout(ModelUnavailable):
    """There was no answer in the time there was."""


class ChainExhausted(ModelUnavailable):
    """Every model of a fallback chain failed; `errors` are theirs, in the order they were asked."""

    def __init__(self, message: str, errors: tuple[ModelError, ...]) -> None:
        super().__init__(message)
        self.errors = errors


class RejectedRequest(ModelError):  # noqa: N818 - as above
    """The vendor cannot work with the request; `parameter` names the part, if the vendor does."""

    def __init__(self, message: str, *, parameter: str = "") -> None:
        super().__init__(message)
        self.parameter = parameter


class Refused(ModelError):  # noqa: N818 - as above
    """The model will not answer this."""


class UnreadableOutput(ModelError):  # noqa: N818 - as above
    """The answer is not of the task's output type, even after one repair."""


class ScriptError(ModelError):
    """The script of a scripted model and what was asked differ."""
