"""Errors of the broker.

BrokerError
├── BrokerUnavailableError   Redis does not answer; the caller may repeat the call later
├── UnsuitableServerError    this Redis is too old, evicts keys, or has other shards
├── UnwritableError          a settlement contains a value that JSON or UTF-8 cannot express
└── EmbeddedServerError      the private server of a data folder could not be started
"""


class BrokerError(Exception):
    """The root of the broker's errors."""


class BrokerUnavailableError(BrokerError):
    """Redis does not answer; the caller may repeat the call later."""


class UnsuitableServerError(BrokerError):
    """This Redis is too old, evicts keys, or has another number of shards."""


class UnwritableError(BrokerError):
    """A settlement contains a value that JSON or UTF-8 cannot express."""


class EmbeddedServerError(BrokerError):
    """The private server of a data folder could not be started."""
