"""Computes fingerprints of model calls: calls with the same fingerprint may share an answer."""

import hashlib
import json
from functools import lru_cache

from pydantic import BaseModel

from llm.port import I, O, Task
from llm.prompts import Prompts


def fingerprint(task: Task[I, O], inputs: I, *, asked: str, prompts: Prompts | None) -> str:
    """Return 32 hexadecimal digits over everything that determines an answer.

    These are: the name `asked` of the model, the task, its parameters, the schema of its output,
    and the rendered prompt, or the inputs if nothing is rendered (offline).
    """
    content = (
        json.dumps(inputs.model_dump(mode="json"))
        if prompts is None
        else prompts.render(task.name, inputs).hash
    )
    parts = (
        asked,
        task.name,
        str(task.temperature),
        str(task.max_output_tokens),
        _form(task.output),
        content,
    )
    return digest(*parts)


def digest(*parts: str) -> str:
    """Return 32 hexadecimal digits over these texts and their boundaries."""
    # A lone surrogate must not fail: it is hashed as its escape sequence.
    text = json.dumps(parts, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=64)
def _form(output: type[BaseModel]) -> str:
    return json.dumps(output.model_json_schema(), sort_keys=True)
