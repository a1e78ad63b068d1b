"""Reads the file of `CHAT_GROUPS_FILE`: the groups of people and places of the chat channels."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from config.errors import SettingsError
from deploy.chat_channels import CHAT_CHANNELS
from envelope.question import parse_groups
from gateway.chat.chat_groups import ChatGroups

_TABLES = frozenset({"people", "places"})


def read_chat_groups(file: Path | None, channel: str) -> ChatGroups:
    """Return the groups of a channel; raises `SettingsError` for a file that cannot be used.

    The file has the tables `[slack.people]`, `[slack.places]` and so on: each line names an id and
    its groups.
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
    return read.get(channel, ChatGroups())


def _read_channel(channel: str, tables: object) -> ChatGroups:
    if not isinstance(tables, dict) or not tables.keys() <= _TABLES:
        raise ValueError(f"expected [{channel}.people] or [{channel}.places], found {tables!r:.80}")
    return ChatGroups(_read_table(tables.get("people", {})), _read_table(tables.get("places", {})))


def _read_table(table: object) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(table, dict) or not all(isinstance(one, list) for one in table.values()):
        raise ValueError(f"expected ids with lists of groups, found {table!r:.80}")
    return {name: parse_groups(groups) for name, groups in table.items()}
