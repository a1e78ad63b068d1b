"""Ends questions from outside their envelope: at the deadline, or because somebody cancels."""

from typing import TYPE_CHECKING

from pydantic_core import to_json

from broker.keys import question_of, shard_keys
from broker.port import Fields
from broker.scripts import CANCEL, DUE, PEEK
from broker.settling import Call
from broker.space import Space
from envelope.question import Question

if TYPE_CHECKING:
    from collections.abc import Sequence

AT_ONCE = 128
LONGEST_WAIT_SECONDS = 1.0


class Endings:
    """What is due, and what is cancelled."""

    def __init__(self, space: Space) -> None:
        self._space = space

    async def due(self) -> float:
        """Send what is due on every shard; return seconds until the next, at most 1."""
        return min([await self._due(shard) for shard in range(self._space.shards)])

    async def cancel(self, question: Question, *, forget: bool) -> bool:
        """End a question as superseded; see the port."""
        shard, names = self._space.place(question)
        results = await self._space.result_lists(shard, [names.record])
        call = self._space.call(shard)
        reply = to_json(superseded(question))
        args = [*call.args, names.name, reply, "1" if forget else ""]
        keys = [*call.keys, *names.closing, *results]
        return bool(await self._space.run(CANCEL, keys, args))

    async def _due(self, shard: int) -> float:
        keys = shard_keys(shard)
        now, delayed, overdue, nearest = await self._space.run(
            PEEK, [keys.deadlines, keys.delayed], [AT_ONCE]
        )
        if delayed or overdue:
            await self._send(shard, delayed, overdue)
        if len(delayed) == AT_ONCE or len(overdue) == AT_ONCE:
            return 0.0
        wait = (float(nearest) - float(now)) / 1000
        return min(max(wait, 0.0), LONGEST_WAIT_SECONDS)

    async def _send(
        self, shard: int, delayed: "Sequence[bytes]", overdue: "Sequence[bytes]"
    ) -> None:
        tokens = [token.decode().split(" ") for token in delayed]
        roles = [parts[2] for parts in tokens if parts[0] == "r"]
        call = self._space.call(shard, roles)
        names = [self._space.place(question_of(name.decode()))[1] for name in overdue]
        results = await self._space.result_lists(shard, [keys.record for keys in names])
        for keys, result in zip(names, results, strict=True):
            call.keys.extend([*keys.closing, result])
            call.args.extend(["deadline", keys.name])
        # After the deadlines: a retry that waited until its deadline is not sent any more.
        for parts in tokens:
            self._delayed(call, parts)
        await self._space.run(DUE, call.keys, call.args)

    def _delayed(self, call: Call, parts: "Sequence[str]") -> None:
        _, keys = self._space.place(question_of(parts[-1]))
        if parts[0] == "s":
            call.keys.extend(keys.closing)
            call.args.extend(["start", keys.name])
            return
        _, _, role, failures, _ = parts
        call.keys.append(keys.record)
        call.args.extend(["retry", " ".join(parts), keys.name, role, failures])


def superseded(question: Question, merged_into: str | None = None) -> Fields:
    """Return the reply of a message that another replaced."""
    reply: Fields = {
        "outcome": "superseded",
        "text": "",
        "conversation_id": question.conversation_id,
        "message_id": question.message_id,
    }
    return reply if merged_into is None else {**reply, "merged_into": merged_into}
