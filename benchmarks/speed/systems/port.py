"""The systems that are measured; each passes questions through a manager and eight roles."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

from benchmarks.speed.payload import Payload

Ask = Callable[[str], Awaitable[None]]
"""Submits the question with this name, or runs it to its end."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The settings of a measured system.

    Workers connect to Redis at `worker_url`, and the client at `client_url`; either of them may be
    a proxy. `lease_seconds` (0: the system's default) is how long an unresponsive worker keeps its
    entries; `works` is False for a system that only submits. `folder` is for the files of the
    system. `shards` is the number of shards of Refdesk's streams.
    """

    worker_url: str
    client_url: str
    payload: Payload
    folder: str
    lease_seconds: float = 0.0
    works: bool = True
    shards: int = 1


async def never_holds(_name: str) -> None:
    """Do not hold any question."""


@dataclass(slots=True)
class Watch:
    """The events of a system: a manager started a question, a role worked, a question ended.

    The first role waits for `held(name)` before it works, so that the worker can be killed at that
    moment.
    """

    started: Callable[[str], None]
    worked: Callable[[], None]
    finished: Callable[[str], None]
    held: Callable[[str], Awaitable[None]] = field(default=never_holds)


OpenSystem = Callable[[Setting, Watch], AbstractAsyncContextManager[Ask]]


@dataclass(frozen=True, slots=True)
class System:
    """A row of the table: the location of the system, its components, and its guarantees.

    `module` contains the system, and the name of its function if that is not `harness`; `packages`
    are the distributions whose versions are shown. `guarantees` are short and based on the system's
    code. `broker` is False for a system without Redis, and `recovers` is False for a system without
    automatic takeover of a dead worker's work.
    """

    name: str
    module: str
    packages: Sequence[str]
    given: str
    guarantees: Mapping[str, str]
    broker: bool = True
    recovers: bool = True


COLUMNS = (
    "acknowledged after processing",
    "with the next step, atomically",
    "late result rejected",
    "deadline",
    "crash attempts bounded",
    "memory bounded",
)
"""Guarantees that a system can give; the values are based on the code of these versions."""


def _says(*words: str) -> dict[str, str]:
    return dict(zip(COLUMNS, words, strict=True))


SYSTEMS = (
    System(
        "refdesk", "refdesk_system", ("refdesk",),
        "One `WorkerProcess` with the manager (256 slots) and eight roles (64 slots each), as in "
        "production; results return over the manager's stream. The client is `gateway.desk.Desk` "
        "on the broker of the same process, and waits for the stored reply. All features are "
        "enabled: leases, ownership, journal, order in a conversation, memory, deadlines.",
        _says("yes", "yes", "yes", "enforced by Redis", "yes", "yes"),
    ),
    System(
        "faststream", "faststream_system", ("faststream",),
        "A stream and a consumer group for each role, 64 records per read, 64 workers per "
        "subscriber.",
        _says(
            "yes, and after an error", "no", "no", "none", "no: never delivered again",
            "no: entries stay",
        ),
    ),
    System(
        "langgraph", "langgraph_system", ("langgraph", "langgraph-checkpoint-sqlite"),
        "A graph of a manager node and eight role nodes, `AsyncSqliteSaver`, the default "
        "durability (`async`); the caller runs the graph, without a queue or Redis.",
        _says(
            "a checkpoint per step", "-", "no", "none", "the caller runs it again",
            "no: the file grows",
        ),
        broker=False, recovers=False,
    ),
    System(
        "raw limit", "raw_system", ("redis",),
        "`redis-py`, configured as in Refdesk: two loops, each of which takes up to 256 entries "
        "of all nine streams, then acknowledges, deletes and adds in one pipeline, without "
        "reading the bodies. It is a baseline, not a complete system.",
        _says("yes", "no", "no", "none", "no: never delivered again", "yes"),
        recovers=False,
    ),
)  # fmt: skip


def is_installed(system: System) -> bool:
    """Return whether all packages of a system are installed."""
    try:
        versions(system)
    except PackageNotFoundError:
        return False
    return True


def versions(system: System) -> str:
    """Return the versions of a system's packages."""
    return ", ".join(f"{name} {version(name)}" for name in system.packages)
