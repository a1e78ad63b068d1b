"""The errors of requests to others.

OutboundError             the root
|-- AddressRefusedError   the address may not be opened: a private network, or no address at all
|-- FetchError            the server cannot be reached, or its answer cannot be used
`-- RedirectRefusedError  a redirect leads to an address that the caller does not allow
"""


class OutboundError(Exception):
    """The root of all errors of this package; the message names the expected and the found."""


class AddressRefusedError(OutboundError):
    """An address that may not be opened."""


class FetchError(OutboundError):
    """A page cannot be fetched: its server cannot be reached, or sends too much, or too slowly."""


class RedirectRefusedError(OutboundError):
    """A redirect leads to an address that may not be opened, or was opened before."""
