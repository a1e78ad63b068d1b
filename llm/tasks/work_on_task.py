"""Works on one task of a plan: a conversation in which the worker may call its tools."""

from pydantic import BaseModel, Field, JsonValue

from llm.conversations.turns import ModelMessage
from llm.port import Task


class Inputs(BaseModel, frozen=True):
    """The brief of one worker."""

    objective: str
    instructions: str = Field(default="", description="of the type of worker")
    specialization: str = ""
    output: str = Field(default="", description="the form of the result")
    known: dict[str, JsonValue] = Field(default_factory=dict, description="that the user said")
    found: tuple[str, ...] = Field(default=(), description="by the workers before it")
    most_calls: int = Field(default=8, ge=1, description="calls of one message")


TASK = Task(name="work_on_task", inputs=Inputs, output=ModelMessage, max_output_tokens=2048)
