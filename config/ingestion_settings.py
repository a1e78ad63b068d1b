"""Settings of ingestion, crawls and the services that documents are read from."""

from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, field_validator

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class IngestionSettings(BaseModel):
    """The limits of reading one file; a file that exceeds them is skipped. Part of `Settings`."""

    ingestion_file_seconds: float = Field(
        20.0,
        gt=0,
        le=3600,
        description="processor time for one file (wall time: three times that); for JSON Lines, "
        "for one document, and for a whole file this time per megabyte",
    )
    ingestion_file_memory_mb: int = Field(
        512, ge=64, le=65_536, description="memory for one file, in megabytes"
    )
    crawl_pages: int = Field(
        2000, ge=1, le=1_000_000, description="the most pages of one website that are opened"
    )
    crawl_depth: int = Field(
        20, ge=0, le=1000, description="the most links between the start of a crawl and a page"
    )
    crawl_seconds: float = Field(
        3600.0, gt=0, le=86_400, description="the longest time of one crawl"
    )
    crawl_page_seconds: float = Field(
        30.0, gt=0, le=600, description="the longest time for one page, until its last byte"
    )
    crawl_page_mb: int = Field(20, ge=1, le=64, description="the largest page, in megabytes")
    crawl_total_mb: int = Field(
        1000, ge=1, le=1_000_000, description="the most megabytes that one crawl fetches"
    )
    crawl_delay_seconds: float = Field(
        0.5,
        ge=0,
        le=60,
        description="pause between two requests to a website; a longer one in its robots.txt holds",
    )
    crawl_concurrency: int = Field(
        2, ge=1, le=8, description="requests to one website that may be open at the same time"
    )
    confluence_url: str = Field(
        "",
        description="address of the site of Confluence Cloud whose spaces are read, such as "
        "https://acme.atlassian.net; the credentials go there and nowhere else",
    )
    confluence_email: str = Field("", description="account that reads Confluence")
    confluence_api_token: SecretStr | None = Field(
        None, description="API token of that account, without scopes"
    )
    zendesk_url: str = Field(
        "",
        description="address of the Zendesk whose help center is read, such as "
        "https://acme.zendesk.com; the credentials go there and nowhere else",
    )
    zendesk_email: str = Field(
        "",
        description="account that reads the help center, a manager of it; empty: what everybody "
        "may see is read",
    )
    zendesk_api_token: SecretStr | None = Field(None, description="API token of that account")
    source_everybody_groups: list[str] = Field(
        [],
        description="groups of Confluence and user segments of Zendesk to which all belong who may "
        'ask this desk (JSON), such as ["confluence-users"]: what they may read is for everybody',
    )

    @field_validator("confluence_url", "zendesk_url")
    @classmethod
    def _check_service(cls, value: str) -> str:
        parts = urlsplit(value)
        is_safe = parts.scheme == "https" or (
            parts.scheme == "http" and parts.hostname in _LOOPBACK
        )
        is_bare = not (parts.path.strip("/") or parts.query or parts.fragment or "@" in value)
        if value and not (is_safe and parts.hostname and is_bare):
            raise ValueError(
                f"expected an address such as https://acme.example.com, found {value!r}"
            )
        return value.rstrip("/")
