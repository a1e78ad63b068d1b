"""Tells one thing asked from every other: the same fingerprint, the same answer will do."""

import hashlib
import json
from functools import lru_cache

from pydantic import BaseModel

from llm.port import I, O, Task
from llm.prompts import Prompts


def fingerprint(task: Task[I, O], inputs: I, *, asked: str, prompts: Prompts | None) -> str:
    """Return 32 hexadecimal digits over everything that decides about an answer.

    These are: who is asked, the task, its parameters, the form of its output, and the rendered
    prompt; where nothing is rendered (offline), the inputs.
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
    """Return 32 hexadecimal digits over these texts and where one ends and the next begins."""
    # Half a surrogate is no reason to fail: it is hashed as it stands.
    text = json.dumps(parts, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=64)
def _form(output: type[BaseModel]) -> str:
    return json.dumps(output.model_json_schema(), sort_keys=True)
