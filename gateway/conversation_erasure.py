"""Erases a conversation wherever the desk keeps something of it; every channel does it so."""

from broker.ports import Eraser
from broker.values import Erased
from envelope.question import Question
from gateway.port import Conversations


async def erase(eraser: Eraser, conversations: Conversations, question: Question) -> Erased:
    """Erase the question's conversation; return what was there.

    It needs nobody who works. When it returns, Redis holds no word of the conversation; should it
    fail or be cut off half way, it is to be done again, which is no error.
    """
    # First what the conversation's own keys lead to, which are gone after that.
    await conversations.forget_threads(question)
    await conversations.forget_posts(question)
    erased = await eraser.forget(question, conversations.memory_keys(question))
    # Once more: a chat service may have told of a message before everything was ended.
    await conversations.forget_posts(question)
    return erased
