"""Tells people of questions that Redis lost: nothing of them comes on the result list any more.

What `appendfsync everysec` had not written, a failover had not carried over or `FLUSHALL` deleted
may take with it where the answer belongs, too: who took the message in still knows.
"""

import json
from collections.abc import Awaitable, Callable

from broker.replies.result_list import Result
from gateway import answer
from gateway.chat.intake.post_erasure import forgotten
from gateway.chat.ports import Incoming, PushMemory
from gateway.desk import Desk

Show = Callable[[Result], Awaitable[None]]


class Losses:
    """Waits for the ends of questions beside the result list, and shows those that are lost."""

    def __init__(self, desk: Desk, memory: PushMemory, show: Show) -> None:
        self._desk = desk
        self._memory = memory
        self._show = show

    async def watch(self, incoming: Incoming, language: str, posted: str | None) -> None:
        """Wait until a question has ended; say so in its placeholder if nobody else will."""
        question = incoming.question
        reply = await self._desk.outcome(question, language=language)
        match reply.get("termination_reason"):
            case answer.LOST:
                end = Result("0-0", 0, question, str(reply["outcome"]), reply, 1)
            case answer.FORGOTTEN if "done" not in await self._memory.fields(question):
                # It was taken off the result list before anybody could show it.
                end = forgotten(question)
            case _:
                return
        post = json.dumps(dict(incoming.post))
        await self._memory.note(question, post=post, language=language, fixed=incoming.fixed)
        if posted is not None:
            await self._memory.first(question, "0", posted)
        await self._show(end)
