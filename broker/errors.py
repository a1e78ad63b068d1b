"""Errors of the broker.

BrokerError
├── BrokerUnavailableError   Redis does not respond; the caller can retry later
├── UnsuitableServerError    this Redis is too old, evicts keys, or has a different number of shards
├── UnwritableError          a settlement contains a value that JSON or UTF-8 cannot represent
└── EmbeddedServerError      the private server of a data folder could not be started
"""


class BrokerError(Exception):
    """The root of the broker's errors."""


class BrokerUnavailableError(BrokerError):
    """Redis does not respond; the caller can retry later."""


class UnsuitableServerError(BrokerError):
    """This Redis is too old, evicts keys, or has a different number of shards."""


class UnwritableError(BrokerError):
    """A settlement contains a value that JSON or UTF-8 cannot represent."""


class EmbeddedServerError(BrokerError):
    """The private server of a data folder could not be started."""
