"""Plays Redis for one broker, trip by trip, and restores every state on request.

The broker's own coroutines run here, without an event loop: each awaits a `Trip`, and whoever steps
an operation sends the replies. So two operations can be interleaved between any two round trips,
and an operation that stands half way is data: its replies so far.
"""

import pickle
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from fakeredis import FakeRedis, FakeServer
from redis.exceptions import ResponseError

from broker.keys import GROUP, stream_key
from broker.redis_broker import RedisBroker
from broker.settle_script import FORWARD, SETTLE
from broker.transport import scripts
from broker.transport.scripts import Argument, LuaScript
from memory.conversation import CLAIM_PAUSE

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


Command = tuple[Argument, ...]
SCRIPTS = (
    SETTLE,
    FORWARD,
    *(each for each in vars(scripts).values() if isinstance(each, LuaScript)),
)
"""Every script of the broker."""
Edit = Callable[[str], str]
"""Changes the text of a script: how a mutation is tried."""

_COLLECT_SELDOM = """
local collect, runs = collectgarbage, 0
collectgarbage = function(...)
  runs = runs + 1
  return runs % 64 == 0 and collect(...)
end
"""
"""fakeredis collects the garbage of its Lua after every script, at a good part of its price."""

_READING = frozenset(("HGET", "LRANGE", "XREVRANGE"))
"""Reads of what never changes while it matters: they go with the trip that follows."""


class ScriptFailedError(AssertionError):
    """A script raised an error; the message is Redis's."""


@dataclass(frozen=True, slots=True)
class Trip:
    """One round trip; awaiting it gives the replies of its commands."""

    commands: tuple[Command, ...]

    def __await__(self) -> Generator["Trip", list[Any], list[Any]]:
        return (yield self)

    @property
    def only_reads(self) -> bool:
        return all(command[0] in _READING for command in self.commands)


class Pipeline:
    """Gathers commands for one trip."""

    def __init__(self) -> None:
        self._commands: list[Command] = []

    def execute_command(self, *parts: Argument) -> None:
        self._commands.append(parts)

    def hget(self, name: str, field: str) -> None:
        self._commands.append(("HGET", name, field))

    def time(self) -> None:
        self._commands.append(("TIME",))

    async def execute(self) -> list[Any]:
        return await Trip(tuple(self._commands))


class Client:
    """The commands of a Redis client that the broker uses here; each is one trip."""

    def pipeline(self, *, transaction: bool) -> Pipeline:
        assert not transaction
        return Pipeline()

    async def execute_command(self, *parts: Argument) -> Any:
        return (await Trip((parts,)))[0]

    async def evalsha(self, digest: str, *parts: Argument) -> Any:
        return await self.execute_command("EVALSHA", digest, *parts)

    async def lrange(self, name: str, first: int, last: int) -> Any:
        return await self.execute_command("LRANGE", name, first, last)


@dataclass(frozen=True, slots=True)
class Standing:
    """How far an operation got: its answer, or the replies that it had so far."""

    replies: tuple[list[Any], ...] = ()
    ended: bool = False
    answer: Any = None


Operation = Callable[[RedisBroker], Coroutine[Any, Any, Any]]


class SimulatedRedis:
    """A played Redis with the streams of some roles, and its broker's scripts in it."""

    def __init__(self, roles: Sequence[str], edit: Edit | None = None) -> None:
        self.server = FakeServer()
        self._client: Any = FakeRedis(server=self.server, protocol=2)
        self._client.eval(_COLLECT_SELDOM, 0)
        self._digests: dict[Argument, Argument] = {}
        self._claim = CLAIM_PAUSE if edit is None else edit(CLAIM_PAUSE)
        for script in SCRIPTS:
            text = script.text if edit is None else edit(script.text)
            self._digests[script.digest] = self._compile(script.digest, text)
        for role in roles:
            self._client.xgroup_create(stream_key(role, 0), GROUP, id="0", mkstream=True)

    def _compile(self, name: str, text: str) -> Argument:
        """Load a script to be compiled once; fakeredis compiles what it evaluates each time."""
        self._client.eval(f"package.loaded[KEYS[1]] = function()\n{text}\nend", 1, name)
        loaded: Argument = self._client.script_load(f"return package.loaded['{name}']()")
        return loaded

    @property
    def database(self) -> Any:
        """What is kept, by key: items of `value` and `expireat`."""
        return self.server.dbs[0]

    def saved(self) -> bytes:
        """Return everything that is kept."""
        return pickle.dumps(dict(self.database.items()), pickle.HIGHEST_PROTOCOL)

    def put_back(self, saved: bytes) -> None:
        """Return to what was kept then."""
        with self.server.lock:
            self.database.clear()
            self.database.update(pickle.loads(saved))  # noqa: S301 - written by `saved` above

    def tick(self) -> None:
        """Let Redis notice what has expired."""
        self._client.ping()

    def claim(self, key: str, pause: str, name: str) -> bytes | None:
        """Run the script by which a reply claims what a pause keeps."""
        found: bytes | None = self._client.eval(self._claim, 1, key, pause, name)
        return found

    def step(self, broker: RedisBroker, operation: Operation, standing: Standing) -> Standing:
        """Carry an operation on by one trip that may change something."""
        running = operation(broker)
        try:
            trip = running.send(None)
        except StopIteration as end:
            return Standing(ended=True, answer=end.value)
        replies = list(standing.replies)
        for reply in replies:
            trip = running.send(reply)
        while True:
            reply = self._perform(trip)
            replies.append(reply)
            passed = trip
            try:
                trip = running.send(reply)
            except StopIteration as end:
                return Standing(tuple(replies), ended=True, answer=end.value)
            if not passed.only_reads:
                running.close()
                return Standing(tuple(replies))

    def whole(self, broker: RedisBroker, operation: Operation) -> Any:
        """Carry an operation to its end with nobody in between."""
        standing = Standing()
        while not standing.ended:
            standing = self.step(broker, operation, standing)
        return standing.answer

    def _perform(self, trip: Trip) -> list[Any]:
        return [self._command(command) for command in trip.commands]

    def _command(self, command: Command) -> Any:
        if command[0] != "EVALSHA":
            return self._client.execute_command(*command)
        name, digest, *parts = command
        try:
            return self._client.execute_command(name, self._digests[digest], *parts)
        except ResponseError as error:
            raise ScriptFailedError(f"expected a script that ends, found {error}") from error
