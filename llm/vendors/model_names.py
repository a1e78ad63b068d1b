"""Reads the models of a setting such as `gpt-5-mini@openai,offline`."""

from collections.abc import Mapping
from dataclasses import dataclass

from llm.errors import UnknownProvider
from llm.vendors.catalogue import Vendor, vendors_by_name

LOCAL_MODELS = frozenset({"offline", "scripted"})


@dataclass(frozen=True, slots=True)
class ModelName:
    """One model of a setting; `offline` and `scripted` are their own providers."""

    model: str
    provider: str

    @property
    def is_local(self) -> bool:
        """Whether the model answers without a vendor."""
        return self.model == self.provider

    def __str__(self) -> str:
        return self.model if self.is_local else f"{self.model}@{self.provider}"


def parse_models(setting: str, vendors: Mapping[str, Vendor] | None = None) -> list[ModelName]:
    """Return the models of a setting, in order; raises `UnknownProvider`.

    Without `vendors`, those of the table are known.
    """
    known = vendors_by_name() if vendors is None else vendors
    names = [_parse_one(part.strip(), known) for part in setting.split(",")]
    doubled = {str(name) for name in names if names.count(name) > 1}
    if doubled:
        raise UnknownProvider(f"expected each model once in {setting!r}, found {sorted(doubled)}")
    return names


def _parse_one(part: str, vendors: Mapping[str, Vendor]) -> ModelName:
    if part in LOCAL_MODELS:
        return ModelName(part, part)
    model, at, provider = part.rpartition("@")
    if not at:
        model = part
        provider = next((one.name for one in vendors.values() if one.answers_to(part)), "")
    if not model or provider not in vendors:
        raise UnknownProvider(
            f"expected a model such as 'gpt-5-mini@openai', 'qwen3:8b@ollama' or 'offline', of one "
            f"of {', '.join(sorted(vendors))}, found {part!r}; to add a server that is compatible "
            'with OpenAI\'s, set COMPATIBLE_SERVERS={"NAME": {"base_url": "http://..."}}'
        )
    return ModelName(model, provider)
