"""The state that all parts of the broker share: client, shards, roles and limits."""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from broker.errors import BrokerUnavailableError
from broker.keys import QuestionKeys, question_keys, results_key, shard_for
from broker.settlement import BrokerLimits, ScriptCall
from broker.transport.connect import Outage, reachable
from broker.transport.scripts import Argument, LuaScript
from envelope.question import Question

if TYPE_CHECKING:
    from redis.asyncio import Redis

T = TypeVar("T")


@dataclass(slots=True)
class BrokerContext:
    """The shared state of one Redis; `roles` grows with each role that is prepared or receives a
    frame.

    `slots_apart` is true if the shards are in different slots of a cluster, so that no command can
    span them.
    """

    client: "Redis"
    shards: int
    limits: BrokerLimits
    lease_ms: int
    roles: dict[str, None] = field(default_factory=dict)
    slots_apart: bool = False
    _outage: Outage = field(default_factory=lambda: Outage("shards_unreachable"))

    def locate(self, question: Question) -> tuple[int, QuestionKeys]:
        """Return the question's shard and keys."""
        shard = shard_for(question, self.shards)
        return shard, question_keys(question, shard)

    def call(self, shard: int, more: Iterable[str] = ()) -> ScriptCall:
        """Start a script call that may send to any known role; `more` contains additional roles."""
        self.roles.update(dict.fromkeys(more))
        return ScriptCall.on_shard(shard, self.roles, self.limits)

    async def result_lists(self, shard: int, records: Sequence[str]) -> list[str]:
        """Return the key of each record's result list, or the record's key if it has no result
        list.

        A script must declare every key, and only the record contains the name of its result list.
        """
        if not records:
            return []
        with reachable():
            pipeline = self.client.pipeline(transaction=False)
            for record in records:
                pipeline.hget(record, "l")
            lists: list[bytes | None] = await pipeline.execute()
        return [
            results_key(name.decode(), shard) if name else record
            for record, name in zip(records, lists, strict=True)
        ]

    async def run(self, script: LuaScript, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        """Run a script and return its result; raises `BrokerUnavailableError`."""
        with reachable():
            return await script.run(self.client, keys, args)

    async def on_shards(
        self, calls: Sequence[Coroutine[Any, Any, T]]
    ) -> list[T | BrokerUnavailableError]:
        """Run one call for each shard concurrently, and return their results in order.

        The result of an unreachable shard is its error. Raises only when every shard is
        unreachable.
        """
        if len(calls) == 1:
            return [await calls[0]]
        async with asyncio.TaskGroup() as tasks:
            asked = [tasks.create_task(_catch_unavailable(call)) for call in calls]
        answers = [task.result() for task in asked]
        errors = [answer for answer in answers if isinstance(answer, BrokerUnavailableError)]
        if not errors:
            self._outage.record_success()
        elif len(errors) == len(answers):
            raise errors[0]
        else:
            self._outage.record_failure(
                "run_on_shards", errors[0], unreachable=len(errors), shards=len(answers)
            )
        return answers


async def _catch_unavailable(call: Coroutine[Any, Any, T]) -> T | BrokerUnavailableError:
    try:
        return await call
    except BrokerUnavailableError as error:
        return error
