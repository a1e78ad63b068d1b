"""Finds the groups for whom a chat is answered: those of its person, or those of its channel.

Everybody in a channel reads the answers there. So the groups of a person count only in a private
chat with this person; in a channel or a group chat, the groups of the place count.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

_DIRECT_PREFIX = "D"
"""The ids of direct messages in Slack begin with it."""


@dataclass(frozen=True, slots=True)
class ChatGroups:
    """The groups of people and of places, by the ids of one platform; others have none."""

    people: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def find(self, person: str, post: Mapping[str, str]) -> tuple[str, ...]:
        """Return the groups for an answer that is shown at `post`, as the platform names it."""
        if "chat" in post:
            # The id of a private chat in Telegram is the id of its person.
            place, is_private = post["chat"], post["chat"] == person
        else:
            place = post.get("channel", "")
            is_private = place.startswith(_DIRECT_PREFIX)
        return (self.people if is_private else self.places).get(person if is_private else place, ())
