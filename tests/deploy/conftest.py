"""What the tests of the assembly share with the tests of a whole desk."""

from tests.desk.conftest import (
    _settings_of_our_own,
    embedder,
    endpoint,
    knowledge,
    library,
    server,
    unrestricted,
)

__all__ = [
    "_settings_of_our_own",
    "embedder",
    "endpoint",
    "knowledge",
    "library",
    "server",
    "unrestricted",
]
