"""Deletes the text that a chat channel stores of a conversation that the desk has erased."""

from collections.abc import Sequence

from broker.replies.result_list import Result
from broker.values import Fields
from envelope.outcome import Outcome
from envelope.question import Question
from gateway.answer import FORGOTTEN
from gateway.chat.intake.coalescing import Bursts, record_name
from gateway.chat.ports import PushMemory
from gateway.desk import Desk


class PostEraser:
    """Completes an erasure in the state of the channel."""

    def __init__(self, desk: Desk, memory: PushMemory) -> None:
        self._desk = desk
        self._memory = memory
        self._bursts = Bursts(memory)

    async def find_undelivered(self, question: Question) -> Sequence[Result]:
        """Return the ends of open questions whose replies were erased before they were shown.

        A process that died had taken them from the result list; no other process receives them.
        """
        others = await self._others(question)
        return [forgotten(other) for other in others if await self._desk.forgotten(other)]

    async def forget(self, question: Question, how: str) -> None:
        """Delete the text of messages before `question`; `all`: also the language."""
        others = await self._others(question)
        waiting = [record_name(await self._bursts.of(other)) for other in others]
        await self._memory.forget_words(question, but=waiting)
        if how == "all":
            await self._memory.note_about(question, language="")

    async def _others(self, question: Question) -> Sequence[Question]:
        opened = await self._memory.open_messages(question)
        ids = [id_ for id_ in opened if id_ != question.message_id]
        return [question.model_copy(update={"message_id": id_}) for id_ in ids]


def forgotten(question: Question) -> Result:
    """Return the end of a question of which only the outcome is kept."""
    reply: Fields = {
        "outcome": Outcome.SUPERSEDED.value,
        "termination_reason": FORGOTTEN,
        "conversation_id": question.conversation_id,
        "message_id": question.message_id,
    }
    return Result("0-0", 0, question, Outcome.SUPERSEDED.value, reply, 1)
