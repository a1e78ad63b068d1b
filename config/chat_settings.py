"""Settings of the chat channels: Slack and Telegram."""

from typing import Literal

from pydantic import BaseModel, Field, SecretStr, field_validator


class ChatSettings(BaseModel):
    """What the chat channels read; a part of `Settings`."""

    burst_seconds: float = Field(
        1.0,
        ge=0,
        le=30,
        description="chats: messages that come within it are one question; 0: each is its own",
    )
    newer_message: Literal["supersedes", "waits"] = Field(
        "supersedes", description="chats: what a message does while the one before is answered"
    )
    slack_bot_token: SecretStr | None = Field(None, description="of the Slack app, `xoxb-...`")
    slack_signing_secret: SecretStr | None = Field(
        None, description="of the Slack app; proves that events come from Slack"
    )
    slack_app_token: SecretStr | None = Field(None, description="`xapp-...`, for Socket Mode")
    slack_channels: tuple[str, ...] = Field(
        (), description="ids of Slack channels where every message is a question (a JSON list)"
    )
    slack_allowed_channels: tuple[str, ...] = Field(
        (),
        description="ids of the only Slack channels that are answered (a JSON list); `direct` "
        "stands for direct messages; empty: everywhere",
    )
    slack_allowed_users: tuple[str, ...] = Field(
        (), description="ids of the only people who are answered on Slack (a JSON list); empty: all"
    )
    slack_allowed_teams: tuple[str, ...] = Field(
        (),
        description="ids of further workspaces and organisations whose people are answered on "
        "Slack, besides the app's own (a JSON list)",
    )
    slack_external_people: bool = Field(
        False,
        description="people of every other organisation are answered on Slack, in channels that "
        "are shared with them",
    )
    slack_api_url: str | None = Field(None, description="of a proxy in front of Slack")
    telegram_bot_token: SecretStr | None = Field(None, description="of the Telegram bot")
    telegram_webhook_url: str | None = Field(
        None, description="public address of `refdesk telegram`; unset: long polling"
    )
    telegram_webhook_secret: SecretStr | None = Field(
        None, description="1 to 256 of A-Z a-z 0-9 _ -; Telegram sends it with each update"
    )
    telegram_allowed_chats: tuple[int, ...] = Field(
        (),
        description="ids of the only Telegram chats that are answered (a JSON list); the id of a "
        "private chat is that of its person; empty: every chat",
    )
    telegram_allowed_users: tuple[int, ...] = Field(
        (),
        description="ids of the only people who are answered on Telegram (a JSON list); empty: all",
    )
    telegram_api_url: str | None = Field(None, description="of a Bot API server of your own")

    @field_validator("slack_api_url", "telegram_api_url", "telegram_webhook_url", mode="before")
    @classmethod
    def _empty_chat_address_is_unset(cls, value: object) -> object:
        return None if value == "" else value
