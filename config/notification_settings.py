"""Settings of what tells other programs and people: webhooks, and hand-over to a person."""

import base64
import binascii
from typing import Literal

from pydantic import BaseModel, Field, SecretStr, field_validator

from config.http_settings import WEB_ADDRESS

_PREFIX = "whsec_"
_SHORTEST_SECRET = 24
EventKind = Literal["message.ended", "message.rated", "gap.found", "source.failed"]


class WebhookEndpoint(BaseModel, frozen=True, extra="forbid"):
    """An address to which events are sent, under a name that the operator chooses."""

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
        if any(one.count("/") != 1 for one in value):
            raise ValueError("expected assistants such as acme/docs: the tenant, then the name")
        return value

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """The keys that sign, the newest first."""
        given = (self.secret, self.earlier_secret)
        return tuple(_decode(one) for one in given if one is not None)


class NotificationSettings(BaseModel):
    """Webhooks; a part of `Settings`."""

    webhooks: dict[str, WebhookEndpoint] = Field(
        {},
        description="where events are sent, as JSON: each name with `url`, `secret` (`whsec_` and "
        "base64 of at least 24 bytes), and if needed `earlier_secret`, `events`, `assistants` "
        "(`tenant/assistant`) and `private` (true: the host may be in this network)",
    )

    @property
    def webhook_secrets(self) -> set[str]:
        """The secrets, which no line of the log may contain."""
        given = (
            secret
            for endpoint in self.webhooks.values()
            for secret in (endpoint.secret, endpoint.earlier_secret)
        )
        return {secret.get_secret_value() for secret in given if secret is not None}


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
