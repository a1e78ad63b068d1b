"""Groups of persons in signed tokens, and tokens that somebody forged."""

import base64
import json
import math
import time
from typing import Any

import jwt
import pytest

from gateway.api_keys import Key, make_key
from gateway.person_tokens import (
    LEEWAY_SECONDS,
    LONGEST_TOKEN,
    MOST_SECONDS,
    PersonTokenError,
    read_person_token,
)

KEY = make_key("secret", tenant="acme", person_groups=("hr", "sales"))[0]
OTHER = make_key("secret", tenant="acme", person_groups=("hr", "sales"))[0]
CLAIMS = {"aud": KEY.id, "exp": time.time() + 3600, "groups": ["hr"]}


def sign(key: Key = KEY, algorithm: str = "HS256", **claims: Any) -> str:
    stated = {name: value for name, value in {**CLAIMS, **claims}.items() if value is not None}
    return jwt.encode(stated, key.person_secret, algorithm=algorithm)


def encode_part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_a_token_states_groups_of_its_key_until_its_end() -> None:
    person = read_person_token(sign(groups=["sales", "hr", "board"]), KEY)

    assert person.groups == ("hr", "sales")
    assert person.expires_at == CLAIMS["exp"]


def test_groups_that_the_key_may_not_state_have_no_effect() -> None:
    assert read_person_token(sign(groups=["board", "HR", 7, None, {}]), KEY).groups == ()


def forge() -> dict[str, str]:
    header, payload, signature = sign().split(".")
    claims = {**CLAIMS, "groups": ["hr", "sales"]}
    nested = base64.urlsafe_b64encode(b"[" * 5000).rstrip(b"=").decode()
    return {
        "of another key": sign(OTHER),
        "for another key": sign(aud=OTHER.id),
        "for two keys of which none is this": sign(aud=[OTHER.id, "x"]),
        "without a key": sign(aud=None),
        "without an end": sign(exp=None),
        "ended": sign(exp=time.time() - LEEWAY_SECONDS - 1),
        "too long": sign(exp=time.time() + MOST_SECONDS + 2 * LEEWAY_SECONDS),
        "not yet": sign(nbf=time.time() + 600),
        "end in words": sign(exp="tomorrow"),
        "end as a text": sign(exp=str(int(time.time()) + 600)),
        "end of 4,000 digits": sign(exp=10**4000),
        "endless": sign(exp=math.inf),
        "begin of 4,000 digits": sign(nbf=10**4000),
        "begin without end": sign(nbf=math.inf),
        "made without end": sign(iat=math.inf),
        "groups in words": sign(groups="hr"),
        "without groups": sign(groups=None),
        "other claims": f"{header}.{encode_part(claims)}.{signature}",
        "no algorithm": f"{encode_part({'alg': 'none'})}.{payload}.",
        "no signature": f"{header}.{payload}.",
        "another algorithm": sign(algorithm="HS512"),
        "public key": f"{encode_part({'alg': 'RS256'})}.{payload}.{signature}",
        "nested header": f"{nested}.{payload}.{signature}",
        "nested claims": f"{header}.{nested}.{signature}",
        "no token": "hr",
        "empty": "",
        "huge": "x" * (LONGEST_TOKEN + 1),
    }


@pytest.mark.parametrize("kind", sorted(forge()))
def test_a_forged_token_states_nothing(kind: str) -> None:
    with pytest.raises(PersonTokenError) as caught:
        read_person_token(forge()[kind], KEY)

    assert len(str(caught.value)) < 200


def test_a_key_without_groups_of_persons_accepts_no_token() -> None:
    key = make_key("secret", tenant="acme")[0]
    unsigned = jwt.encode({**CLAIMS, "aud": key.id}, "x" * 32, algorithm="HS256")

    with pytest.raises(PersonTokenError, match="accepts no token of a person"):
        read_person_token(unsigned, key)


def test_the_secret_of_a_key_is_shown_by_no_representation() -> None:
    assert KEY.person_secret not in repr(KEY)
