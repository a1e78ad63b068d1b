"""Settings of the HTTP channel."""

import ipaddress
import re

from pydantic import BaseModel, Field, field_validator

WEB_ADDRESS = re.compile(r"https?://[^\s\"'<>]+")

HOST_NAME = re.compile(r"(?:\*\.)?[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]")


class HttpSettings(BaseModel):
    """What the HTTP channel reads; a part of `Settings`."""

    source_links: bool = Field(
        True, description="the HTTP door shows cited documents that are not published elsewhere"
    )
    public_url: str | None = Field(
        None, description="of the HTTP door, where people reach it under another address"
    )
    require_keys: bool = Field(
        False,
        description="the HTTP door answers nobody without a key, also before the first one is made "
        "or after Redis lost them all",
    )
    allowed_hosts: tuple[str, ...] = Field(
        (),
        description="host names under which the HTTP door answers (a JSON list; `*.acme.com`: any "
        "below it), beside that of `PUBLIC_URL`; none: every name",
    )
    trusted_proxies: tuple[str, ...] = Field(
        (),
        description="addresses or networks of proxies in front of the HTTP door, whose "
        "`X-Forwarded-For` and `X-Forwarded-Proto` are believed (a JSON list); none: nobody's",
    )

    http_connections: int = Field(
        4096,
        ge=1,
        description="connections that the HTTP door, or a webhook, has open at once; beyond it "
        "those without a complete request give way, then new ones are refused",
    )
    http_connections_per_address: int = Field(
        256,
        ge=1,
        description="the same, of one address (IPv6: of one /64); "
        "trusted proxies have no such limit",
    )
    http_header_seconds: float = Field(
        10.0, gt=0, description="how long the headers of a request may take to arrive"
    )
    http_idle_seconds: float = Field(
        75.0,
        gt=0,
        description="how long a connection stays open without a request; "
        "longer than a proxy keeps it",
    )
    http_write_seconds: float = Field(
        30.0, gt=0, description="how long a reader may take to make room for more of an answer"
    )
    http_buffer_mb: int = Field(
        16, ge=1, description="request bodies that one process holds at once, in all; then 503"
    )
    http_buffer_mb_per_address: int = Field(
        4, ge=1, description="the same, of one address (IPv6: of one /64)"
    )

    @field_validator("public_url", mode="before")
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
