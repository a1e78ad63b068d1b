"""Plans calls of tools for a question: a conversation in which the model may call tools."""

from pydantic import BaseModel, Field

from llm.conversation import ModelMessage
from llm.port import Task


class Inputs(BaseModel, frozen=True):
    """The question, and what the plan may use."""

    question: str
    language_name: str = Field(default="", description="of the user, in English")
    domain_name: str = Field(default="", description="the desk's name, as settings have it")
    domain_scope: str = Field(default="", description="the subject of the documents")
    today: str = Field(default="", description="the date in UTC, as 2026-01-31")
    versions: tuple[str, ...] = Field(default=(), description="that documents state")
    documents: tuple[str, ...] = Field(
        default=(), description="ids, titles, kinds and versions; the last line counts the others"
    )
    combinations: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="tools that are often called together, by purpose"
    )
    most_calls: int = Field(default=8, ge=1, description="calls of one message")


TASK = Task(name="reason", inputs=Inputs, output=ModelMessage, max_output_tokens=2048)
