"""Settings for webhooks, hand-over to a person, and telemetry."""

import base64
import binascii
import re
from typing import Literal

from pydantic import BaseModel, Field, SecretStr, field_validator

from config.storage_settings import WEB_ADDRESS

_MAILBOX = re.compile(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,253}", re.ASCII)
_PREFIX = "whsec_"
_SHORTEST_SECRET = 24
EventKind = Literal["message.ended", "message.rated", "gap.found", "source.failed"]


class WebhookEndpoint(BaseModel, frozen=True, extra="forbid"):
    """A webhook endpoint, under a name chosen by the operator."""

    url: str
    secret: SecretStr
    earlier_secret: SecretStr | None = None
    events: tuple[EventKind, ...] = ("message.ended", "message.rated", "gap.found", "source.failed")
    assistants: tuple[str, ...] = ()
    private: bool = False

    @field_validator("url")
    @classmethod
    def _is_address(cls, value: str) -> str:
        if WEB_ADDRESS.fullmatch(value) is None:
            raise ValueError("expected an address such as https://hooks.acme.com/refdesk")
        return value

    @field_validator("secret", "earlier_secret")
    @classmethod
    def _is_secret(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            _decode(value)
        return value

    @field_validator("assistants")
    @classmethod
    def _are_assistants(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any(assistant.count("/") != 1 for assistant in value):
            raise ValueError("expected assistants in the form TENANT/NAME, such as acme/docs")
        return value

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """The signing keys, newest first."""
        given = (self.secret, self.earlier_secret)
        return tuple(_decode(secret) for secret in given if secret is not None)


class NotificationSettings(BaseModel):
    """Settings for webhooks and handover to a person."""

    webhooks: dict[str, WebhookEndpoint] = Field(
        {},
        description="endpoints to which events are sent: a JSON object of names with `url`, "
        "`secret` (`whsec_`, then base64 of at least 24 bytes), and optionally "
        "`earlier_secret`, `events`, `assistants` (`tenant/assistant`) and `private` "
        "(true: allow hosts with private addresses)",
    )

    contact: str = Field(
        "",
        max_length=200,
        description="how to reach a person, such as `support@acme.com` or `+1 555 0100, weekdays`; "
        "shown below refusals, below passages that match poorly, and to visitors who ask for a "
        "person",
    )
    handover_email: str | None = Field(
        None,
        description="e-mail address of the people who take over conversations; requires "
        "`SMTP_HOST`",
    )
    handover_slack_channel: str | None = Field(
        None,
        pattern=r"^[CG][A-Z0-9]{2,20}$",
        description="id of the Slack channel to which the app of `SLACK_BOT_TOKEN` posts "
        "conversations; replies in the thread are sent to the visitor while `refdesk "
        "slack` is running",
    )
    handover_people: tuple[str, ...] = Field(
        (),
        description="addresses of people who can answer by e-mail (a JSON list); empty: "
        "`HANDOVER_EMAIL`",
    )
    handover_webhook: WebhookEndpoint | None = Field(
        None,
        description="endpoint to which conversations are sent: a JSON object with `url`, "
        "`secret` and optionally `private`",
    )
    handover_visitor_per_day: int = Field(
        10, ge=1, le=1_000_000,
        description="maximum number of handovers per visitor and day",
    )  # fmt: skip
    handover_tenant_per_day: int = Field(
        500, ge=1, le=1_000_000,
        description="maximum number of handovers per tenant and day",
    )  # fmt: skip
    smtp_host: str | None = Field(None, description="host name of the server that sends e-mail")
    smtp_port: int = Field(587, ge=1, le=65_535, description="port of that server")
    smtp_security: Literal["starttls", "tls", "none"] = Field(
        "starttls", description="encryption of the connection to that server"
    )
    smtp_user: str = Field("", description="user name at that server; empty: no authentication")
    smtp_password: SecretStr | None = Field(None, description="password of `SMTP_USER`")
    smtp_from: str = Field("", description="sender of the e-mail; empty: `HANDOVER_EMAIL`")
    imap_host: str | None = Field(
        None,
        description="host name of the IMAP server with the mailbox of `SMTP_FROM`; replies in this "
        "mailbox are sent to the visitor. It must accept addresses such as "
        "desk+anything@acme.com",
    )
    imap_port: int = Field(993, ge=1, le=65_535, description="port of that server")
    imap_security: Literal["tls", "starttls", "none"] = Field(
        "tls", description="encryption of the connection to that server"
    )
    imap_user: str = Field("", description="user name at that server; empty: the sender")
    imap_password: SecretStr | None = Field(None, description="password of `IMAP_USER`")

    @field_validator("handover_people")
    @classmethod
    def _are_mailboxes(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(map(_MAILBOX.fullmatch, value)):
            raise ValueError("expected addresses such as ada@acme.com")
        return value

    @property
    def mail_sender(self) -> str:
        """The sender address of email, to which people reply."""
        return self.smtp_from or self.handover_email or ""

    @field_validator("handover_email", "smtp_from")
    @classmethod
    def _is_mailbox(cls, value: str | None) -> str | None:
        if value and _MAILBOX.fullmatch(value) is None:
            raise ValueError("expected one address such as desk@acme.com")
        return value or (None if value is None else "")


class TelemetrySettings(BaseModel):
    """Settings for telemetry: where traces, metrics, and errors are sent."""

    otel_exporter_otlp_endpoint: str | None = Field(
        None,
        description="URL of an OTLP/HTTP receiver, such as `http://collector:4318`, to which "
        "traces and metrics are sent (requires the extra `opentelemetry`); unset: nothing is "
        "sent. Other OpenTelemetry environment variables, such as "
        "`OTEL_TRACES_SAMPLER`, also apply",
    )
    otel_exporter_otlp_headers: SecretStr | None = Field(
        None, description="headers for that receiver: comma-separated `name=value` pairs"
    )
    otel_metrics_exporter: Literal["otlp", "none"] = Field(
        "otlp", description="`none`: only traces are sent to that receiver"
    )
    otel_service_name: str = Field(
        "refdesk", min_length=1, description="name of this installation in traces and metrics"
    )
    telemetry_content: bool = Field(
        False,
        description="include questions and answers in traces; `refdesk forget` cannot delete them "
        "at the receiver",
    )
    sentry_dsn: SecretStr | None = Field(
        None,
        description="address (DSN) of a Sentry project, to which errors are reported without the "
        "text of questions and documents (requires the extra `sentry`)",
    )

    @field_validator("otel_exporter_otlp_endpoint")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError(f"expected an address with http:// or https://, found {value!r}")
        return value

    @field_validator("otel_exporter_otlp_headers")
    @classmethod
    def _are_headers(cls, value: SecretStr | None) -> SecretStr | None:
        stated = "" if value is None else value.get_secret_value()
        if stated and not all("=" in pair for pair in stated.rstrip(",").split(",")):
            raise ValueError("expected `name=value`, separated by commas")
        return value

    def otlp_headers(self) -> dict[str, str]:
        """Return the headers for the OTLP receiver."""
        stated = self.otel_exporter_otlp_headers
        pairs = [] if stated is None else stated.get_secret_value().split(",")
        split = (pair.partition("=") for pair in pairs if "=" in pair)
        return {name.strip(): value.strip() for name, _, value in split}


def _decode(secret: SecretStr) -> bytes:
    text = secret.get_secret_value()
    try:
        decoded = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"expected a secret that begins with {_PREFIX}, then base64") from error
    if not text.startswith(_PREFIX) or len(decoded) < _SHORTEST_SECRET:
        raise ValueError(
            f"expected a secret that begins with {_PREFIX}, then base64 of at least "
            f"{_SHORTEST_SECRET} bytes"
        )
    return decoded
