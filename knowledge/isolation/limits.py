"""The limits within which one document is read."""

from dataclasses import dataclass

CLOCK_FACTOR = 3.0
"""How much longer than its processor time a document may take on a machine that is busy."""


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """What reading one document may take; a file of many documents may take more in all.

    `seconds` are those of the processor; by the clock it may take `CLOCK_FACTOR` times as long.
    `memory_mb` is what the process that reads may take beyond what it needs to be ready.
    """

    seconds: float = 20.0
    memory_mb: int = 512

    def seconds_for(self, size: int) -> float:
        """Return the seconds that all documents of a file of `size` bytes may take together."""
        return self.seconds * (1 + size // 1_000_000)
