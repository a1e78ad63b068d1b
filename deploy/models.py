"""Makes the models that settings name."""

from importlib import import_module
from typing import TYPE_CHECKING

from config.prompts import PromptFiles
from config.settings import Settings
from llm.port import Task
from llm.prompts import OWN_PROMPTS
from llm.registry import Registry, Vendor

if TYPE_CHECKING:
    from typing import Any

    from pydantic import SecretStr

TASKS = ("translate", "essence", "scope", "respond", "judge", "clarify", "describe")


def make_registry(settings: Settings) -> Registry:
    """Return the registry of this process's models; vendors' libraries load when first used."""
    return Registry(
        prompts=load_prompts(),
        openai=Vendor(api_key=_secret(settings.openai_api_key), base_url=settings.openai_base_url),
        google=Vendor(api_key=_secret(settings.google_api_key)),
        timeout_seconds=settings.model_timeout_seconds,
    )


def load_prompts() -> PromptFiles:
    """Return every prompt, checked against its task; raises `PromptError`."""
    tasks: list[Task[Any, Any]] = [import_module(f"llm.tasks.{name}").TASK for name in TASKS]
    return PromptFiles({**{task.name: task.inputs for task in tasks}, **OWN_PROMPTS})


def _secret(value: "SecretStr | None") -> str | None:
    return None if value is None else value.get_secret_value()
