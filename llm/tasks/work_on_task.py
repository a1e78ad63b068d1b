"""Works on one task of a plan: a conversation in which the worker may call its tools."""

from pydantic import BaseModel, Field, JsonValue

from llm.conversation import ModelMessage
from llm.port import Task


class Inputs(BaseModel, frozen=True):
    """The brief of one worker."""

    objective: str
    question: str = Field(default="", description="of the user, of which the brief is a part")
    domain_name: str = Field(default="", description="the desk's name, as settings have it")
    domain_scope: str = Field(default="", description="the subject of the documents")
    documents: tuple[str, ...] = Field(
        default=(), description="ids, titles, kinds and versions; the last line counts the others"
    )
    criteria: tuple[str, ...] = Field(default=(), description="what is asked about its item")
    instructions: str = Field(default="", description="of the type of worker")
    specialization: str = ""
    output: str = Field(default="", description="the form of the result")
    known: dict[str, JsonValue] = Field(default_factory=dict, description="that the user said")
    found: tuple[str, ...] = Field(default=(), description="by the workers before it")
    most_calls: int = Field(default=8, ge=1, description="calls of one message")


TASK = Task(name="work_on_task", inputs=Inputs, output=ModelMessage, max_output_tokens=2048)
