"""Keeps every prompt that is rendered, by its hash."""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel

from llm.prompts import Prompts, Rendered

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
