"""Errors of the broker.

BrokerError
├── BrokerUnavailableError   Redis does not answer; the same call may be made again later
├── UnsuitableServerError    this Redis cannot serve: too old, evicting, or of other shards
├── UnwritableError          a settlement says what neither JSON nor UTF-8 can
└── EmbeddedServerError      the private server of a data folder could not be started
"""


class BrokerError(Exception):
    """Something about moving frames is wrong."""


class BrokerUnavailableError(BrokerError):
    """Redis does not answer; the same call may be made again later."""


class UnsuitableServerError(BrokerError):
    """This Redis cannot serve as it is set up."""


class UnwritableError(BrokerError):
    """A settlement says what neither JSON nor UTF-8 can."""


class EmbeddedServerError(BrokerError):
    """The private server of a data folder could not be started."""
