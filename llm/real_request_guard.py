"""Keeps real models out of reach of tests: a switch that is thrown once for the whole process."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from llm.errors import RealRequestForbidden

_forbidden = False


def forbid_real_requests() -> None:
    """Let vendors be asked on this machine only, until the process ends."""
    global _forbidden
    _forbidden = True


def check_allowed(base_url: str) -> None:
    """Raise `RealRequestForbidden` when requests to `base_url` are forbidden in this process."""
    if _forbidden and not _is_loopback(urlsplit(base_url).hostname):
        raise RealRequestForbidden(
            f"expected a server on this machine, found {base_url!r}: "
            "real requests are forbidden in this process"
        )


def _is_loopback(host: str | None) -> bool:
    if host is None:
        return False
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
