"""Reads the tokens by which a website or a program states the groups of the person who asks.

A token is a JSON Web Token (RFC 7519) with HMAC-SHA-256 and the secret that its key got when it was
created. It names the key (`aud`), its end (`exp`) and the `groups` of the person. Groups that the
key may not state have no effect. `sub`, if it is there, is the person.
"""

import math
import time
from dataclasses import dataclass

from envelope.question import parse_groups
from gateway.api_keys import Key
from gateway.errors import GatewayError

LONGEST_TOKEN = 8_000
MOST_SECONDS = 24 * 3600
"""How far in the future a token may end."""
LEEWAY_SECONDS = 60
LONGEST_PERSON = 128
"""The most characters of the id of a person."""
_ALGORITHM = "HS256"
_MOST_STATED = 1_000


class PersonTokenError(GatewayError):
    """A token that states no groups; the message names the expected and the found."""


@dataclass(frozen=True, slots=True)
class StatedPerson:
    """What a token states: groups (those that its key has too), end in Unix seconds, person's id.

    The id is empty if the token names nobody.
    """

    groups: tuple[str, ...] = ()
    expires_at: float | None = None
    id: str = ""


def read_person_token(token: str, key: Key) -> StatedPerson:
    """Return what a token states; raises `PersonTokenError` if it is not valid for this key."""
    import jwt  # only keys with such tokens need it

    if not key.person_secret:
        raise PersonTokenError("this key accepts no token of a person; see: refdesk keys create")
    if len(token) > LONGEST_TOKEN:
        raise PersonTokenError(f"expected a token of at most {LONGEST_TOKEN} characters")
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
        raise PersonTokenError(f"this token of a person is not valid: {reason}") from error
    expires_at = _read_end(claims["exp"])
    if expires_at > time.time() + MOST_SECONDS + LEEWAY_SECONDS:
        raise PersonTokenError(f"expected `exp` within {MOST_SECONDS // 3600} hours, found more")
    groups = _select_groups(claims.get("groups"), key)
    return StatedPerson(groups, expires_at, _read_id(claims.get("sub")))


def _read_end(stated: object) -> float:
    """Return the end; the library also takes text, and a number of any length."""
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
        raise PersonTokenError(f"expected `sub`, a text of 1 to {LONGEST_PERSON} characters")
    return stated
