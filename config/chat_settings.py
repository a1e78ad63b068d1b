"""Settings of the chat channels: Slack and Telegram."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, SecretStr, field_validator


class ChatSettings(BaseModel):
    """The chat channels; a part of `Settings`."""

    burst_seconds: float = Field(
        1.0,
        ge=0,
        le=30,
        description="chats: messages of one person within this time are merged into one question; "
        "0: no merging",
    )
    newer_message: Literal["supersedes", "waits"] = Field(
        "supersedes",
        description="chats: what happens to a message that arrives before the previous one is "
        "answered",
    )
    chat_groups_file: Path | None = Field(
        None,
        description="TOML file with the groups of people, of user groups (Slack) and of channels "
        "in Slack and Telegram; unset: questions in chats are answered from public documents only",
    )
    slack_bot_token: SecretStr | None = Field(
        None, description="token of the Slack app, `xoxb-...`"
    )
    slack_signing_secret: SecretStr | None = Field(
        None, description="secret of the Slack app, which verifies that events come from Slack"
    )
    slack_app_token: SecretStr | None = Field(
        None, description="app-level token for Socket Mode, `xapp-...`"
    )
    slack_channels: tuple[str, ...] = Field(
        (),
        description="ids of Slack channels in which every message is treated as a question (a "
        "JSON list)",
    )
    slack_allowed_channels: tuple[str, ...] = Field(
        (),
        description="ids of the Slack channels to answer in (a JSON list); `direct` means direct "
        "messages; empty: all",
    )
    slack_allowed_users: tuple[str, ...] = Field(
        (), description="ids of the Slack users to answer (a JSON list); empty: all"
    )
    slack_allowed_teams: tuple[str, ...] = Field(
        (),
        description="ids of further Slack workspaces and organisations whose members are "
        "answered, in addition to that of the app (a JSON list)",
    )
    slack_external_people: bool = Field(
        False,
        description="answer members of all other organisations, in Slack channels that are shared "
        "with them",
    )
    slack_api_url: str | None = Field(None, description="address of a proxy for Slack")
    telegram_bot_token: SecretStr | None = Field(None, description="token of the Telegram bot")
    telegram_webhook_url: str | None = Field(
        None, description="public address of `refdesk telegram`; unset: long polling"
    )
    telegram_webhook_secret: SecretStr | None = Field(
        None, description="1 to 256 of A-Z a-z 0-9 _ -; Telegram sends it with each update"
    )
    telegram_allowed_chats: tuple[int, ...] = Field(
        (),
        description="ids of the Telegram chats to answer in (a JSON list); the id of a private "
        "chat is the id of its person; empty: all",
    )
    telegram_allowed_users: tuple[int, ...] = Field(
        (),
        description="ids of the Telegram users to answer (a JSON list); empty: all",
    )
    telegram_api_url: str | None = Field(None, description="address of another Bot API server")

    @field_validator(
        "slack_api_url",
        "telegram_api_url",
        "telegram_webhook_url",
        "chat_groups_file",
        mode="before",
    )
    @classmethod
    def _empty_chat_address_is_unset(cls, value: object) -> object:
        return None if value == "" else value
