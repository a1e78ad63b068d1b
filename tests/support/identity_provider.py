"""An identity provider in memory, which an attacker may control in parts."""

import hashlib
import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from gateway.signing_keys import ProviderUnavailableError

ISSUER = "https://login.acme.com"
CLIENT_ID = "refdesk"
KEYS_ADDRESS = f"{ISSUER}/keys"


@cache
def make_rsa_key(name: str) -> rsa.RSAPrivateKey:
    """Return a key that is the same for each use of a name."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@cache
def make_ec_key(name: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def publish(name: str, *, curve: bool = False, **more: str) -> dict[str, Any]:
    """Return the public key of a name as a provider publishes it."""
    if curve:
        written = ECAlgorithm.to_jwk(make_ec_key(name).public_key())
    else:
        written = RSAAlgorithm.to_jwk(make_rsa_key(name).public_key())
    return {**json.loads(written), "kid": name, **more}


@dataclass
class FakeIdentityProvider:
    """Answers as a `gateway.signing_keys.Fetch`; a code is the id of who signed in.

    It verifies the secret of an authorization code as RFC 7636 says.
    """

    claims: dict[str, Any] = field(default_factory=dict)
    keys: list[dict[str, Any]] = field(default_factory=lambda: [publish("first")])
    metadata: dict[str, Any] = field(default_factory=dict)
    signing: str = "first"
    now: float = 1_000_000.0
    is_away: bool = False
    fetched: list[str] = field(default_factory=list)
    asked: dict[str, str] = field(default_factory=dict)
    credentials: tuple[str, str] | None = None

    def clock(self) -> float:
        return self.now

    def visit(self, address: str) -> None:
        """Note what a browser asks that is sent to the page of the provider."""
        self.asked = {name: value[0] for name, value in parse_qs(urlsplit(address).query).items()}

    def token(self, **changes: Any) -> str:
        """Return an ID token for who was sent to the page."""
        claims = {
            "iss": ISSUER, "aud": CLIENT_ID, "sub": "ada", "iat": self.now, "exp": self.now + 300,
            "nonce": self.asked.get("nonce", ""), **self.claims, **changes,
        }  # fmt: skip
        kept = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(kept, make_rsa_key(self.signing), "RS256", {"kid": self.signing})

    async def __call__(
        self,
        address: str,
        form: Mapping[str, str] | None = None,
        credentials: tuple[str, str] | None = None,
    ) -> tuple[int, dict[str, Any]]:
        self.fetched.append(address)
        if self.is_away:
            raise ProviderUnavailableError("login.acme.com: ConnectTimeout")
        if address == KEYS_ADDRESS:
            return 200, {"keys": self.keys}
        if form is None:
            return 200, {
                "issuer": ISSUER,
                "authorization_endpoint": f"{ISSUER}/authorize",
                "token_endpoint": f"{ISSUER}/token",
                "jwks_uri": KEYS_ADDRESS,
                **self.metadata,
            }
        self.credentials = credentials
        challenge = hashlib.sha256(form["code_verifier"].encode()).digest()
        expected = urlsafe_b64encode(challenge).rstrip(b"=").decode()
        if expected != self.asked.get("code_challenge") or form["code"] != "code":
            return 400, {"error": "invalid_grant"}
        return 200, {"id_token": self.claims.get("whole") or self.token()}
