"""Renders prompts of a folder over those of the product, and keeps each by its hash."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from config.prompts import PromptFiles
from deploy.assembly.models import TASKS, load_prompts
from deploy.errors import CommandError
from llm.port import Task
from llm.prompts import Prompts, Rendered, prompt_inputs

MOST_PROMPTS = 50_000


@dataclass(frozen=True, slots=True)
class KeptPrompt:
    """A prompt as it was sent, under the hash that the journal names."""

    hash: str
    task: str
    system: str
    user: str


class RecordingPrompts:
    """Renders as another `Prompts` does, and keeps what it rendered; the oldest go first."""

    def __init__(self, prompts: Prompts) -> None:
        self._prompts = prompts
        self._kept: dict[str, KeptPrompt] = {}

    def __iter__(self) -> Iterator[KeptPrompt]:
        return iter(self._kept.values())

    def render(self, task_name: str, inputs: BaseModel) -> Rendered:
        """Return the prompt of a task, which is kept."""
        rendered = self._prompts.render(task_name, inputs)
        self._kept[rendered.hash] = KeptPrompt(
            rendered.hash, task_name, rendered.system, rendered.user
        )
        if len(self._kept) > MOST_PROMPTS:
            del self._kept[next(iter(self._kept))]
        return rendered


class OverridingPrompts:
    """Renders prompts of some tasks from a folder, and the others as the product does."""

    def __init__(self, own: Mapping[str, Prompts], others: Prompts) -> None:
        self._own = dict(own)
        self._others = others

    def render(self, task_name: str, inputs: BaseModel) -> Rendered:
        """Return the prompt of a task."""
        return self._own.get(task_name, self._others).render(task_name, inputs)


def load_overriding_prompts(folder: Path | None) -> Prompts:
    """Return the product's prompts, replaced by those that a folder holds.

    Raises `CommandError` for a folder without prompts or with a file that is no task's prompt, and
    `PromptError` for a prompt that cannot be used.
    """
    if folder is None:
        return load_prompts()
    tasks: list[Task[Any, Any]] = [import_module(f"llm.tasks.{name}").TASK for name in TASKS]
    variables = prompt_inputs(tasks)
    names = sorted(path.stem for path in folder.glob("*.txt")) if folder.is_dir() else []
    unknown = [name for name in names if name not in variables]
    if not names or unknown:
        found = ", ".join(f"{name}.txt" for name in unknown) or "no file .txt"
        expected = ", ".join(f"{name}.txt" for name in sorted(variables))
        raise CommandError(f"expected some of {expected} in {str(folder)!r}, found {found}")
    files = PromptFiles({name: variables[name] for name in names}, folder=folder)
    return OverridingPrompts(dict.fromkeys(names, files), load_prompts())
