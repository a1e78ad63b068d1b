"""Settings of the HTTP channel."""

import ipaddress
import re

from pydantic import BaseModel, Field, SecretStr, field_validator

WEB_ADDRESS = re.compile(r"https?://[^\s\"'<>]+")

HOST_NAME = re.compile(r"(?:\*\.)?[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]")


class PersonIssuer(BaseModel, frozen=True, extra="forbid"):
    """An identity provider whose tokens state who asks; without a tenant that of `TENANT`."""

    jwks_url: str
    audience: str = Field(min_length=1)
    tenant: str | None = None
    groups_claim: str = "groups"


class HttpSettings(BaseModel):
    """The HTTP channel; a part of `Settings`."""

    source_links: bool = Field(
        True,
        description="show cited documents over HTTP in the document reader, if they are not "
        "published elsewhere",
    )
    public_url: str | None = Field(
        None,
        description="public address of the HTTP server, if it differs from the address that "
        "it listens on",
    )
    require_keys: bool = Field(
        False,
        description="always require a key over HTTP, also before the first key is created and "
        "after Redis has lost all keys",
    )
    allowed_hosts: tuple[str, ...] = Field(
        (),
        description="accepted host names in addition to that of `PUBLIC_URL` (a JSON list; "
        "`*.acme.com`: all subdomains); empty: all",
    )
    trusted_proxies: tuple[str, ...] = Field(
        (),
        description="addresses or networks of proxies whose `X-Forwarded-For` and "
        "`X-Forwarded-Proto` are trusted (a JSON list); empty: none",
    )

    person_issuers: dict[str, PersonIssuer] = Field(
        {},
        description="identity providers whose tokens (RS256, ES256) state who asks and which "
        "groups they belong to, by issuer: a JSON object of objects with `jwks_url`, "
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
        description="maximum number of open connections of the HTTP server or a webhook; above "
        "it, connections without a complete request are closed, then new ones are refused",
    )
    http_connections_per_address: int = Field(
        256,
        ge=1,
        description="the same for one address (IPv6: one /64); trusted proxies are exempt",
    )
    http_header_seconds: float = Field(
        10.0, gt=0, description="time limit for the headers of a request"
    )
    http_idle_seconds: float = Field(
        75.0,
        gt=0,
        description="time limit for a connection without a request; must be longer than that of a "
        "proxy",
    )
    http_write_seconds: float = Field(
        30.0, gt=0, description="time limit for a client that does not read the response"
    )
    http_buffer_mb: int = Field(
        16,
        ge=1,
        description="memory for request bodies of one process; above it, requests get status 503",
    )
    http_buffer_mb_per_address: int = Field(
        4, ge=1, description="the same for one address (IPv6: one /64)"
    )

    @field_validator("public_url", "mcp_key", mode="before")
    @classmethod
    def _empty_address_is_unset(cls, value: object) -> object:
        return None if value == "" else value

    @field_validator("public_url")
    @classmethod
    def _is_public(cls, value: str | None) -> str | None:
        if value is not None and WEB_ADDRESS.fullmatch(value) is None:
            raise ValueError("expected an address such as https://desk.acme.com")
        return value

    @field_validator("allowed_hosts")
    @classmethod
    def _are_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            if HOST_NAME.fullmatch(one) is None:
                raise ValueError("expected host names such as desk.acme.com or *.acme.com, no port")
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            ipaddress.ip_network(one)
        return value
