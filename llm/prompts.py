"""The port for prompts, which are rendered from task inputs."""

from collections.abc import Iterable
from typing import Any, Protocol

from pydantic import BaseModel

from llm.port import Remark, Task


class RepairInputs(BaseModel, frozen=True):
    """The inputs of the prompt `repair`: the reason why an answer was invalid."""

    problem: str


class JsonObjectInputs(BaseModel, frozen=True):
    """The inputs of the prompt `json_object`: the schema, for servers without schema support."""

    schema_text: str


REPAIR = "repair"
JSON_OBJECT = "json_object"
REMARK = "remark"
OWN_PROMPTS: dict[str, type[BaseModel]] = {
    REPAIR: RepairInputs,
    JSON_OBJECT: JsonObjectInputs,
    REMARK: Remark,
}
"""Prompts that vendor models use in addition to the task prompts, with their inputs."""


class Rendered(Protocol):
    """A prompt, ready to be sent; `hash` identifies its text."""

    @property
    def system(self) -> str: ...

    @property
    def user(self) -> str: ...

    @property
    def hash(self) -> str: ...


class Prompts(Protocol):
    """Renders task prompts from files."""

    def render(self, task_name: str, inputs: BaseModel) -> Rendered: ...


def prompt_inputs(tasks: Iterable[Task[Any, Any]]) -> dict[str, type[BaseModel]]:
    """Return all prompts that these tasks need, with their input types."""
    return OWN_PROMPTS | {task.name: task.inputs for task in tasks}
