"""Makes the models that settings name."""

from typing import TYPE_CHECKING

from config.prompts import load_prompts
from config.settings import Settings
from llm.registry import Registry, Vendor

if TYPE_CHECKING:
    from pydantic import SecretStr


def make_registry(settings: Settings) -> Registry:
    """Return the registry of this process's models; vendors' libraries load when first used."""
    return Registry(
        prompts=load_prompts(),
        openai=Vendor(api_key=_secret(settings.openai_api_key), base_url=settings.openai_base_url),
        google=Vendor(api_key=_secret(settings.google_api_key)),
        timeout_seconds=settings.model_timeout_seconds,
    )


def _secret(value: "SecretStr | None") -> str | None:
    return None if value is None else value.get_secret_value()
