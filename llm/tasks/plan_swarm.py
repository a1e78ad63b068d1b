"""Divides a question among workers: what happens with it, by which strategy, and who does what."""

from typing import Literal

from pydantic import BaseModel, Field, JsonValue

from llm.port import Task
from llm.tasks.confidence import Confidence


class PlannedWorker(BaseModel, frozen=True):
    """One worker with its brief."""

    role: str = Field(description="one of the named types of workers")
    specialization: str = Field(default="", description="its part or perspective, in a few words")
    item: str = Field(
        default="", description="the item that it looks up, as in `items`; else empty"
    )
    objective: str = Field(description="what it finds out, in words that need no context")
    output: str = Field(default="", description="the form of its result")
    tools: tuple[str, ...] = Field(default=(), description="names of tools; none: the usual ones")
    depends_on: tuple[int, ...] = Field(
        default=(), description="positions of workers in this list, from 0, that come first"
    )
    priority: int = Field(default=5, ge=0, le=10, description="10 is the most urgent")


class MissingFact(BaseModel, frozen=True):
    """A fact that only the user knows, and without which nobody can begin."""

    name: str = Field(description="lower case, digits and underscores, such as target_market")
    question: str
    type: Literal["text", "number", "date", "choice", "yes_no"] = "text"
    choices: tuple[str, ...] = ()


class Output(BaseModel, frozen=True):
    """The decision about a question, and the workers."""

    reasoning: str = Field(default="", description="in one or two sentences, first")
    action: Literal["simple_response", "orchestrate"]
    confidence: Confidence = 0.5
    complexity: float = Field(ge=0, le=1, description="0: one look; 1: a project")
    strategy: str = Field(default="", description="one of the named strategies, or empty")
    items: tuple[str, ...] = Field(
        default=(), description="where the answer is a table: what is asked about, one a row"
    )
    criteria: tuple[str, ...] = Field(
        default=(), description="where the answer is a table: what is asked about each item"
    )
    needed: tuple[MissingFact, ...] = ()
    workers: tuple[PlannedWorker, ...] = ()


class Inputs(BaseModel, frozen=True):
    """The question, what a plan may use, and why an earlier plan did not do."""

    question: str
    earlier_turns: tuple[str, ...] = Field(
        default=(), description="what the user said before in the conversation, oldest first"
    )
    active_question: str = Field(
        default="", description="that the conversation is still about; empty: another topic begins"
    )
    domain_name: str = Field(default="", description="the desk's name, as settings have it")
    domain_scope: str = Field(default="", description="the subject of the documents")
    documents: tuple[str, ...] = Field(
        default=(), description="ids, titles, kinds and versions; the last line counts the others"
    )
    strategies: dict[str, str] = Field(default_factory=dict, description="by name")
    roles: dict[str, str] = Field(default_factory=dict, description="types of workers, by name")
    tools: dict[str, str] = Field(default_factory=dict, description="by name")
    most_workers: int = Field(default=32, ge=1)
    strategy: str = Field(default="", description="that was chosen already; empty: none")
    facts: dict[str, JsonValue] = Field(default_factory=dict, description="that the user gave")
    done: tuple[str, ...] = Field(default=(), description="briefs of earlier plans, with results")
    problems: tuple[str, ...] = Field(default=(), description="why the last plan did not do")
    advice: tuple[str, ...] = Field(default=(), description="what did well for such questions")


TASK = Task(name="plan_swarm", inputs=Inputs, output=Output, max_output_tokens=6144)
