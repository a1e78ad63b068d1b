"""Reads the tokens with which a website or a program states the groups of the person who asks.

A token is a JSON Web Token (RFC 7519). It is signed either with HMAC-SHA-256 and the secret that
its key got when it was created, or by an identity provider configured in the settings. It contains
its expiry (`exp`), the key or the provider's audience (`aud`), and the `groups` of the person.
Groups that the key may not state have no effect. `sub`, if present, identifies the person.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from envelope.question import parse_groups
from gateway.api_keys import Key
from gateway.errors import GatewayError
from gateway.signing_keys import ALGORITHMS, SigningKeys, TokenError, read_token

LONGEST_TOKEN = 8_000
MOST_SECONDS = 24 * 3600
"""How far in the future a token may expire."""
LEEWAY_SECONDS = 60
LONGEST_PERSON = 128
"""Maximum number of characters in the id of a person."""
_ALGORITHM = "HS256"
_MOST_STATED = 1_000


class PersonTokenError(GatewayError):
    """The token is invalid; the message states the expected and the actual value."""


@dataclass(frozen=True, slots=True)
class StatedPerson:
    """The content of a token: groups (limited to those of its key), expiry in Unix seconds, and the
    person's id.

    The id is empty if the token does not identify anybody. `issuer` is the identity provider that
    issued the id; it is empty for a token signed by a website.
    """

    groups: tuple[str, ...] = ()
    expires_at: float | None = None
    id: str = ""
    issuer: str = ""


@dataclass(frozen=True, slots=True)
class TrustedIssuer:
    """An identity provider whose tokens identify the people of one tenant."""

    issuer: str
    audience: str
    tenant: str
    keys: SigningKeys
    groups_claim: str = "groups"


class PersonTokens:
    """Reads both kinds of tokens. The algorithm determines the kind, and each kind has its own
    keys.
    """

    def __init__(self, issuers: Sequence[TrustedIssuer] = ()) -> None:
        self._issuers = {(issuer.tenant, issuer.issuer): issuer for issuer in issuers}

    async def read(self, token: str, key: Key) -> StatedPerson:
        """Return the content of a token.

        Raises `PersonTokenError` if it is not valid for this key, and `ProviderUnavailableError` if
        the keys of its provider are unavailable.
        """
        issuer = self._find_issuer(token, key) if self._issuers else None
        if issuer is None:
            return read_person_token(token, key)
        try:
            claims = await read_token(
                token,
                issuer.keys,
                issuer=issuer.issuer,
                audience=issuer.audience,
                now=time.time(),
            )
        except TokenError as error:
            raise PersonTokenError(f"this person token is not valid: {error}") from error
        # A provider states no groups for a person who is in none.
        groups = claims.get(issuer.groups_claim, [])
        return replace(_state_person(claims, groups, key), issuer=issuer.issuer)

    def _find_issuer(self, token: str, key: Key) -> TrustedIssuer | None:
        """Return the provider named in a token, before the token is verified."""
        import jwt

        if len(token) > LONGEST_TOKEN:
            return None
        try:
            algorithm = jwt.get_unverified_header(token).get("alg")
            claims = jwt.decode(token, options={"verify_signature": False})
        except (jwt.PyJWTError, RecursionError, OverflowError):
            return None
        named = claims.get("iss")
        if algorithm not in ALGORITHMS or not isinstance(named, str):
            return None
        return self._issuers.get((key.tenant, named))


def read_person_token(token: str, key: Key) -> StatedPerson:
    """Return the content of a token. Raises `PersonTokenError` if it is not valid for this key."""
    import jwt  # only keys with such tokens need it

    if not key.person_secret:
        raise PersonTokenError(
            "this key does not accept person tokens; create one that does "
            "with: refdesk keys create --person-groups"
        )
    if len(token) > LONGEST_TOKEN:
        raise PersonTokenError(f"the token is longer than {LONGEST_TOKEN} characters")
    try:
        claims = jwt.decode(
            token,
            key.person_secret,
            algorithms=[_ALGORITHM],
            audience=key.id,
            leeway=LEEWAY_SECONDS,
            options={"require": ["exp", "aud"]},
        )
    except (jwt.PyJWTError, RecursionError, OverflowError) as error:
        reason = type(error).__name__
        raise PersonTokenError(f"this person token is not valid: {reason}") from error
    return _state_person(claims, claims.get("groups"), key)


def _state_person(claims: Mapping[str, Any], groups: object, key: Key) -> StatedPerson:
    expires_at = _read_end(claims["exp"])
    if expires_at > time.time() + MOST_SECONDS + LEEWAY_SECONDS:
        raise PersonTokenError(f"`exp` must be within the next {MOST_SECONDS // 3600} hours")
    return StatedPerson(_select_groups(groups, key), expires_at, _read_id(claims.get("sub")))


def _read_end(stated: object) -> float:
    """Return the expiry. The library also accepts strings, and numbers of any length."""
    try:
        if isinstance(stated, int | float) and not isinstance(stated, bool):
            return float(stated)
    except OverflowError:
        return math.inf
    raise PersonTokenError(f"expected `exp`, a number, found {type(stated).__name__}")


def _select_groups(stated: object, key: Key) -> tuple[str, ...]:
    if not isinstance(stated, list) or len(stated) > _MOST_STATED:
        raise PersonTokenError(f"expected `groups`, a list of at most {_MOST_STATED} names")
    own = frozenset(key.person_groups)
    return parse_groups(group for group in stated if isinstance(group, str) and group in own)


def _read_id(stated: object) -> str:
    if stated is None:
        return ""
    if not isinstance(stated, str) or not 0 < len(stated) <= LONGEST_PERSON:
        raise PersonTokenError(f"expected `sub`, a string of 1 to {LONGEST_PERSON} characters")
    return stated
