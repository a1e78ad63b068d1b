"""Notifies people of questions that Redis lost, which never appear on the result list.

An interval of `appendfsync everysec`, a failover or `FLUSHALL` may lose a question together with
the place of its answer. The process that accepted the message still knows both.
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
    """Waits for the end of questions independently of the result list, and shows lost ones."""

    def __init__(self, desk: Desk, memory: PushMemory, show: Show) -> None:
        self._desk = desk
        self._memory = memory
        self._show = show

    async def watch(self, incoming: Incoming, language: str, posted: str | None) -> None:
        """Wait until a question has ended; edit its placeholder if no other process will."""
        question = incoming.question
        reply = await self._desk.outcome(question, language=language)
        match reply.get("termination_reason"):
            case answer.LOST:
                end = Result("0-0", 0, question, str(reply["outcome"]), reply, 1)
            case answer.FORGOTTEN if "done" not in await self._memory.fields(question):
                # It was removed from the result list before a process showed it.
                end = forgotten(question)
            case _:
                return
        post = json.dumps(dict(incoming.post))
        await self._memory.note(question, post=post, language=language, fixed=incoming.fixed)
        if posted is not None:
            await self._memory.first(question, "0", posted)
        await self._show(end)
