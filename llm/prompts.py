"""The prompts' port: a task's inputs become the text a vendor is sent."""

from collections.abc import Iterable
from typing import Any, Protocol

from pydantic import BaseModel

from llm.port import Task


class Rendered(Protocol):
    """A prompt, ready to be sent; `hash` tells it from every other."""

    @property
    def system(self) -> str: ...

    @property
    def user(self) -> str: ...

    @property
    def hash(self) -> str: ...


class Prompts(Protocol):
    """Renders the prompt of a task; kept outside of the code, and handed in."""

    def render(self, task_name: str, inputs: BaseModel) -> Rendered: ...


class RepairInputs(BaseModel, frozen=True):
    """What the prompt `repair` may say: why an answer could not be read."""

    problem: str


class JsonObjectInputs(BaseModel, frozen=True):
    """What the prompt `json_object` may say: the schema, for servers that cannot be given one."""

    schema_text: str


REPAIR = "repair"
JSON_OBJECT = "json_object"
OWN_PROMPTS: dict[str, type[BaseModel]] = {REPAIR: RepairInputs, JSON_OBJECT: JsonObjectInputs}
"""Prompts that vendors use besides those of the tasks, and their variables."""


def prompt_inputs(tasks: Iterable[Task[Any, Any]]) -> dict[str, type[BaseModel]]:
    """Return every prompt that is needed to ask vendors these tasks, with its variables."""
    return OWN_PROMPTS | {task.name: task.inputs for task in tasks}
