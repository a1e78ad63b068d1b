"""Asks a desk with LlamaIndex's class for servers like OpenAI's, and prints the result as JSON."""

import json
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import openai

# By name: the project's own environment does not have them.
ChatMessage: Any = import_module("llama_index.core.llms").ChatMessage
OpenAILike: Any = import_module("llama_index.llms.openai_like").OpenAILike
address, key, question = sys.argv[1:]
asked = [ChatMessage(role="user", content=question)]


def connect(secret: str) -> Any:
    return OpenAILike(
        model="default", api_base=address, api_key=secret, is_chat_model=True, max_retries=0
    )


def refuse(ask: Callable[[], object]) -> str:
    try:
        ask()
    except openai.APIStatusError as error:
        return f"{error.status_code}: {error.message}"
    return "accepted"


model = connect(key)
found = {
    "text": model.chat(asked).message.content,
    "completed": model.complete(question).text,
    "streamed": "".join(chunk.delta or "" for chunk in model.stream_chat(asked)),
    "key": refuse(lambda: connect("wrong").chat(asked)),
}
sys.stdout.write(json.dumps(found))
