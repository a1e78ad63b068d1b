"""Decides which channels, people and organisations Refdesk answers on Slack."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

DIRECT_MESSAGES = "direct"
"""The entry of the channel list that allows all direct messages."""


@dataclass(frozen=True, slots=True)
class SlackAudience:
    """The allowed channels and users; an empty list allows all of the app's workspace.

    People of other organisations are allowed if their team is in `teams`, or if `external` is true.
    The other workspaces of an Enterprise Grid belong in `teams`, too.
    """

    channels: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    teams: frozenset[str] = frozenset()
    external: bool = False

    def admits(self, *, channel: str, user: str, direct: bool, is_own_team: bool) -> bool:
        """Return whether Refdesk answers this person in this channel."""
        place = {channel, DIRECT_MESSAGES} if direct else {channel}
        return (
            (is_own_team or self.external)
            and (not self.channels or bool(place & self.channels))
            and (not self.users or user in self.users)
        )

    def is_own(self, own: str, message: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
        """Return whether the author belongs to the app's workspace or to an allowed team.

        Every team that an event names for its author must be allowed. In a channel that is shared
        with other organisations, an event without a team is not allowed.
        """
        teams = set(_teams(message))
        if not teams:
            return not body.get("is_ext_shared_channel")
        return teams <= {own, *self.teams}


def _teams(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the teams that a message names for its author, or an action for its user."""
    profile = message.get("user_profile")
    found = [message.get(name) for name in ("user_team", "source_team", "team", "team_id")]
    found.append(profile.get("team") if isinstance(profile, Mapping) else None)
    yield from (one for one in found if isinstance(one, str) and one)
