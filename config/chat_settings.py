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
    slack_api_url: str | None = Field(None, description="of a proxy in front of Slack")
    telegram_bot_token: SecretStr | None = Field(None, description="of the Telegram bot")
    telegram_webhook_url: str | None = Field(
        None, description="public address of `refdesk telegram`; unset: long polling"
    )
    telegram_webhook_secret: SecretStr | None = Field(
        None, description="1 to 256 of A-Z a-z 0-9 _ -; Telegram sends it with each update"
    )
    telegram_api_url: str | None = Field(None, description="of a Bot API server of your own")

    @field_validator("slack_api_url", "telegram_api_url", "telegram_webhook_url", mode="before")
    @classmethod
    def _empty_chat_address_is_unset(cls, value: object) -> object:
        return None if value == "" else value
