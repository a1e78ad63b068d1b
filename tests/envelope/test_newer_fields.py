"""During an update, workers of the release before it read what newer ones write."""

import importlib
import pkgutil
from collections.abc import Iterator

from pydantic import BaseModel, JsonValue

import agents
import envelope
import llm.port
import manager
import memory
from manager.state import State

TRAVELS = ("envelope", "agents", "manager", "memory", "llm.port")


def list_models(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for subclass in kind.__subclasses__():
        if f"{subclass.__module__}.".startswith(tuple(f"{name}." for name in TRAVELS)):
            yield subclass
        yield from list_models(subclass)


def test_values_that_travel_or_are_stored_may_have_fields_of_a_newer_release() -> None:
    assert llm.port.__name__ in TRAVELS
    for package in (envelope, agents, manager, memory):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)

    strict = {
        model for model in list_models(BaseModel) if model.model_config.get("extra") == "forbid"
    }

    assert strict == set()


def test_the_manager_reads_sources_with_a_field_of_a_newer_release() -> None:
    source: dict[str, JsonValue] = {"document_id": "d", "chunk_id": "c", "title": "T", "score": 1.0}
    source |= {"levels": ["keywords"], "novelty": True}

    [result] = State({"search_results": [source]}).list_nearest_results(3)

    assert result.title == "T"
