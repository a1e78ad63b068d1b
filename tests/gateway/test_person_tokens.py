"""Groups of persons in signed tokens, and tokens that somebody forged."""

import base64
import hmac
import json
import math
import time
from dataclasses import replace
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateway.api_keys import Key, make_key
from gateway.chat.people import PersonDigests
from gateway.http.access import Principal, list_people
from gateway.person_tokens import (
    LEEWAY_SECONDS,
    LONGEST_TOKEN,
    MOST_SECONDS,
    PersonTokenError,
    PersonTokens,
    TrustedIssuer,
    read_person_token,
)
from gateway.signing_keys import LEAST_SECONDS, SigningKeys
from tests.support.identity_provider import (
    CLIENT_ID,
    ISSUER,
    KEYS_ADDRESS,
    FakeIdentityProvider,
    make_rsa_key,
    publish,
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

    with pytest.raises(PersonTokenError, match="does not accept person tokens"):
        read_person_token(unsigned, key)


def test_the_secret_of_a_key_is_shown_by_no_representation() -> None:
    assert KEY.person_secret not in repr(KEY)


def tokens_of(provider: FakeIdentityProvider, tenant: str = "acme") -> PersonTokens:
    async def find_address() -> str:
        return KEYS_ADDRESS

    keys = SigningKeys(find_address, provider, provider.clock)
    return PersonTokens([TrustedIssuer(ISSUER, CLIENT_ID, tenant, keys, "roles")])


@pytest.fixture
def provider() -> FakeIdentityProvider:
    return FakeIdentityProvider(
        now=time.time(), claims={"roles": ["hr", "board"], "groups": ["sales"]}
    )


async def test_a_token_of_the_provider_states_groups_that_the_key_permits(
    provider: FakeIdentityProvider,
) -> None:
    tokens = tokens_of(provider)

    person = await tokens.read(provider.token(), KEY)

    assert (person.groups, person.id) == (("hr",), "ada")
    assert (await tokens.read(provider.token(roles=None), KEY)).groups == ()
    assert (await tokens.read(sign(), KEY)).groups == ("hr",)


async def test_the_same_id_of_two_providers_is_two_people(provider: FakeIdentityProvider) -> None:
    digests, callers = PersonDigests(b"secret"), []
    for token in (provider.token(), sign(sub="ada")):
        person = await tokens_of(provider).read(token, KEY)
        caller = Principal(KEY.tenant, frozenset(), key=KEY, digests=digests)
        callers.append(replace(caller, person_id=person.id, person_issuer=person.issuer))
    callers.append(replace(callers[0], person_issuer="https://other.example"))

    people = [list_people(caller, None, "user_id") for caller in callers]

    assert [caller.person_id for caller in callers] == ["ada"] * 3
    assert len(set(people)) == 3
    other_secret = replace(callers[0], digests=PersonDigests(b"other"))
    assert list_people(other_secret, None, "user_id") != people[0]


async def test_a_token_of_the_provider_holds_for_its_tenant_alone(
    provider: FakeIdentityProvider,
) -> None:
    for tokens in (tokens_of(provider, "other"), PersonTokens()):
        with pytest.raises(PersonTokenError):
            await tokens.read(provider.token(), KEY)
    assert not provider.fetched


def forge_for_provider(provider: FakeIdentityProvider) -> dict[str, str]:
    claims = jwt.decode(provider.token(), options={"verify_signature": False})
    public = make_rsa_key("first").public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    body = f"{encode_part({'alg': 'HS256', 'kid': 'first'})}.{encode_part(claims)}"
    digest = hmac.digest(pem, body.encode(), "sha256")
    confused = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    return {
        "the public key as a secret": f"{body}.{confused}",
        "no signature": f"{encode_part({'alg': 'none'})}.{encode_part(claims)}.",
        "the secret of the key, with claims of the provider": sign(**{**claims, "aud": CLIENT_ID}),
        "a key of the attacker": jwt.encode(
            claims, make_rsa_key("attacker"), "RS256", {"kid": "first"}
        ),
        "of another provider": provider.token(iss="https://evil.com"),
        "for another audience": provider.token(aud=KEY.id),
        "ended": provider.token(exp=provider.now - LEEWAY_SECONDS - 1),
        "too long": provider.token(exp=provider.now + MOST_SECONDS + 2 * LEEWAY_SECONDS),
        "groups in one text": provider.token(roles="hr"),
        "a person without end": provider.token(sub="x" * 129),
    }


@pytest.mark.parametrize("name", list(forge_for_provider(FakeIdentityProvider(now=time.time()))))
async def test_a_forged_token_of_the_provider_states_nothing(
    name: str, provider: FakeIdentityProvider
) -> None:
    with pytest.raises(PersonTokenError):
        await tokens_of(provider).read(forge_for_provider(provider)[name], KEY)


async def test_a_provider_may_change_its_keys(provider: FakeIdentityProvider) -> None:
    tokens = tokens_of(provider)
    await tokens.read(provider.token(), KEY)
    provider.signing, provider.keys = "second", [publish("second")]
    provider.now += LEAST_SECONDS

    assert (await tokens.read(provider.token(), KEY)).id == "ada"
