"""Finds what forgetting a conversation has to cover."""

from collections.abc import Sequence
from typing import Any

from broker.connecting import reachable
from broker.keys import question_keys, question_of
from broker.space import Space
from envelope.question import Question

Forgotten = tuple[str, str, str]
"""The keys of a message: record, journal, result list (or the record again, where it has none)."""


class Forgetting:
    """Names the messages of a conversation, so that the script can be told all its keys."""

    def __init__(self, space: Space) -> None:
        self._space = space

    async def before(self, question: Question) -> Sequence[Forgotten]:
        """Return the messages of the question's conversation that are still kept."""
        shard, names = self._space.place(question)
        with reachable():
            client: Any = self._space.client
            messages: list[bytes] = await client.lrange(names.messages, 0, -1)
            others = [question_keys(question_of(name.decode()), shard) for name in messages]
        lists = await self._space.result_lists(shard, [other.record for other in others])
        return [
            (other.record, other.journal, results)
            for other, results in zip(others, lists, strict=True)
        ]
