"""Authenticates people with OpenID Connect: the authorization code flow with PKCE."""

import hashlib
import hmac
import json
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from gateway.console.access import SignedInIdentity
from gateway.errors import GatewayError
from gateway.signing_keys import (
    Fetch,
    ProviderUnavailableError,
    SigningKeys,
    TokenError,
    check_address,
    fetch_json,
    read_token,
)

_FRESH_SECONDS = 3600.0
_MOST_GROUPS = 500
_LONGEST_NAME = 200
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")


@dataclass(frozen=True, slots=True)
class LoginAttempt:
    """The state of a sign-in, stored in the browser while the person is at the provider."""

    state: str
    nonce: str
    verifier: str
    """The PKCE code verifier (RFC 7636)."""
    target: str
    """The console page to open after the sign-in."""

    @classmethod
    def make(cls, target: str) -> "LoginAttempt":
        """Return a new attempt."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        return cls(state, nonce, verifier, target)

    def encode(self) -> str:
        """Return the attempt as a cookie value."""
        return urlsafe_b64encode(json.dumps(asdict(self)).encode()).decode()

    @classmethod
    def decode(cls, value: str) -> "LoginAttempt | None":
        """Return the attempt in a cookie value; None if it contains none."""
        try:
            fields = json.loads(urlsafe_b64decode(value))
            return cls(**{name: str(fields[name]) for name in cls.__slots__})
        except (ValueError, TypeError, KeyError, RecursionError):
            return None


class SignInError(GatewayError):
    """The provider did not authenticate the person; the message states why."""


@dataclass(frozen=True, slots=True)
class OidcClient:
    """The registration of this desk with its provider. Without a secret it is a public client.

    `names` are the names of identities to which settings assign a role; all other names of a person
    are dropped.
    """

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    return_address: str
    scopes: tuple[str, ...] = ("openid", "email", "profile")
    groups_claim: str = "groups"
    names: frozenset[str] = frozenset()


class OidcProvider:
    """Authenticates people; the metadata of the provider is reloaded after an hour."""

    def __init__(
        self,
        client: OidcClient,
        fetch: Fetch = fetch_json,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._fetch = fetch
        self._clock = clock
        self._metadata: dict[str, Any] = {}
        self._read_at = float("-inf")
        self._keys = SigningKeys(self._find_keys_address, fetch, clock)

    async def find_address(self, attempt: LoginAttempt, *, is_fresh: bool = False) -> str:
        """Return the URL of the provider's sign-in page; `is_fresh` requests a new
        authentication.
        """
        address = (await self._discover())["authorization_endpoint"]
        challenge = hashlib.sha256(attempt.verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self._client.client_id,
            "redirect_uri": self._client.return_address,
            "scope": " ".join(self._client.scopes),
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": urlsafe_b64encode(challenge).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            **({"prompt": "login", "max_age": "0"} if is_fresh else {}),
        }
        return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"

    async def identify(self, code: str, attempt: LoginAttempt) -> SignedInIdentity:
        """Return the identity of a person who returned with a code; raises `SignInError`."""
        token = await self._exchange(code, attempt)
        try:
            claims = await read_token(
                token,
                self._keys,
                issuer=self._client.issuer,
                audience=self._client.client_id,
                now=self._clock(),
            )
        except TokenError as error:
            raise SignInError(str(error)) from error
        self._check_party(claims)
        nonce = claims.get("nonce")
        if not isinstance(nonce, str) or not hmac.compare_digest(
            nonce.encode(), attempt.nonce.encode()
        ):
            raise SignInError("the token belongs to another sign-in")
        return self._read_identity(claims)

    async def _exchange(self, code: str, attempt: LoginAttempt) -> str:
        """Exchange a code for an ID token."""
        metadata, client = await self._discover(), self._client
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": client.return_address,
            "client_id": client.client_id,
            "code_verifier": attempt.verifier,
        }
        credentials = None
        # Without a statement of the provider, a secret goes into the header (RFC 8414).
        methods = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if client.client_secret and "client_secret_basic" in methods:
            credentials = (quote(client.client_id, safe=""), quote(client.client_secret, safe=""))
        elif client.client_secret:
            form["client_secret"] = client.client_secret
        status, reply = await self._fetch(metadata["token_endpoint"], form, credentials)
        token = reply.get("id_token")
        if status != 200 or not isinstance(token, str):
            raise SignInError(f"the provider did not accept the code: status {status}")
        return token

    def _check_party(self, claims: Mapping[str, Any]) -> None:
        """Reject a token that was issued to another client, or to several without `azp`."""
        party, audience = claims.get("azp"), claims.get("aud")
        is_shared = isinstance(audience, list) and len(audience) > 1
        if (party is not None or is_shared) and party != self._client.client_id:
            raise SignInError("the token was issued to another client")

    def _read_identity(self, claims: Mapping[str, Any]) -> SignedInIdentity:
        subject = claims.get("sub")
        if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_NAME:
            raise SignInError("the token does not identify a person")
        email, names = claims.get("email"), [f"subject:{subject}"]
        # An unverified e-mail address must not give the roles of its owner.
        is_verified = isinstance(email, str) and claims.get("email_verified") is True
        if is_verified:
            names.append(str(email).casefold())
        groups = claims.get(self._client.groups_claim)
        listed = groups if isinstance(groups, list) else [groups]
        names += [f"group:{group}" for group in listed[:_MOST_GROUPS] if isinstance(group, str)]
        shown = email if is_verified else claims.get("preferred_username") or subject
        return SignedInIdentity(
            subject=f"{self._client.issuer} {subject}",
            shown=str(shown)[:_LONGEST_NAME],
            names=tuple(name for name in names if name in self._client.names),
            signed_in_at=self._read_time(claims.get("auth_time")),
        )

    def _read_time(self, stated: object) -> float:
        """Return when a person authenticated, as stated by the provider, or the current time."""
        is_number = isinstance(stated, int | float) and not isinstance(stated, bool)
        return min(float(stated), self._clock()) if is_number else self._clock()  # type: ignore[arg-type]

    async def _find_keys_address(self) -> str:
        return str((await self._discover())["jwks_uri"])

    async def _discover(self) -> dict[str, Any]:
        """Return the metadata of the provider."""
        if self._metadata and self._clock() - self._read_at < _FRESH_SECONDS:
            return self._metadata
        base = self._client.issuer.rstrip("/")
        try:
            status, reply = await self._fetch(f"{base}/.well-known/openid-configuration")
            if status != 200 or reply.get("issuer") != self._client.issuer:
                raise ProviderUnavailableError(
                    f"expected the issuer {self._client.issuer}, found "
                    f"{str(reply.get('issuer'))[:_LONGEST_NAME]!r} (status {status})"
                )
            for name in _ENDPOINTS:
                check_address(str(reply.get(name, "")))
        except ProviderUnavailableError:
            if not self._metadata:
                raise
            return self._metadata
        except ValueError as error:
            raise ProviderUnavailableError(f"an address of the provider: {error}") from error
        self._metadata, self._read_at = reply, self._clock()
        return reply
