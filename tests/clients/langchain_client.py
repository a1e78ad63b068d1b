"""Asks a desk with LangChain's class for OpenAI, and prints what it returned as JSON."""

import json
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import openai

# By name: the project's own environment does not have it.
ChatOpenAI: Any = import_module("langchain_openai").ChatOpenAI
address, key, question = sys.argv[1:]
model = ChatOpenAI(model="default", base_url=address, api_key=key, max_retries=0)


def refuse(ask: Callable[[], object]) -> str:
    try:
        ask()
    except openai.APIStatusError as error:
        return f"{error.status_code}: {error.message}"
    return "accepted"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


stranger = ChatOpenAI(model="default", base_url=address, api_key="wrong", max_retries=0)
answer = model.invoke([("system", "Be brief."), ("human", question)])
found = {
    "text": answer.text,
    "streamed": "".join(chunk.text for chunk in model.stream(question)),
    "batched": [item.text for item in model.batch([question, question])],
    "tools": refuse(lambda: model.bind_tools([add]).invoke(question)),
    "key": refuse(lambda: stranger.invoke(question)),
    "usage": answer.usage_metadata,
}
sys.stdout.write(json.dumps(found))
