"""The tool `out_of_scope_handler`."""

from pydantic import BaseModel, Field

from tools.calls import ToolCaller
from tools.tool import Tool


class Inputs(BaseModel, frozen=True, extra="forbid"):
    """Why a question is not about the documents."""

    reason: str = Field(default="", max_length=500, description="in one sentence")


class Output(BaseModel, frozen=True):
    """The reason, as it was given."""

    reason: str


class OutOfScopeHandler(Tool[Inputs, Output]):
    """Says that a question is not about the documents; a round that only calls it ends the loop."""

    name = "out_of_scope_handler"
    description = "Say that the question has nothing to do with the documents."
    inputs = Inputs
    output = Output

    async def run(self, inputs: Inputs, caller: ToolCaller) -> Output:
        return Output(reason=inputs.reason)
