"""The base class of tools, with typed input and output.

A built-in tool is a subclass in `tools/builtin`. External tools are instances of `OutsideTool`,
which are configured by the operator.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Generic, Self, TypeVar

from pydantic import BaseModel, JsonValue

from knowledge.library.library import Library, WholeDocument
from knowledge.port import Searcher
from tools.calls import CitedPassage, EffectClass, PassageText, ToolCaller
from tools.errors import InvalidInput

I = TypeVar("I", bound=BaseModel)  # noqa: E741 - I and O stand for input and output
O = TypeVar("O", bound=BaseModel)  # noqa: E741

TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ToolParts:
    """The dependencies of the tools of an assistant."""

    searcher: Searcher
    """Searches on all levels."""
    search_level: Callable[[str], Searcher]
    """Returns a searcher for one level of `knowledge.search.ranking`."""
    library: Library
    """The documents."""


class Tool(ABC, Generic[I, O]):
    """A tool that a model may call.

    `run` raises errors from `tools.errors`; any other exception also counts as a failure of the
    call. If a tool with side effects raises `ToolFailed`, it guarantees that nothing has changed.
    One instance serves all calls and must be stateless. If `is_source` is true, the text of a
    result without quoted passages is a source for answers.
    """

    name: str
    aliases: tuple[str, ...] = ()
    presets: Mapping[str, Mapping[str, JsonValue]] = MappingProxyType({})
    """Additional names of the tool, each with fixed arguments."""
    description: str
    effect: EffectClass = EffectClass.READ
    timeout_seconds: float = TIMEOUT_SECONDS
    is_source: bool = False
    most_cost_micros: int | None = None
    """The maximum cost of a call in millionths of a USD, or None if it is not known."""
    inputs: type[I]
    output: type[O]

    @classmethod
    def make(cls, parts: ToolParts) -> Self:
        """Create the tool. Subclasses take their dependencies from `parts`."""
        return cls()

    @abstractmethod
    async def run(self, inputs: I, caller: ToolCaller) -> O:
        """Run the tool for a caller, and return its output."""

    def read_inputs(self, arguments: JsonValue) -> I:
        """Return the validated input; raises `pydantic.ValidationError`."""
        return self.inputs.model_validate(arguments)

    def describe_inputs(self) -> dict[str, JsonValue]:
        """Return the JSON schema of the input."""
        return deepcopy(_make_schema(self.inputs))

    def describe_preset(self, fixed: Mapping[str, JsonValue]) -> str:
        """Return the description, for models, of the preset with these fixed arguments."""
        return self.description

    def render(self, output: O) -> str:
        """Return the output as text for a model, by default as JSON."""
        return output.model_dump_json(exclude_none=True)

    def cite(self, output: O) -> Iterable[CitedPassage]:
        """Return the passages that support the output, best first."""
        return ()

    def quote(self, output: O) -> Iterable[PassageText]:
        """Return the texts of passages that can be used as sources for an answer, best first."""
        return ()


class LibraryTool(Tool[I, O]):
    """A tool that reads those documents of the library that its caller may read."""

    def __init__(self, library: Library) -> None:
        self._library = library

    @classmethod
    def make(cls, parts: ToolParts) -> Self:
        return cls(parts.library)

    async def _read_document(self, document_id: str, caller: ToolCaller) -> WholeDocument:
        """Return a document; raises `InvalidInput` if it does not exist or may not be read."""
        documents = await self._library.read([document_id], caller.groups, caller.run)
        if not documents:
            raise InvalidInput(f"expected the id of a document, found {document_id!r}")
        return documents[0]


@lru_cache(maxsize=256)
def _make_schema(inputs: type[BaseModel]) -> dict[str, JsonValue]:
    # Cached, because every assistant of a process describes the same inputs several times.
    return inputs.model_json_schema()
