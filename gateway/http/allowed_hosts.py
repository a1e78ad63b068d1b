"""Checks the host name of a request, because links in answers begin with it."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.requests import Request

from gateway.http.errors import ForbiddenError

BELOW = "*."
"""The beginning of a name that stands for all its subdomains."""


class AllowedHosts:
    """Knows the server's host names: `names` and that of `public_url`.

    Without any name the server answers under every name.
    """

    def __init__(self, names: Sequence[str] = (), *, public_url: str | None = None) -> None:
        allowed = [name.lower() for name in names]
        if allowed and public_url is not None:
            allowed.append(_name(urlsplit(public_url).netloc))
        self._names = frozenset(name for name in allowed if not name.startswith(BELOW))
        self._below = tuple(name[1:] for name in allowed if name.startswith(BELOW))

    def allows(self, host: str) -> bool:
        """Return whether a host, with or without a port, is allowed."""
        name = _name(host)
        is_any = not self._names and not self._below
        return is_any or name in self._names or name.endswith(self._below)

    def check(self, request: Request) -> None:
        """Raise `ForbiddenError` for a request to a host that is not allowed."""
        if not self.allows(request.headers.get("host", "")):
            raise ForbiddenError(
                "this server does not answer under the host of this request; see ALLOWED_HOSTS",
                code="host_not_allowed",
            )


def _name(host: str) -> str:
    """Return a host's name without its port, in lower case."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdecimal() else host.lower()
