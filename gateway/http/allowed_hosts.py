"""Checks the host that a request names: links in answers begin with it."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.requests import Request

from gateway.http.errors import ForbiddenError

BELOW = "*."
"""Begins a name that stands for all names below it."""


class AllowedHosts:
    """Knows under which host names the server answers: `names` and that of `public_url`.

    Without any name it answers under every one.
    """

    def __init__(self, names: Sequence[str] = (), *, public_url: str | None = None) -> None:
        told = [name.lower() for name in names]
        if told and public_url is not None:
            told.append(_name(urlsplit(public_url).netloc))
        self._names = frozenset(name for name in told if not name.startswith(BELOW))
        self._below = tuple(name[1:] for name in told if name.startswith(BELOW))

    def allows(self, host: str) -> bool:
        """Whether a host, with or without a port, is one of them."""
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
