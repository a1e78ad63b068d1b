"""Decides who is answered on Telegram: which chats, and which people."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TelegramAudience:
    """Who is answered: each list that is not empty must name the chat, or the person.

    The id of a private chat is that of its person.
    """

    chats: frozenset[int] = frozenset()
    users: frozenset[int] = frozenset()

    def admits(self, *, chat: int, user: int) -> bool:
        """Whether this person is answered in this chat."""
        return (not self.chats or chat in self.chats) and (not self.users or user in self.users)
