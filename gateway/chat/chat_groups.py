"""Finds the groups for whom a chat is answered: those of its person, or those of its channel.

Everybody in a channel reads the answers there. So the groups of a person count only in a private
chat with this person; in a channel or a group chat, the groups of the place count.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from gateway.errors import GatewayError

log = structlog.get_logger("gateway")

_DIRECT_PREFIX = "D"
"""The ids of direct messages in Slack begin with it."""


class MembershipError(GatewayError):
    """The platform did not say who its user groups have as members."""


class UserGroups(Protocol):
    """The user groups of a platform, which it manages itself."""

    async def find(self, person: str) -> Collection[str]:
        """Return the ids of the user groups of a person; raises `MembershipError`."""
        ...


@dataclass(frozen=True, slots=True)
class ChatGroups:
    """The groups of people, of user groups and of places, by the ids of one platform.

    `memberships` finds the user groups of a person; None: the platform has none.
    """

    people: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    user_groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    memberships: UserGroups | None = None

    async def warm(self) -> None:
        """Read the user groups at the start, so that problems are logged then."""
        if not self.user_groups or self.memberships is None:
            return
        try:
            await self.memberships.find("")
        except MembershipError as error:
            log.warning("user_groups_unavailable", error=str(error))

    async def find(self, person: str, post: Mapping[str, str]) -> tuple[str, ...]:
        """Return the groups for an answer that is shown at `post`, as the platform names it.

        Raises `MembershipError`: without an answer of the platform nobody is asked for fewer
        groups, because the documents would seem to say less than they do.
        """
        if "chat" in post:
            # The id of a private chat in Telegram is the id of its person.
            place, is_private = post["chat"], post["chat"] == person
        else:
            place = post.get("channel", "")
            is_private = place.startswith(_DIRECT_PREFIX)
        if not is_private:
            return self.places.get(place, ())
        groups = set(self.people.get(person, ()))
        if person and self.user_groups and self.memberships is not None:
            for joined in await self.memberships.find(person):
                groups.update(self.user_groups.get(joined, ()))
        return tuple(sorted(groups))
