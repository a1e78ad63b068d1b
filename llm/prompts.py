"""The port of prompts: it renders the inputs of a task as the text for a vendor."""

import re
from collections.abc import Iterable
from typing import Any, Protocol

from pydantic import BaseModel

from envelope.encoding import remove_hidden_characters
from llm.port import Task

# Also as a sign of full width, and with characters between that nobody sees.
_FENCE = re.compile(
    "[<\uff1c\ufe64](?=[\\s/\\\\\u00ad\u034f\u180e\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]*data)",
    re.IGNORECASE,
)
_BLOCK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _-]*")


class Rendered(Protocol):
    """A prompt, ready to be sent; `hash` identifies its text."""

    @property
    def system(self) -> str: ...

    @property
    def user(self) -> str: ...

    @property
    def hash(self) -> str: ...


class Prompts(Protocol):
    """Renders the prompt of a task from files outside of the code."""

    def render(self, task_name: str, inputs: BaseModel) -> Rendered: ...


class RepairInputs(BaseModel, frozen=True):
    """The inputs of the prompt `repair`: the reason why an answer could not be read."""

    problem: str


class JsonObjectInputs(BaseModel, frozen=True):
    """The inputs of the prompt `json_object`: the schema, for servers without schema support."""

    schema_text: str


REPAIR = "repair"
JSON_OBJECT = "json_object"
OWN_PROMPTS: dict[str, type[BaseModel]] = {REPAIR: RepairInputs, JSON_OBJECT: JsonObjectInputs}
"""Prompts that vendors use besides those of the tasks, and their variables."""


def prompt_inputs(tasks: Iterable[Task[Any, Any]]) -> dict[str, type[BaseModel]]:
    """Return every prompt that is needed to ask vendors these tasks, with its variables."""
    return OWN_PROMPTS | {task.name: task.inputs for task in tasks}


def fence(text: str, name: str) -> str:
    """Return a text in a data block that it can neither close nor imitate.

    The text is unchanged, except for hidden characters and every `<` that could begin a `data` tag.
    Raises `ValueError` for a name that is more than letters and digits.
    """
    if not _BLOCK_NAME.fullmatch(name):
        raise ValueError(f"expected a block's name of letters and digits, found {name!r}")
    seen = remove_hidden_characters(text)
    return f'<data name="{name}">\n{_FENCE.sub("&lt;", seen)}\n</data>'
