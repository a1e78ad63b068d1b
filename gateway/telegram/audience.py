"""Decides which chats and which people Refdesk answers on Telegram."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TelegramAudience:
    """The allowed chats and users; an empty list allows all.

    The id of a private chat is the id of its person.
    """

    chats: frozenset[int] = frozenset()
    users: frozenset[int] = frozenset()

    def admits(self, *, chat: int, user: int) -> bool:
        """Return whether Refdesk answers this person in this chat."""
        return (not self.chats or chat in self.chats) and (not self.users or user in self.users)
