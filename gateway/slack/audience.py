"""Decides which people Refdesk answers on Slack, and reads the members of user groups."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from gateway.chat.ports import MembershipError, PermanentError, PushError
from gateway.slack.web_api import SlackCalls

DIRECT_MESSAGES = "direct"
"""The entry in the channel list that allows all direct messages."""
ALL_TEAMS = "*"
"""The entry in the list of teams that allows the members of all organizations."""
log = structlog.get_logger("gateway")

LIFETIME_SECONDS = 600.0
"""How long members are considered valid. From half of this time on, they are read again at the next
question.
"""
READ_SECONDS = 1.0
"""How long a question waits for Slack, which itself waits three seconds for an acknowledgement."""
MOST_MEMBERS = 100_000


@dataclass(frozen=True, slots=True)
class SlackAudience:
    """The allowed channels and users; an empty list allows everybody in the app's workspace.

    People in other organizations are allowed if their team is in `teams`, or if `teams` contains
    `*`. The other workspaces of an Enterprise Grid must be in `teams` as well.
    """

    channels: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    teams: frozenset[str] = frozenset()

    def admits(self, *, channel: str, user: str, direct: bool, is_own_team: bool) -> bool:
        """Return whether Refdesk answers this person in this channel."""
        place = {channel, DIRECT_MESSAGES} if direct else {channel}
        return (
            (is_own_team or ALL_TEAMS in self.teams)
            and (not self.channels or bool(place & self.channels))
            and (not self.users or user in self.users)
        )

    def is_own(self, own: str, message: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
        """Return whether the author belongs to the app's workspace or to an allowed team.

        Every team that an event states for its author must be allowed. In a channel that is shared
        with other organisations, an event without a team is not allowed.
        """
        teams = set(_teams(message))
        if not teams:
            return not body.get("is_ext_shared_channel")
        return teams <= {own, *self.teams}


class SlackUserGroups:
    """The user groups with the given ids; implements `gateway.chat.ports.UserGroups`.

    A user group that Slack does not allow to read, such as a deleted one, has no members.
    """

    def __init__(
        self,
        calls: SlackCalls,
        ids: Iterable[str],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._calls = calls
        self._clock = clock
        self._groups = {id_: _ReadGroup() for id_ in ids}

    async def find(self, person: str) -> frozenset[str]:
        stale = [id_ for id_ in self._groups if not self._is_younger(id_, share=0.5)]
        if stale:
            await self._read(stale)
        if not all(self._is_younger(id_, share=1.0) for id_ in self._groups):
            raise MembershipError("Slack did not return the members of its user groups")
        return frozenset(id_ for id_, group in self._groups.items() if person in group.members)

    def _is_younger(self, id_: str, *, share: float) -> bool:
        """Return whether members were read within this share of their lifetime."""
        read_at = self._groups[id_].read_at
        return read_at is not None and self._clock() - read_at < share * LIFETIME_SECONDS

    async def _read(self, ids: Iterable[str]) -> None:
        """Read user groups again; a group that cannot be read keeps its known members."""
        try:
            async with asyncio.timeout(READ_SECONDS), asyncio.TaskGroup() as tasks:
                for id_ in ids:
                    tasks.create_task(self._read_group(id_))
        except TimeoutError:
            log.warning(
                "user_groups_unavailable", channel="slack", error="Slack did not answer in time"
            )

    async def _read_group(self, id_: str) -> None:
        group = self._groups[id_]
        async with group.reading:
            if self._is_younger(id_, share=0.5):
                return  # another question read it meanwhile
            try:
                members = await self._calls.list_members(id_)
            except PermanentError as error:
                log.error("user_group_refused", channel="slack", group=id_, error=str(error))
                members = ()
            except PushError as error:
                log.warning("user_groups_unavailable", channel="slack", error=str(error))
                return
            if len(members) > MOST_MEMBERS:
                log.error("user_group_too_large", channel="slack", group=id_, members=len(members))
                return
            group.members, group.read_at = frozenset(members), self._clock()


@dataclass(slots=True)
class _ReadGroup:
    members: frozenset[str] = frozenset()
    read_at: float | None = None
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)


def _teams(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the teams that a message states for its author, or that an action states for its
    user.
    """
    profile = message.get("user_profile")
    teams = [message.get(name) for name in ("user_team", "source_team", "team", "team_id")]
    teams.append(profile.get("team") if isinstance(profile, Mapping) else None)
    yield from (team for team in teams if isinstance(team, str) and team)
