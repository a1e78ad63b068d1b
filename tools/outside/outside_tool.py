"""The base of tools of others: arguments are checked by their schema, results are bounded text.

Neither a result nor an error carries the secrets with which the tool is called.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence

from pydantic import BaseModel, JsonValue

from tools.calls import EffectClass, ToolCaller
from tools.errors import InvalidInput, ToolFailed
from tools.outside.configuration import OutsideEntry
from tools.outside.foreign_schemas import MOST_RESULT, ForeignSchema, clean, clean_line
from tools.tool import Tool

_SHOWN_KIND = 60


class OutsideInputs(BaseModel, frozen=True):
    """Arguments that fit the schema of a tool."""

    arguments: dict[str, JsonValue]


class OutsideOutput(BaseModel, frozen=True):
    """A result: text of others, and the kinds of content that no model is given."""

    text: str
    left_out: tuple[str, ...] = ()


class OutsideTool(Tool[OutsideInputs, OutsideOutput]):
    """A tool that runs elsewhere; name, effect class and limits are the operator's word."""

    inputs = OutsideInputs
    output = OutsideOutput
    is_source: bool

    def __init__(
        self,
        name: str,
        entry: OutsideEntry,
        effect: EffectClass,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._redact = redact
        self.name = entry.name or name
        self.aliases = entry.aliases
        self.effect = effect
        self.timeout_seconds = entry.timeout_seconds
        self.is_source = entry.is_source
        self.most_cost_micros = entry.most_cost_micros

    @property
    @abstractmethod
    def schema(self) -> ForeignSchema | None:
        """The schema of the arguments, or None while it is not known."""

    @abstractmethod
    async def call(self, inputs: OutsideInputs, caller: ToolCaller) -> OutsideOutput:
        """Return the result of the other side; raises as `run` does."""

    async def run(self, inputs: OutsideInputs, caller: ToolCaller) -> OutsideOutput:
        """Return the result, without the secrets that the operator configured for the tool."""
        try:
            output = await self.call(inputs, caller)
        except ToolFailed as error:
            raise type(error)(self._redact(str(error)), status=error.status) from error
        return output.model_copy(update={"text": self._redact(output.text)})

    def read_inputs(self, arguments: JsonValue) -> OutsideInputs:
        if not isinstance(arguments, dict):
            raise InvalidInput(f"expected an object of arguments, found {arguments!r:.80}")
        if self.schema is not None and (problems := self.schema.find_problems(arguments)):
            raise InvalidInput(problems)
        return OutsideInputs(arguments=arguments)

    def describe_inputs(self) -> dict[str, JsonValue]:
        return {"type": "object"} if self.schema is None else dict(self.schema.describe())

    def render(self, output: OutsideOutput) -> str:
        return "\n".join([output.text, *(f"[{kind} left out]" for kind in output.left_out)]).strip()


def make_output(texts: Sequence[str], left_out: Sequence[str] = ()) -> OutsideOutput:
    """Return a result of bounded, cleaned text."""
    kinds = dict.fromkeys(clean_line(kind, _SHOWN_KIND) for kind in left_out)
    return OutsideOutput(text=clean("\n".join(texts), MOST_RESULT), left_out=tuple(kinds)[:20])
