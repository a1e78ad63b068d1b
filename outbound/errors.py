"""Errors of requests to external servers.

OutboundError             the root
|-- AddressRefusedError   the URL must not be opened: it is in a private network, or invalid
|-- FetchError            the server cannot be reached, or its response cannot be used
`-- RedirectRefusedError  a redirect leads to a URL that the caller does not allow
"""


class OutboundError(Exception):
    """The root of all errors of this package."""


class AddressRefusedError(OutboundError):
    """The URL must not be opened."""


class FetchError(OutboundError):
    """A page cannot be fetched, because its server cannot be reached, or sends too much data, or is
    too slow.
    """


class RedirectRefusedError(OutboundError):
    """A redirect leads to a URL that the caller does not allow."""
