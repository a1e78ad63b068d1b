"""Reads the file of `CHAT_GROUPS_FILE`: the groups of people and places of the chat channels."""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from config.errors import SettingsError
from deploy.chat_channels import CHAT_CHANNELS
from envelope.question import parse_groups
from gateway.chat.chat_groups import ChatGroups, UserGroups

_TABLES = frozenset({"people", "places"})
_USER_GROUPS = "user_groups"
_WITH_USER_GROUPS = frozenset({"slack"})

MakeUserGroups = Callable[[Iterable[str]], UserGroups]
"""Returns the user groups of these ids."""


def read_chat_groups(
    file: Path | None, channel: str, make_user_groups: MakeUserGroups | None = None
) -> ChatGroups:
    """Return the groups of a channel; raises `SettingsError` for a file that cannot be used.

    The file has the tables `[slack.people]`, `[slack.places]` and so on: each line names an id and
    its groups. `make_user_groups` is called if it names user groups of the platform.
    """
    if file is None:
        return ChatGroups()
    try:
        stated = tomllib.loads(file.read_text(encoding="utf-8"))
        channels = {spec.name for spec in CHAT_CHANNELS}
        if not stated.keys() <= channels:
            raise ValueError(f"expected {' or '.join(sorted(channels))}, found {sorted(stated)}")
        read = {name: _read_channel(name, tables) for name, tables in stated.items()}
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise SettingsError(f"CHAT_GROUPS_FILE: {file} cannot be used: {reason}") from error
    groups = read.get(channel, ChatGroups())
    if not groups.user_groups or make_user_groups is None:
        return groups
    return replace(groups, memberships=make_user_groups(groups.user_groups))


def _read_channel(channel: str, tables: object) -> ChatGroups:
    known = _TABLES | {_USER_GROUPS} if channel in _WITH_USER_GROUPS else _TABLES
    if not isinstance(tables, dict) or not tables.keys() <= known:
        expected = " or ".join(f"[{channel}.{table}]" for table in sorted(known))
        raise ValueError(f"expected {expected}, found {tables!r:.80}")
    people, places, user_groups = (
        _read_table(tables.get(name, {})) for name in ("people", "places", _USER_GROUPS)
    )
    # One person may be a member of all of them.
    parse_groups(group for groups in user_groups.values() for group in groups)
    return ChatGroups(people, places, user_groups)


def _read_table(table: object) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(table, dict) or not all(isinstance(one, list) for one in table.values()):
        raise ValueError(f"expected ids with lists of groups, found {table!r:.80}")
    return {name: parse_groups(groups) for name, groups in table.items()}
