"""Settings of the console: who may sign in, and what they may do."""

from typing import Literal

from pydantic import BaseModel, Field, SecretStr, field_validator

from config.retention_settings import WHOSE

RoleName = Literal["viewer", "editor", "owner"]
EVERYWHERE = "*"


class ConsoleSettings(BaseModel):
    """The console; a part of `Settings`."""

    console_roles: dict[str, dict[RoleName, tuple[str, ...]]] = Field(
        {},
        description="who may do what in the console, by `*` (every assistant), `tenant` or "
        "`tenant/assistant`: a JSON object of objects with lists of people for `owner`, `editor`, "
        "`viewer`. A person is a verified e-mail address, `group:NAME` or `subject:ID`",
    )
    console_idle_minutes: float = Field(
        60.0, ge=1, description="a session of the console ends after this time without use"
    )
    console_session_hours: float = Field(
        12.0, gt=0, le=168, description="maximum duration of a session of the console"
    )
    oidc_issuer: str | None = Field(
        None,
        description="address of the OpenID Connect provider with which people sign in to the "
        "console; needs `OIDC_CLIENT_ID` and `PUBLIC_URL`. Unset: people sign in only with "
        "links from `refdesk console`",
    )
    oidc_client_id: str = Field(
        "", description="client id of this installation at the OpenID Connect provider"
    )
    oidc_client_secret: SecretStr | None = Field(
        None,
        description="client secret of this installation at the OpenID Connect provider; "
        "unset: a public client",
    )
    oidc_scopes: tuple[str, ...] = Field(
        ("openid", "email", "profile"),
        description="scopes that are requested from the OpenID Connect provider (a JSON list)",
    )
    oidc_groups_claim: str = Field(
        "groups", description="the claim of the ID token that lists the groups of a person"
    )

    @field_validator("oidc_issuer", mode="before")
    @classmethod
    def _empty_issuer_is_unset(cls, value: object) -> object:
        return None if value == "" else value

    @field_validator("console_roles")
    @classmethod
    def _are_assistants(
        cls, value: dict[str, dict[RoleName, tuple[str, ...]]]
    ) -> dict[str, dict[RoleName, tuple[str, ...]]]:
        for name in value:
            if name != EVERYWHERE and WHOSE.fullmatch(name) is None:
                raise ValueError(f"expected *, a tenant, or tenant/assistant, found {name!r}")
        return value

    def console_people_of(self, tenant: str, assistant: str) -> list[tuple[str, RoleName]]:
        """Return who has which role for an assistant; e-mail addresses in lower case."""
        found: list[tuple[str, RoleName]] = []
        for whose in (EVERYWHERE, tenant, f"{tenant}/{assistant}"):
            for role, people in self.console_roles.get(whose, {}).items():
                found += [(_fold(person), role) for person in people]
        return found


def _fold(person: str) -> str:
    is_other = person.startswith(("group:", "subject:"))
    return person if is_other else person.casefold()
