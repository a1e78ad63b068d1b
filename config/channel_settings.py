"""Settings for the channels: HTTP, limits per person, chats, and the console."""

import ipaddress
import re
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

from pydantic import BaseModel, Field, SecretStr, field_validator

from config.storage_settings import WEB_ADDRESS, WHOSE, check_web_address

HOST_NAME = re.compile(r"(?:\*\.)?[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]")
RoleName = Literal["viewer", "editor", "owner"]
EVERYWHERE = "*"


class PersonIssuer(BaseModel, frozen=True, extra="forbid"):
    """An identity provider whose tokens identify users; `tenant` defaults to `TENANT`."""

    jwks_url: str
    audience: str = Field(min_length=1)
    tenant: str | None = None
    groups_claim: str = "groups"


class HttpSettings(BaseModel):
    """Settings for the HTTP channel."""

    source_links: bool = Field(
        True,
        description="show cited documents over HTTP in the document reader, if they are not "
        "published elsewhere",
    )
    public_url: str | None = Field(
        None,
        description="public URL of the HTTP server, if it differs from the address on which it "
        "listens; it can contain a path, such as https://acme.com/desk",
    )
    require_keys: bool = Field(
        False,
        description="always require a key over HTTP, even before the first key is created and "
        "after Redis has lost all keys",
    )
    allowed_hosts: tuple[str, ...] = Field(
        (),
        description="accepted host names in addition to the host of `PUBLIC_URL` (a JSON list; "
        "`*.acme.com`: all subdomains); empty: all",
    )
    trusted_proxies: tuple[str, ...] = Field(
        (),
        description="addresses or networks of proxies whose `X-Forwarded-For` and "
        "`X-Forwarded-Proto` are trusted (a JSON list); empty: none",
    )

    person_issuers: dict[str, PersonIssuer] = Field(
        {},
        description="identity providers whose tokens (RS256, ES256) identify users and their "
        "groups, by issuer: a JSON object of objects with `jwks_url`, "
        "`audience` and, "
        "optionally, `tenant` and `groups_claim`",
    )
    mcp_key: SecretStr | None = Field(
        None,
        description="secret key whose scopes, groups and limits apply to `refdesk mcp`; empty: no "
        "limits, as with `refdesk ask`",
    )

    http_connections: int = Field(
        4096,
        ge=1,
        description="maximum number of open connections of the HTTP server or a webhook; above it, "
        "connections without a complete request are closed, and then new connections "
        "are refused",
    )
    http_connections_per_address: int = Field(
        256,
        ge=1,
        description="maximum number of open connections per address (IPv6: per /64); trusted "
        "proxies are exempt",
    )
    http_idle_seconds: float = Field(
        75.0,
        gt=0,
        description="time limit for a connection without a request; must be longer than the "
        "timeout of a proxy",
    )

    @field_validator("public_url")
    @classmethod
    def _is_public(cls, value: str | None) -> str | None:
        if value is not None and WEB_ADDRESS.fullmatch(value) is None:
            raise ValueError("expected an address such as https://desk.acme.com")
        return value

    @field_validator("allowed_hosts")
    @classmethod
    def _are_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for host in value:
            if HOST_NAME.fullmatch(host) is None:
                raise ValueError(
                    "expected host names without a port, such as desk.acme.com or *.acme.com"
                )
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for network in value:
            ipaddress.ip_network(network)
        return value


class VisitorSettings(BaseModel):
    """Settings for limits per person: website visitors and people in chats."""

    visitor_requests_per_minute: int = Field(
        120,
        ge=1,
        description="maximum number of requests of one visitor (an IP address) with one public key",
    )
    visitor_questions_per_minute: int = Field(
        30,
        ge=1,
        description="maximum number of questions, and of new conversations, of one visitor with "
        "one public key",
    )
    visitor_questions_per_day: int = Field(
        500,
        ge=1,
        description="maximum number of questions, and of new conversations, of one visitor with "
        "one public key, unless the key has another limit for questions; all people behind one IP "
        "address count as one visitor",
    )
    visitor_share: float = Field(
        0.25, gt=0, le=1, description="maximum share of a public key's limits for one visitor"
    )
    chat_questions_per_minute: int = Field(
        10, ge=0, description="questions of one person in all of their chats; 0: no limit"
    )
    chat_questions_per_day: int = Field(
        200, ge=0, description="questions of one person in all of their chats; 0: no limit"
    )


class ChatSettings(BaseModel):
    """Settings for the chat channels (Slack and Telegram)."""

    burst_seconds: float = Field(
        1.0,
        ge=0,
        le=30,
        description="in chats, messages of one person within this time are merged into one "
        "question; 0: no merging",
    )
    newer_message: Literal["supersedes", "waits"] = Field(
        "supersedes",
        description="what happens to a chat message that arrives before the previous one is "
        "answered",
    )
    chat_groups_file: Path | None = Field(
        None,
        description="TOML file with the groups of people, of user groups (Slack) and of channels "
        "in Slack and Telegram; unset: questions in chats are answered only from public "
        "documents",
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
        description="ids of the Slack channels in which questions are answered (a JSON list); "
        "`direct` means direct messages; empty: all",
    )
    slack_allowed_users: tuple[str, ...] = Field(
        (),
        description="ids of the Slack users whose questions are answered (a JSON list); empty: all",
    )
    slack_allowed_teams: tuple[str, ...] = Field(
        (),
        description="ids of additional Slack workspaces and organisations whose members receive "
        "answers (a JSON list); `*`: all, in shared channels",
    )
    slack_api_url: str | None = Field(None, description="URL of a proxy for Slack")
    telegram_bot_token: SecretStr | None = Field(None, description="token of the Telegram bot")
    telegram_webhook_url: str | None = Field(
        None, description="public URL of `refdesk telegram`; unset: long polling"
    )
    telegram_webhook_secret: SecretStr | None = Field(
        None,
        description="secret that Telegram sends with each update; 1 to 256 of the characters "
        "A-Z a-z 0-9 _ -",
    )
    telegram_allowed_chats: tuple[int, ...] = Field(
        (),
        description="ids of the Telegram chats in which questions are answered (a JSON list); the "
        "id of a private chat is the id of its person; empty: all",
    )
    telegram_allowed_users: tuple[int, ...] = Field(
        (),
        description="ids of the Telegram users whose questions are answered (a JSON list); empty: "
        "all",
    )
    telegram_api_url: str | None = Field(None, description="URL of another Bot API server")

    _are_chat_addresses = field_validator(
        "slack_api_url", "telegram_api_url", "telegram_webhook_url"
    )(check_web_address)


class ConsoleSettings(BaseModel):
    """Settings for the console: who can sign in, and what they may do."""

    console_roles: dict[str, dict[RoleName, tuple[str, ...]]] = Field(
        {},
        description="who may do what in the console, by `*` (every assistant), `tenant` or "
        "`tenant/assistant`: a JSON object of objects with lists of people for `owner`, `editor`, "
        "`viewer`. A person is a verified e-mail address, `group:NAME` or `subject:ID`",
    )
    console_idle_minutes: float = Field(
        60.0,
        ge=1,
        le=10_080,
        description="a console session expires after this time without use",
    )
    console_session_hours: float = Field(
        12.0, gt=0, le=168, description="maximum duration of a console session"
    )
    time_zone: str = Field(
        "UTC",
        description="time zone of the console, such as Europe/Berlin, for times and day boundaries",
    )
    oidc_issuer: str | None = Field(
        None,
        description="URL of the OpenID Connect provider with which people sign in to the console; "
        "requires `OIDC_CLIENT_ID` and `PUBLIC_URL`. Unset: people sign in only with "
        "links from `refdesk console`",
    )
    oidc_client_id: str = Field(
        "", description="client id of this installation at the OpenID Connect provider"
    )
    oidc_client_secret: SecretStr | None = Field(
        None,
        description="client secret of this installation at the OpenID Connect provider; "
        "unset: a public client",
    )
    oidc_scopes: tuple[str, ...] = Field(
        ("openid", "email", "profile"),
        description="scopes that are requested from the OpenID Connect provider (a JSON list)",
    )
    oidc_groups_claim: str = Field(
        "groups", description="the claim of the ID token that lists the groups of a person"
    )

    @field_validator("console_roles")
    @classmethod
    def _are_assistants(
        cls, value: dict[str, dict[RoleName, tuple[str, ...]]]
    ) -> dict[str, dict[RoleName, tuple[str, ...]]]:
        for name in value:
            if name != EVERYWHERE and WHOSE.fullmatch(name) is None:
                raise ValueError(f"expected *, a tenant, or tenant/assistant, found {name!r}")
        return value

    @field_validator("time_zone")
    @classmethod
    def _is_zone(cls, value: str) -> str:
        try:
            find_zone(value)
        except (ValueError, OSError, LookupError) as error:
            raise ValueError(
                "expected UTC, or a time zone that is installed on this machine, such as "
                f"Europe/Berlin; found {value!r}"
            ) from error
        return value

    def console_people_of(self, tenant: str, assistant: str) -> list[tuple[str, RoleName]]:
        """Return pairs of person and role for an assistant; email addresses are in lower case."""
        people_and_roles: list[tuple[str, RoleName]] = []
        for scope in (EVERYWHERE, tenant, f"{tenant}/{assistant}"):
            for role, people in self.console_roles.get(scope, {}).items():
                people_and_roles += [(_fold(person), role) for person in people]
        return people_and_roles


def find_zone(name: str) -> tzinfo:
    """Return a time zone; UTC also works without a time zone database."""
    return UTC if name == "UTC" else ZoneInfo(name)


def _fold(person: str) -> str:
    is_other = person.startswith(("group:", "subject:"))
    return person if is_other else person.casefold()
