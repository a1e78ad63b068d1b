"""Loads the built-in prompts, overridden by those in an assistant's own folder."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import BaseModel

from agents.roster import AGENTS
from config.errors import PromptError, SettingsError
from config.prompts import PromptFiles
from config.way_settings import find_own_prompts
from llm.prompts import Prompts, Rendered, prompt_inputs

TASK_OF_ROLE = {spec.role.value: spec.model_task for spec in AGENTS if spec.model_task is not None}
"""The model task of the agent in each role."""


class OverridingPrompts:
    """Renders the prompts of some tasks from a folder, and all others from the built-in ones."""

    def __init__(self, own: Mapping[str, Prompts], others: Prompts) -> None:
        self._own = dict(own)
        self._others = others

    def render(self, task_name: str, inputs: BaseModel) -> Rendered:
        """Return the prompt of a task."""
        return self._own.get(task_name, self._others).render(task_name, inputs)


class ReloadablePrompts:
    """Renders the prompts in one folder, and the prompts of specialists; both can be reloaded.

    Injected prompts override them until the process ends, even if the files are reloaded.
    """

    def __init__(self, folder: Path | None = None, specialists: Path | None = None) -> None:
        self.folder = folder
        self.specialists = specialists
        self.current = load_overriding_prompts(folder, specialists)
        self._injected: dict[str, Prompts] = {}

    def inject_prompts(self, texts: Mapping[str, str]) -> None:
        """Use strings as the prompts of their tasks, without a file; raises `PromptError`."""
        variables = _find_variables()
        unknown = [name for name in texts if name not in variables]
        if unknown:
            raise PromptError(f"expected some of {', '.join(sorted(variables))}, found {unknown}")
        files = PromptFiles({name: variables[name] for name in texts}, texts=texts)
        self._injected |= dict.fromkeys(texts, files)

    def render(self, task_name: str, inputs: BaseModel) -> Rendered:
        """Return the prompt of a task."""
        return self._injected.get(task_name, self.current).render(task_name, inputs)


class PromptFolders:
    """The prompts of the assistants in one process, which can be reloaded while they are in use."""

    def __init__(self) -> None:
        self._prompts: dict[tuple[Path | None, Path | None], ReloadablePrompts] = {}
        self._injected: dict[str, str] = {}

    def of(self, folder: Path | None, specialists: Path | None = None) -> ReloadablePrompts:
        """Return the prompts in a folder, and in a folder of specialists; raises `PromptError`."""
        key = (folder, specialists)
        if key not in self._prompts:
            made = ReloadablePrompts(folder, specialists)
            made.inject_prompts(self._injected)
            self._prompts[key] = made
        return self._prompts[key]

    def inject_prompts(self, texts: Mapping[str, str]) -> None:
        """Use strings as the prompts of their tasks in all folders, for tests and for programs that
        optimize prompts; nothing is written. If this raises `PromptError`, nothing has changed.
        """
        ReloadablePrompts().inject_prompts(texts)
        self._injected |= texts
        for prompts in self._prompts.values():
            prompts.inject_prompts(texts)

    def reload(self) -> str:
        """Reload all folders, and return an empty string. If one of them cannot be used, return the
        reason, and change nothing.
        """
        try:
            read = {key: load_overriding_prompts(*key) for key in self._prompts}
        except PromptError as error:
            return str(error)
        for key, prompts in read.items():
            self._prompts[key].current = prompts
        return ""


def load_prompts() -> PromptFiles:
    """Return the built-in prompts, checked against their tasks; raises `PromptError`."""
    return PromptFiles(_find_variables())


def load_overriding_prompts(folder: Path | None, specialists: Path | None = None) -> Prompts:
    """Return the built-in prompts, overridden by those in a folder.

    Prompts named in the profiles of a `specialists` folder override both. Raises `PromptError` for
    a folder without prompts, with a file that is not the prompt of a task, or with an unusable
    prompt.
    """
    variables = _find_variables()
    prompts = load_prompts() if folder is None else _load_folder(folder, variables)
    try:
        own = find_own_prompts(specialists)
        named = PromptFiles({name: variables[name] for name in own}, files=own)
    except (PromptError, SettingsError) as error:
        raise PromptError(f"{specialists}: {error}") from error
    return OverridingPrompts(dict.fromkeys(own, named), prompts) if own else prompts


def check_prompts(folders: Iterable[tuple[Path | None, Path | None]]) -> None:
    """Load the prompts in folders, and the prompts of their specialists; raises `PromptError`."""
    for own in set(folders) - {(None, None)}:
        load_overriding_prompts(*own)


def _load_folder(folder: Path, variables: Mapping[str, type[BaseModel]]) -> Prompts:
    names = sorted(path.stem for path in folder.glob("*.txt")) if folder.is_dir() else []
    unknown = [name for name in names if name not in variables]
    if not names or unknown:
        found = ", ".join(f"{name}.txt" for name in unknown) or "no file .txt"
        expected = ", ".join(f"{name}.txt" for name in sorted(variables))
        raise PromptError(f"expected some of {expected} in {str(folder)!r}, found {found}")
    try:
        files = PromptFiles({name: variables[name] for name in names}, folder=folder)
    except PromptError as error:
        raise PromptError(f"{folder}: {error}") from error
    return OverridingPrompts(dict.fromkeys(names, files), load_prompts())


def _find_variables() -> dict[str, type[BaseModel]]:
    # Imported here: without a model, no prompts are rendered.
    from llm.tasks.all_tasks import TASKS

    return prompt_inputs(TASKS.values())
