"""Decides who is answered on Slack: which channels, people and organisations."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

DIRECT_MESSAGES = "direct"
"""What stands for every direct message among the channels."""


@dataclass(frozen=True, slots=True)
class SlackAudience:
    """Who is answered; an empty list of channels or users allows all of the app's own workspace.

    People of other organisations are answered where their team is among `teams`, or `external` says
    so of everybody. An Enterprise Grid's other workspaces are named among `teams`, too.
    """

    channels: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    teams: frozenset[str] = frozenset()
    external: bool = False

    def admits(self, *, channel: str, user: str, direct: bool, is_own_team: bool) -> bool:
        """Whether this person is answered here."""
        place = {channel, DIRECT_MESSAGES} if direct else {channel}
        return (
            (is_own_team or self.external)
            and (not self.channels or bool(place & self.channels))
            and (not self.users or user in self.users)
        )

    def is_own(self, own: str, message: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
        """Whether who wrote belongs to the app's workspace, or to a team that is allowed.

        Every team that an event names of its writer must be allowed. In a channel that is shared
        with others, an event that names none is not.
        """
        teams = set(_teams(message))
        if not teams:
            return not body.get("is_ext_shared_channel")
        return teams <= {own, *self.teams}


def _teams(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the teams that a message, or who pressed a button, is told to be of."""
    profile = message.get("user_profile")
    told = [message.get(name) for name in ("user_team", "source_team", "team", "team_id")]
    told.append(profile.get("team") if isinstance(profile, Mapping) else None)
    yield from (one for one in told if isinstance(one, str) and one)
