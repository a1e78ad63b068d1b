"""Adds wordings of a model to a search: a passage that would answer it (HyDE), and queries.

The search runs each of them and fuses the passages by their ranks. Rules invent no passages.
"""

from collections.abc import Sequence

from pydantic import JsonValue

from llm.conversation import ToolUse
from llm.port import OFFLINE, Model
from llm.tasks.retrieval.hyde_expansion import TASK, Inputs

NAME = TASK.name
_MOST_WORDINGS, _LONGEST_WORDING = 4, 1_500


async def expand_search(
    calls: Sequence[ToolUse], model: Model | None, question: str, language: str
) -> list[ToolUse]:
    """Return the calls, the first search with other wordings; raises `ModelError`.

    A search to which somebody gave parts or wordings stays as it is.
    """
    place = next((number for number, use in enumerate(calls) if read_query(use)), None)
    if model is None or model.name == OFFLINE or place is None:
        return [*calls]
    use = calls[place]
    inputs = Inputs(query=read_query(use), question=question, language=language)
    found = (await model.ask(TASK, inputs)).output
    texts = [one.strip()[:_LONGEST_WORDING] for one in (found.passage, *found.queries)]
    wordings: list[JsonValue] = [*list(dict.fromkeys(filter(None, texts)))[:_MOST_WORDINGS]]
    if not wordings or not isinstance(use.arguments, dict):
        return [*calls]
    changed = use.model_copy(update={"arguments": {**use.arguments, "wordings": wordings}})
    return [*calls[:place], changed, *calls[place + 1 :]]


def read_query(use: ToolUse) -> str:
    """Return the query of a search in words that may be expanded; empty for other calls."""
    given = use.arguments
    if use.name != "search" or not isinstance(given, dict):
        return ""
    query = given.get("query")
    is_done = given.get("aspects") or given.get("wordings")
    return query if isinstance(query, str) and not is_done else ""
