"""Keys of the HTTP API: their scopes, creation and verification.

The token of a key is `refdesk_<kind>_<id>_<secret>`. Only its SHA-256 is stored. The secret has 256
random bits, so that a slower hash is not needed to prevent guessing. A public key is part of a web
page, where everybody can read it. Therefore, it works only from its origins, and each conversation
that it opens has a separate token.
"""

import hashlib
import hmac
import os
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import structlog
from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from envelope.question import NAME, parse_groups
from memory.errors import MemoryUnavailableError
from memory.http_state import RedisApiKeys

if TYPE_CHECKING:
    from memory.http_state import Redis

_TOKEN = re.compile(r"refdesk_(?:secret|public)_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")
_ORIGIN = re.compile(r"https?://(?:[a-z0-9.-]{1,253}|\[[0-9a-f:]{2,39}\])(?::\d{1,5})?", re.ASCII)

OWN_PORTS = {"http": 80, "https": 443}
"""The default port of each scheme, which browsers omit."""


class Scope(StrEnum):
    """A permission of a key."""

    ASK = "ask"
    READ = "read"
    FORGET = "forget"
    FEEDBACK = "feedback"
    METRICS = "metrics"
    DOCUMENTS = "documents"
    WRITE = "write"


_LATER_FIELDS = ("groups", "person_groups", "person_secret", "created_by")
"""Fields that earlier versions do not know."""
OPERATOR_SCOPES = frozenset({Scope.METRICS, Scope.DOCUMENTS, Scope.WRITE})
"""Scopes that only secret keys can have, if requested."""
DEFAULT_SCOPES = frozenset(Scope) - OPERATOR_SCOPES
log = structlog.get_logger("gateway")

KEYS_MADE = "keys-made"
EXPLANATION = """\
A key of the HTTP API was created. While this file exists, no server with this data folder answers
without a key, even if Redis has lost its keys. Remove it only if keys are no longer required.
"""
MINUTE_SECONDS = 60
PUBLIC_PER_MINUTE = 600
"""The default limit of a public key, in requests per minute. It is limited because everybody can
read such a key.
"""


class Key(BaseModel, frozen=True, extra="forbid"):
    """A stored key. Its quotas are counted across all gateway processes; None means no limit.

    A key with an unknown field is rejected, because a newer release may use the field to restrict
    it.
    """

    id: str = Field(pattern=r"^[0-9a-f]{12}$")
    kind: Literal["secret", "public"]
    digest: str = Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the token", repr=False)
    tenant: str = Field(pattern=NAME)
    assistants: tuple[str, ...] = Field(
        (), description="assistants of the tenant that the key can use; empty: all"
    )
    scopes: frozenset[Scope] = DEFAULT_SCOPES
    origins: tuple[str, ...] = Field((), description="allowed origins of a public key")
    note: str = Field("", max_length=200, description="note about the purpose of the key")
    created_by: str = Field(
        "", max_length=200, description="person who created the key in the console"
    )
    requests_per_minute: int | None = Field(None, ge=1)
    questions_per_day: int | None = Field(None, ge=1)
    visitor_questions_per_day: int | None = Field(
        None, ge=1, description="limit of each visitor with a public key"
    )
    groups: tuple[str, ...] = Field((), description="groups of all users of this key")
    person_groups: tuple[str, ...] = Field(
        (), description="groups that signed person tokens may contain"
    )
    person_secret: str = Field("", repr=False, description="secret that signs person tokens")
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
        if self.kind == "public" and (scopes := sorted(self.scopes & OPERATOR_SCOPES)):
            raise ValueError(f"a public key must not have the scope {scopes[0].value}")
        if self.kind == "secret" and (self.origins or self.visitor_questions_per_day):
            raise ValueError("only public keys have origins and limits for a visitor")
        if self.kind == "public" and self.groups:
            raise ValueError("a public key must not have groups, because everybody can read it")
        return self

    def encode(self) -> str:
        """Return the key as JSON; empty fields that earlier versions do not know are omitted."""
        unused = {name for name in _LATER_FIELDS if not getattr(self, name)}
        return self.model_dump_json(exclude=unused)

    def opens(self, token: str, *, now: float) -> bool:
        """Return whether a token belongs to this key and the key is valid."""
        return hmac.compare_digest(digest_of(token), self.digest) and self.is_good(now=now)

    def is_good(self, *, now: float) -> bool:
        """Return whether the key is neither revoked nor expired."""
        expired = self.expires_at is not None and now >= self.expires_at
        return not expired and self.revoked_at is None


class KeyHistory:
    """Records outside of Redis that a key was created, in case Redis loses its keys."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def has_keys(self) -> bool:
        """Whether a key was ever created for this data folder."""
        return (self._folder / KEYS_MADE).exists()

    def note(self) -> None:
        """Record that a key was created; if the file cannot be written, this is logged."""
        if self.has_keys:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            mark = os.open(self._folder / KEYS_MADE, os.O_WRONLY | os.O_CREAT, 0o600)
            with os.fdopen(mark, "w", encoding="utf-8") as file:
                file.write(EXPLANATION)
        except OSError as error:
            log.warning("key_history_not_writable", hint="set REQUIRE_KEYS=true", error=str(error))


class StoredKeys:
    """The keys in Redis; `history` records outside of Redis that keys exist."""

    def __init__(self, client: "Redis", history: KeyHistory | None = None) -> None:
        self._keys = RedisApiKeys(client)
        self._history = history
        self._has_keys = False
        self._noted: dict[str, float] = {}

    async def get(self, key_id: str) -> Key | None:
        """Return a key, or None if it does not exist or this release cannot read it."""
        stored = await self._keys.get(key_id)
        return None if stored is None else _read_key(stored)

    async def all(self) -> Sequence[Key]:
        """Return all readable keys, including revoked ones, oldest first."""
        keys = map(_read_key, await self._keys.all())
        return sorted((key for key in keys if key is not None), key=lambda key: key.created_at)

    async def put(self, key: Key) -> None:
        """Store a key; it replaces the key with the same id."""
        await self._keys.put(key.id, key.encode())
        self._note()

    async def any(self) -> bool:
        """Return whether a key was ever created."""
        if not self._has_keys and await self._keys.any():
            self._note()
        if not self._has_keys and self._history is not None:
            self._has_keys = self._history.has_keys
        return self._has_keys

    async def note_use(self, key: Key) -> None:
        """Record that a key is being used."""
        now = time.time()
        if now - self._noted.get(key.id, 0.0) >= MINUTE_SECONDS:
            self._noted[key.id] = now
            try:
                await self._keys.note_use(key.id, now)
            except MemoryUnavailableError as error:
                # A Redis user of an earlier release may not write it; the request is answered.
                log.warning("key_use_not_noted", error=str(error))

    async def uses(self) -> Mapping[str, float]:
        """Return the time at which each key was last used (Unix seconds), by key id."""
        return await self._keys.uses()

    def _note(self) -> None:
        """Record, here and in the data folder, that keys exist, in case Redis loses them."""
        self._has_keys = True
        if self._history is not None:
            self._history.note()

    async def link_secret(self) -> bytes:
        """Return the secret that is used by all HTTP processes on this Redis to sign links."""
        return await self._keys.link_secret(secrets.token_bytes(32))

    async def handover_secret(self) -> bytes:
        """Return the secret that is used by all processes on this Redis to sign hand-over
        addresses.
        """
        return await self._keys.handover_secret(secrets.token_bytes(32))


def make_key(kind: Literal["secret", "public"], **fields: object) -> tuple[Key, str]:
    """Return a new key and its token, which cannot be retrieved later; raises `ValueError`."""
    id_ = secrets.token_hex(6)
    token = f"refdesk_{kind}_{id_}_{secrets.token_urlsafe(32)}"
    if fields.get("person_groups"):
        fields = {**fields, "person_secret": secrets.token_urlsafe(48)}
    made = {"id": id_, "kind": kind, "digest": digest_of(token), "created_at": time.time()}
    return Key.model_validate({**fields, **made}), token


def id_of(token: str) -> str | None:
    """Return the id in a token, or None for an invalid token."""
    match = _TOKEN.fullmatch(token)
    return match[1] if match else None


def origin_in(text: str) -> str | None:
    """Return the origin that a browser sends for this URL, or None if it has none."""
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


def _read_key(stored: bytes) -> Key | None:
    try:
        return Key.model_validate_json(stored)
    except ValidationError as error:
        # The values of the key are not logged.
        problems = [f"{problem['loc']}: {problem['type']}" for problem in error.errors()]
        log.warning("key_not_readable", problems=problems)
        return None
