"""The base class of tools: a typed input, a typed output, and the facts that others need.

A tool of this project is one subclass in a module below `tools/builtin`. A tool from outside is an
instance of a subclass that reads its facts from a configuration.
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

I = TypeVar("I", bound=BaseModel)  # noqa: E741 - the pair I and O is the usual one
O = TypeVar("O", bound=BaseModel)  # noqa: E741

TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ToolParts:
    """What the assembly offers to the tools of one assistant."""

    searcher: Searcher
    """The search on all levels."""
    search_level: Callable[[str], Searcher]
    """Returns the search on one level of `knowledge.search.ranking`."""
    library: Library
    """The documents themselves."""


class Tool(ABC, Generic[I, O]):
    """One thing that a model may ask for.

    `run` raises an error of `tools.errors`; any other exception is a failure of the tool, too, and
    ends nothing but the call. Where a tool with an effect raises `ToolFailed`, nothing happened.
    One instance serves all calls and keeps nothing between them. With `is_source`, an answer may be
    written from the text of a result that quotes no passage.
    """

    name: str
    aliases: tuple[str, ...] = ()
    presets: Mapping[str, Mapping[str, JsonValue]] = MappingProxyType({})
    """Further names of the tool, each with the arguments that it fixes."""
    description: str
    effect: EffectClass = EffectClass.READ
    timeout_seconds: float = TIMEOUT_SECONDS
    is_source: bool = False
    most_cost_micros: int | None = None
    """The most that one call costs, in millionths of a USD; None: not known."""
    inputs: type[I]
    output: type[O]

    @classmethod
    def make(cls, parts: ToolParts) -> Self:
        """Return the tool, built from the `parts` that it needs; by default from none."""
        return cls()

    @abstractmethod
    async def run(self, inputs: I, caller: ToolCaller) -> O:
        """Return the result for a caller."""

    def read_inputs(self, arguments: JsonValue) -> I:
        """Return the typed input; raises `pydantic.ValidationError`."""
        return self.inputs.model_validate(arguments)

    def describe_inputs(self) -> dict[str, JsonValue]:
        """Return the JSON schema of the input."""
        return deepcopy(_make_schema(self.inputs))

    def describe_preset(self, fixed: Mapping[str, JsonValue]) -> str:
        """Return what a model reads about the tool where these arguments are fixed."""
        return self.description

    def render(self, output: O) -> str:
        """Return the result as a text for a model; by default as JSON."""
        return output.model_dump_json(exclude_none=True)

    def cite(self, output: O) -> Iterable[CitedPassage]:
        """Return the passages that the result relies on, best first."""
        return ()

    def quote(self, output: O) -> Iterable[PassageText]:
        """Return the texts of passages that an answer may be written from, best first."""
        return ()


class LibraryTool(Tool[I, O]):
    """Reads documents of the library as far as its caller may."""

    def __init__(self, library: Library) -> None:
        self._library = library

    @classmethod
    def make(cls, parts: ToolParts) -> Self:
        return cls(parts.library)

    async def _read_document(self, document_id: str, caller: ToolCaller) -> WholeDocument:
        """Return a document; raises `InvalidInput` if the caller cannot read one of this id."""
        documents = await self._library.read([document_id], caller.groups, caller.run)
        if not documents:
            raise InvalidInput(f"expected the id of a document, found {document_id!r}")
        return documents[0]


@lru_cache(maxsize=256)
def _make_schema(inputs: type[BaseModel]) -> dict[str, JsonValue]:
    # Every assistant of a process describes the same inputs, several times each.
    return inputs.model_json_schema()
