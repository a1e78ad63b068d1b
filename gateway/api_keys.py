"""Keys of the HTTP API: their scopes, creation and verification.

The token of a key is `refdesk_<kind>_<id>_<secret>`. Only its SHA-256 is stored: the secret has 256
random bits, so that no slower hash is needed against guessing. A public key is part of a web page,
where everybody can read it: it works only from its origins, and each conversation that it opens has
a separate token.
"""

import hashlib
import hmac
import re
import secrets
import time
from enum import StrEnum
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, field_validator, model_validator

from envelope.question import NAME, parse_groups

_TOKEN = re.compile(r"refdesk_(?:secret|public)_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")
_ORIGIN = re.compile(r"https?://(?:[a-z0-9.-]{1,253}|\[[0-9a-f:]{2,39}\])(?::\d{1,5})?", re.ASCII)

OWN_PORTS = {"http": 80, "https": 443}
"""Browsers omit the default port of a scheme."""


class Scope(StrEnum):
    """A permission of a key."""

    ASK = "ask"
    READ = "read"
    FORGET = "forget"
    FEEDBACK = "feedback"
    METRICS = "metrics"
    DOCUMENTS = "documents"
    WRITE = "write"


_GROUP_FIELDS = ("groups", "person_groups", "person_secret")
OPERATOR_SCOPES = frozenset({Scope.METRICS, Scope.DOCUMENTS, Scope.WRITE})
"""Scopes that only secret keys have, if requested."""
DEFAULT_SCOPES = frozenset(Scope) - OPERATOR_SCOPES


class Key(BaseModel, frozen=True, extra="forbid"):
    """A stored key; its quotas count over all gateway processes, None: no limit."""

    id: str = Field(pattern=r"^[0-9a-f]{12}$")
    kind: Literal["secret", "public"]
    digest: str = Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the token", repr=False)
    tenant: str = Field(pattern=NAME)
    assistants: tuple[str, ...] = Field((), description="empty: all assistants of the tenant")
    scopes: frozenset[Scope] = DEFAULT_SCOPES
    origins: tuple[str, ...] = Field((), description="of a public key")
    note: str = Field("", max_length=200, description="note about whom it was created for")
    requests_per_minute: int | None = Field(None, ge=1)
    questions_per_day: int | None = Field(None, ge=1)
    visitor_questions_per_day: int | None = Field(None, ge=1, description="of a public key")
    groups: tuple[str, ...] = Field((), description="of everybody who asks with this key")
    person_groups: tuple[str, ...] = Field((), description="that signed tokens may state")
    person_secret: str = Field("", repr=False, description="signs the tokens of persons")
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None

    @field_validator("groups", "person_groups")
    @classmethod
    def _are_groups(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return parse_groups(value)

    @field_validator("origins")
    @classmethod
    def _are_origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for origin in value:
            if _ORIGIN.fullmatch(origin) is None:
                raise ValueError(f"expected an origin such as https://acme.com, found {origin!r}")
        return value

    @model_validator(mode="after")
    def _public_keys_have_origins(self) -> "Key":
        if self.kind == "public" and not self.origins:
            raise ValueError("a public key needs the origins of its websites")
        if self.kind == "public" and (found := sorted(self.scopes & OPERATOR_SCOPES)):
            raise ValueError(f"a public key must not have the scope {found[0].value}")
        if self.kind == "secret" and (self.origins or self.visitor_questions_per_day):
            raise ValueError("only public keys have origins and limits for a visitor")
        if self.kind == "public" and self.groups:
            raise ValueError("a public key must not have groups, because everybody can read it")
        return self

    def encode(self) -> str:
        """Return the key as JSON; without groups, as earlier versions read it."""
        unused = {name for name in _GROUP_FIELDS if not getattr(self, name)}
        return self.model_dump_json(exclude=unused)

    def opens(self, token: str, *, now: float) -> bool:
        """Return whether this is the token of the key, and the key is valid."""
        return hmac.compare_digest(digest_of(token), self.digest) and self.is_good(now=now)

    def is_good(self, *, now: float) -> bool:
        """Return whether the key is neither revoked nor expired."""
        expired = self.expires_at is not None and now >= self.expires_at
        return not expired and self.revoked_at is None


def make_key(kind: Literal["secret", "public"], **fields: object) -> tuple[Key, str]:
    """Return a new key and its token, which cannot be read again; raises `ValueError`."""
    id_ = secrets.token_hex(6)
    token = f"refdesk_{kind}_{id_}_{secrets.token_urlsafe(32)}"
    if fields.get("person_groups"):
        fields = {**fields, "person_secret": secrets.token_urlsafe(48)}
    made = {"id": id_, "kind": kind, "digest": digest_of(token), "created_at": time.time()}
    return Key.model_validate({**fields, **made}), token


def id_of(token: str) -> str | None:
    """Return the id in a token, or None for a text that is no token."""
    found = _TOKEN.fullmatch(token)
    return found[1] if found else None


def origin_in(text: str) -> str | None:
    """Return the origin that a browser sends for this address, or None if it has none."""
    address = text.strip() if "://" in text else f"https://{text.strip()}"
    try:
        parts = urlsplit(address)
        host, port = (parts.hostname or "").encode("idna").decode(), parts.port
    except ValueError:
        return None
    shown = f"[{host}]" if ":" in host else host
    own = port is None or port == OWN_PORTS.get(parts.scheme)
    origin = f"{parts.scheme}://{shown}{'' if own else f':{port}'}"
    return origin if host and _ORIGIN.fullmatch(origin) else None


def digest_of(token: str) -> str:
    """Return the stored digest of a token."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
