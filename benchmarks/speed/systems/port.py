"""What a measured system is: it carries questions through a manager and eight roles."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from benchmarks.speed.payload import Payload

Ask = Callable[[str], Awaitable[None]]
"""Submits a question of this name, or asks it to its end."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The settings of a measured system.

    Workers connect to Redis at `worker_url`, the client at `client_url`: one may be a proxy.
    `lease_seconds` (0: the system's default) is how long a silent worker keeps what it took;
    `works` is False for a system that only submits. `folder` is for the files of the system.
    """

    worker_url: str
    client_url: str
    payload: Payload
    folder: str
    lease_seconds: float = 0.0
    works: bool = True


async def never_holds(_name: str) -> None:
    """Hold no question."""


@dataclass(slots=True)
class Watch:
    """What a system reports: a manager started with a question, a role worked, a question ended.

    The first role waits for `held(name)` before it works, which is how a worker is caught working.
    """

    started: Callable[[str], None]
    worked: Callable[[], None]
    finished: Callable[[str], None]
    held: Callable[[str], Awaitable[None]] = field(default=never_holds)


class SystemProcess(Protocol):
    """Opens a system."""

    def __call__(self, setting: Setting, watch: Watch) -> AbstractAsyncContextManager[Ask]: ...


@dataclass(frozen=True, slots=True)
class System:
    """A row of the table: where its system is, what it is made of, and what it promises.

    `module` names the system; `packages` are the distributions whose versions are shown.
    `guarantees` are short and were read in the system's code. `broker` is False for one without
    Redis, and `recovers` for one that has nothing that takes over a dead worker's work by itself.
    """

    name: str
    module: str
    packages: Sequence[str]
    given: str
    guarantees: Mapping[str, str]
    broker: bool = True
    recovers: bool = True
