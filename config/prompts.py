"""Loads the prompt files, compiles them in a sandbox, and checks them against their tasks."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, Undefined
from jinja2.meta import find_referenced_templates, find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from citations.fencing import fence
from citations.marking import escape_brackets
from config.errors import PromptError
from envelope.encoding import remove_hidden_characters

FOLDER = Path(__file__).with_name("prompts")
SEPARATOR = "---"
SHARED = ("struck_out", "foreign_text", "review_context", "tool_results")
"""The names of the texts in `shared/`, which are inserted into the prompts that contain them."""
_SHARED = re.compile(rf"\{{\{{ ({'|'.join(SHARED)}) \}}\}}")
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A rendered prompt; `hash` identifies its text."""

    system: str
    user: str
    hash: str


class PromptFiles:
    """The prompts of a folder, compiled once; `inputs` maps the names of prompts to their inputs.

    `files` contains prompts in other locations, and `texts` contains prompts that are given as
    text.

    The constructor raises `PromptError` for a file that is missing, cannot be read or compiled,
    lacks its separator, or uses a variable that is not in its inputs.
    """

    def __init__(
        self,
        inputs: Mapping[str, type[BaseModel]],
        *,
        folder: Path = FOLDER,
        files: Mapping[str, Path] = NOTHING,
        texts: Mapping[str, str] = NOTHING,
    ) -> None:
        self._prompts = {}
        for name, variables in inputs.items():
            file = files.get(name, folder / f"{name}.txt")
            text = _SHARED.sub(_read_shared, texts[name] if name in texts else _read(file))
            self._prompts[name] = _compile_prompt(file.name, text, variables)

    def render(self, task_name: str, inputs: BaseModel) -> RenderedPrompt:
        """Render the prompt of a task; raises `PromptError` for inputs of a different task."""
        prompt = self._prompts.get(task_name)
        if prompt is None or not isinstance(inputs, prompt.inputs):
            raise PromptError(
                f"expected a prompt of {sorted(self._prompts)} with its own inputs, "
                f"found {task_name!r} with {type(inputs).__module__}.{type(inputs).__qualname__}"
            )
        variables = inputs.model_dump(mode="json")
        try:
            system = _whole(prompt.system.render(variables)).strip()
            user = _whole(prompt.user.render(variables)).strip()
        except TemplateError as error:
            raise PromptError(f"prompt {task_name!r} cannot be rendered: {error}") from error
        return RenderedPrompt(system, user, _hash(system, user))


@dataclass(frozen=True, slots=True)
class _Prompt:
    """The compiled file of one task."""

    system: Template
    user: Template
    inputs: type[BaseModel]


@dataclass(frozen=True, slots=True)
class _CompiledPart:
    """The template of a part, its variables, and whether it includes another template."""

    template: Template
    variables: frozenset[str]
    refers: bool


def data(content: object, name: str) -> str:
    """Return `content` in a data block; values other than strings are encoded as JSON."""
    if isinstance(content, Undefined):
        # A strict undefined value raises an error when it is converted.
        content = str(content)
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    try:
        return fence(text, name)
    except ValueError as error:
        raise PromptError(str(error)) from error


@lru_cache(maxsize=1)
def _make_environment() -> ImmutableSandboxedEnvironment:
    # No escaping, because the result is text for a model, not HTML.
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    environment.filters["data"] = data
    environment.filters["literal"] = escape_brackets
    environment.policies["json.dumps_kwargs"] = {
        "ensure_ascii": False,
        "default": to_jsonable_python,
    }
    return environment


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"prompt {file.name!r} cannot be read: {error}") from error


@cache
def _load_shared(name: str) -> str:
    return _read(FOLDER / "shared" / f"{name}.txt").strip()


def _read_shared(found: re.Match[str]) -> str:
    return _load_shared(found[1])


def _compile_prompt(name: str, text: str, inputs: type[BaseModel]) -> _Prompt:
    system, user = _parts(name, text)
    return _Prompt(
        system=_check_part(name, system, inputs),
        user=_check_part(name, user, inputs),
        inputs=inputs,
    )


def _parts(name: str, text: str) -> tuple[str, str]:
    lines = text.splitlines()
    places = [number for number, line in enumerate(lines) if line.strip() == SEPARATOR]
    if len(places) != 1:
        raise PromptError(
            f"prompt {name!r} must contain exactly one line {SEPARATOR!r} between the system "
            f"and the user part, found {len(places)}"
        )
    return "\n".join(lines[: places[0]]), "\n".join(lines[places[0] + 1 :])


def _check_part(name: str, part: str, inputs: type[BaseModel]) -> Template:
    try:
        compiled = _compile(part)
    except TemplateError as error:
        raise PromptError(f"prompt {name!r} is not a valid Jinja template: {error}") from error
    if compiled.refers:
        raise PromptError(f"prompt {name!r} must not use include or import")
    unknown = compiled.variables - set(inputs.model_fields)
    if unknown:
        raise PromptError(
            f"prompt {name!r} uses unknown variables {sorted(unknown)}; the available variables "
            f"are {sorted(inputs.model_fields)}"
        )
    return compiled.template


@lru_cache(maxsize=256)
def _compile(part: str) -> _CompiledPart:
    # Cached, because assistants share most prompts, and compiling all takes a quarter of a second.
    environment = _make_environment()
    tree = environment.parse(part)
    variables = frozenset(find_undeclared_variables(tree))
    refers = any(True for _ in find_referenced_templates(tree))
    return _CompiledPart(environment.from_string(tree), variables, refers=refers)


def _whole(text: str) -> str:
    # A lone surrogate cannot be encoded as UTF-8; it becomes the replacement character.
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return remove_hidden_characters(whole)


def _hash(*parts: str) -> str:
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
