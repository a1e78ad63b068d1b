"""Gives the fake Redis a clock that only moves when the test moves it."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

START_MS = 1_700_000_000_000

_READERS = (
    "fakeredis._helpers",
    "fakeredis._socket._base",
    "fakeredis.commands_mixins.server_mixin",
    "fakeredis.model._stream",
)
"""Every module of the played Redis that asks `time.time()` while it answers a command of ours."""


class SimulatedClock:
    """Stands where the played Redis expects the module `time`. Unit: milliseconds."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.now_ms = now_ms

    def time(self) -> float:
        """Return seconds; a quarter of a millisecond more, so that no rounding goes below."""
        return (self.now_ms + 0.25) / 1000

    @property
    def now_us(self) -> int:
        """What TIME returns to scripts, in microseconds."""
        return self.now_ms * 1000 + 250


@contextmanager
def simulate(clock: SimulatedClock) -> Iterator[None]:
    """Let every played Redis of this process live by this clock while inside.

    fakeredis takes no clock, so that the name its modules look up is exchanged; nothing else in the
    process sees another time.
    """
    modules = [import_module(name) for name in _READERS]
    before = [vars(module)["time"] for module in modules]
    try:
        for module in modules:
            vars(module)["time"] = clock
        yield
    finally:
        for module, clocks in zip(modules, before, strict=True):
            vars(module)["time"] = clocks
