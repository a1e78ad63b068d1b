"""Settings of the vendors of models: keys and addresses.

Every vendor of `llm.vendors.catalogue` has two settings, its key and its base URL.
"""

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, SecretStr, create_model, field_validator

from llm.vendors.catalogue import VENDORS, Vendor, VendorAccess


class CompatibleServer(BaseModel, frozen=True, extra="forbid"):
    """A server that is compatible with OpenAI's, under a name that the operator chooses."""

    base_url: str = Field(min_length=1)
    api_key: SecretStr | None = None


class _VendorMethods(BaseModel):
    """The checks of the settings of vendors, and the values derived from them."""

    if TYPE_CHECKING:
        openai_json_object: bool
        compatible_servers: dict[str, CompatibleServer]

    @field_validator("compatible_servers", check_fields=False)
    @classmethod
    def _check_names(cls, value: dict[str, CompatibleServer]) -> dict[str, CompatibleServer]:
        # A server of one's own that is known by name may be named with another address.
        known = {one.name for one in VENDORS if not one.is_local} | {"offline", "scripted"}
        wrong = sorted(name for name in value if name in known or not name.isidentifier())
        if wrong:
            raise ValueError(f"expected names other than {sorted(known)}, found {wrong}")
        return value

    @field_validator(
        *(f"{vendor.name}_base_url" for vendor in VENDORS), mode="before", check_fields=False
    )
    @classmethod
    def _treat_empty_address_as_unset(cls, value: object) -> object:
        return None if value == "" else value

    def vendor_access(self) -> dict[str, VendorAccess]:
        """Return the key and the address of every vendor and named server."""
        access = {
            vendor.name: VendorAccess(
                api_key=_reveal(getattr(self, f"{vendor.name}_api_key")),
                base_url=getattr(self, f"{vendor.name}_base_url"),
                json_object=vendor.name == "openai" and self.openai_json_object,
            )
            for vendor in VENDORS
        }
        for name, server in self.compatible_servers.items():
            access[name] = VendorAccess(_reveal(server.api_key), server.base_url)
        return access

    def secrets_of_servers(self) -> set[str]:
        """Return the keys of the named servers."""
        keys = (_reveal(server.api_key) for server in self.compatible_servers.values())
        return {key for key in keys if key}


def _make_fields(vendors: tuple[Vendor, ...]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for vendor in vendors:
        address = f"instead of {vendor.base_url}" if vendor.base_url else "of your deployment"
        fields[f"{vendor.name}_api_key"] = (
            SecretStr | None,
            Field(None, description=f"for models `@{vendor.name}`"),
        )
        fields[f"{vendor.name}_base_url"] = (
            str | None,
            Field(None, description=f"{address}: of a compatible server or a proxy"),
        )
    fields["openai_json_object"] = (
        bool,
        Field(
            False,
            description="for a server at `OPENAI_BASE_URL` that accepts no JSON schemas: the "
            "prompt tells them from the first request; otherwise this is found out",
        ),
    )
    fields["compatible_servers"] = (
        dict[str, CompatibleServer],
        Field(
            {},
            description="further servers that are compatible with OpenAI's, for models `@NAME`: "
            '`{"NAME": {"base_url": "...", "api_key": "..."}}` (JSON)',
        ),
    )
    return fields


def _reveal(value: SecretStr | None) -> str | None:
    return None if value is None else value.get_secret_value()


if TYPE_CHECKING:

    class VendorSettings(_VendorMethods):
        """The keys and addresses of every vendor; a part of `Settings`."""

else:
    VendorSettings = create_model(
        "VendorSettings", __base__=_VendorMethods, __module__=__name__, **_make_fields(VENDORS)
    )
