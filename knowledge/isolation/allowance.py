"""Counts the documents of one file and the seconds spent on reading them."""

from knowledge.documents.errors import TooSlowError
from knowledge.isolation.limits import ReadingLimits


class ReadingAllowance:
    """The time that is left for a file of `size` bytes, and the number of its documents."""

    def __init__(self, limits: ReadingLimits, size: int) -> None:
        self.documents = 0
        self._each = limits.seconds
        self._all = self._left = limits.seconds_for(size)

    @property
    def next_seconds(self) -> float:
        """The seconds that reading the next document may take."""
        return min(self._each, self._left)

    @property
    def is_spent(self) -> bool:
        """Whether no time is left for another document."""
        return self._left <= 0

    def spend(self, seconds: float) -> None:
        """Add the time that a document took."""
        self._left -= seconds

    def error(self) -> TooSlowError:
        """Return the error for the documents that were not read for lack of time."""
        return TooSlowError(f"took longer than {self._all:.3g} s to read; its rest was left out")
