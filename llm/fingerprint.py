"""Computes fingerprints of model calls: calls with the same fingerprint may share an answer."""

import hashlib
import json
from functools import lru_cache

from pydantic import BaseModel
from pydantic_core import to_json

from llm.conversation import ToolConversation
from llm.port import I, O, Task
from llm.prompts import Prompts

_FINAL_MARKS = " .?!\uff1f\u3002\uff01\u061f"


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


def fingerprint_conversation(conversation: ToolConversation, *, asked: str) -> str:
    """Return 32 hexadecimal digits over everything that determines the next message of a vendor.

    Conversations whose first message differs in spaces and final marks alone are the same.
    """
    content = conversation.model_dump_json()
    first = conversation.messages[0].text
    plain = " ".join(first.split()).rstrip(_FINAL_MARKS)
    return digest(asked, content.replace(to_json(first).decode(), to_json(plain).decode()))


def digest(*parts: str) -> str:
    """Return 32 hexadecimal digits over these texts and their boundaries."""
    # A lone surrogate must not fail: it is hashed as its escape sequence.
    text = json.dumps(parts, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=64)
def _form(output: type[BaseModel]) -> str:
    return json.dumps(output.model_json_schema(), sort_keys=True)
