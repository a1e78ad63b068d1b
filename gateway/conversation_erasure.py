"""Erases a conversation from every store, in the same way for every channel."""

from broker.ports import Eraser
from broker.values import Erased
from envelope.question import Question, copy_for_owner
from gateway.port import Conversations


async def erase(eraser: Eraser, conversations: Conversations, question: Question) -> Erased:
    """Erase the question's conversation; return the counts of the erased data.

    No worker needs to run. When it returns, neither Redis nor the database of
    the records contains text of the conversation. If it fails
    or is interrupted, repeat it, which is no error.
    """
    # First the data that only the conversation's keys lead to, because these are deleted next.
    await conversations.forget_threads(question)
    await conversations.forget_posts(question)
    erased = await eraser.forget(question, conversations.memory_keys(question))
    # What the owner asked again of it, in a conversation of its own.
    copied = copy_for_owner(question)
    erased += await eraser.forget(copied, conversations.memory_keys(copied))
    # After the journals, which a recorder may be reading now; it looks again once it has written.
    erased += Erased(records=await conversations.forget_records(question))
    # Once more: a chat platform may have delivered a message in the meantime.
    await conversations.forget_posts(question)
    return erased
