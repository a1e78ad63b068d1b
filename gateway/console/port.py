"""What the console needs from the rest of the desk."""

from typing import Protocol


class ConsoleSessions(Protocol):
    """Stores the sessions of the console, and the codes of one-time links."""

    async def open(self, code: str) -> str | None:
        """Return the token of a new session for a code, which is used up; None: no such code."""
        ...

    async def is_open(self, token: str) -> bool:
        """Return whether a session is open."""
        ...

    async def end(self, token: str) -> None:
        """End a session; to end it twice is no error."""
        ...
