"""The tasks of a swarm: the plan, the work on each task, and the combined answer."""

from typing import Literal

from pydantic import BaseModel, Field, JsonValue

from envelope.conversation import AnswerStyle, InputField
from llm.port import ModelMessage, Task, keep_first_half
from llm.tasks.question import Confidence
from llm.tasks.search import PromptSource


class PlannedWorker(BaseModel, frozen=True):
    """A planned worker with its brief."""

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
    """A fact that only the user knows and that is required to begin."""

    name: str = Field(description="lower case, digits and underscores, such as target_market")
    question: str
    type: Literal["text", "number", "date", "choice", "yes_no"] = "text"
    choices: tuple[str, ...] = ()


class PlanSwarmOutput(BaseModel, frozen=True):
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


class PlanSwarmInputs(BaseModel, frozen=True):
    """The question, the available tools and documents, and the problems of an earlier plan."""

    question: str
    earlier_turns: tuple[str, ...] = Field(
        default=(), description="what the user said before in the conversation, oldest first"
    )
    active_question: str = Field(
        default="", description="that the conversation is still about; empty: another topic begins"
    )
    language: str = Field(default="", description="of the user, ISO 639-1; empty: unknown")
    domain_name: str = Field(default="", description="the desk's name, as settings have it")
    domain_scope: str = Field(default="", description="the subject of the documents")
    documents: tuple[str, ...] = Field(
        default=(), description="ids, titles, kinds and versions; the last line counts the others"
    )
    document_languages: tuple[str, ...] = Field(
        default=(), description="of all documents, ISO 639-1, the most frequent first"
    )
    tools: dict[str, str] = Field(default_factory=dict, description="by name")
    most_workers: int = Field(default=32, ge=1)
    strategy: str = Field(default="", description="that was chosen already; empty: none")
    facts: dict[str, JsonValue] = Field(default_factory=dict, description="that the user gave")
    done: tuple[str, ...] = Field(default=(), description="briefs of earlier plans, with results")
    problems: tuple[str, ...] = Field(default=(), description="why the last plan did not do")


PLAN_SWARM = Task(
    name="plan_swarm", inputs=PlanSwarmInputs, output=PlanSwarmOutput, max_output_tokens=6144
)
"""Plans how a question is divided among workers, and with which strategy."""


class WorkOnTaskInputs(BaseModel, frozen=True):
    """The brief of one worker."""

    objective: str
    question: str = Field(default="", description="of the user, of which the brief is a part")
    language: str = Field(default="", description="of the user, ISO 639-1; empty: unknown")
    persona: str = Field(default="", description="in whose voice the answer will be written")
    domain_name: str = Field(default="", description="the desk's name, as settings have it")
    domain_scope: str = Field(default="", description="the subject of the documents")
    documents: tuple[str, ...] = Field(
        default=(), description="ids, titles, kinds and versions; the last line counts the others"
    )
    document_languages: tuple[str, ...] = Field(
        default=(), description="of all documents, ISO 639-1, the most frequent first"
    )
    criteria: tuple[str, ...] = Field(default=(), description="what is asked about its item")
    role: str = Field(default="", description="the type of worker")
    specialization: str = ""
    output: str = Field(default="", description="the form of the result")
    known: dict[str, JsonValue] = Field(default_factory=dict, description="that the user said")
    found: tuple[str, ...] = Field(default=(), description="by the workers before it")
    most_calls: int = Field(default=8, ge=1, description="calls of one message")


WORK_ON_TASK = Task(
    name="work_on_task", inputs=WorkOnTaskInputs, output=ModelMessage, max_output_tokens=2048
)
"""Works on one task of a plan, in a conversation in which the worker may call its tools."""


class WorkerFinding(BaseModel, frozen=True):
    """The text of a worker, with the numbers of its sources; empty if it found nothing."""

    worker: str = Field(description="its part or perspective")
    objective: str
    text: str
    sources: tuple[int, ...] = Field(default=(), description="numbers of what it found, best first")
    problem: str = Field(default="", description="why it has no result")


class SynthesizeFindingsInputs(BaseModel, frozen=True):
    """The question, the texts of the workers, and the passages that they found."""

    question: str
    language: str = Field(description="of the answer, ISO 639-1")
    language_name: str = Field(default="", description="of the answer, in English")
    domain_name: str = Field(default="", description="the desk's name, as settings have it")
    domain_scope: str = Field(default="", description="the subject of the documents")
    persona: str = Field(default="", description="in whose voice the answer is written")
    strategy: str = Field(default="", description="by which the question was divided")
    style: AnswerStyle = Field(default="", description="the form in which the user wants it")
    items: tuple[str, ...] = Field(default=(), description="the rows of the table, if it is one")
    criteria: tuple[str, ...] = Field(default=(), description="the columns of the table")
    sources: tuple[PromptSource, ...]
    findings: tuple[WorkerFinding, ...]
    facts: tuple[str, ...] = Field(default=(), description="that the user gave")
    left_out: int = Field(default=0, ge=0, description="passages for which there was no room")
    analysis: str = Field(default="", description="what was wrong with the answer before")
    avoid: tuple[str, ...] = Field(default=(), description="claims that no source supports")
    before: str = Field(default="", description="the answer before, which is written anew")


class TableCell(BaseModel, frozen=True):
    """The finding about one item and one criterion."""

    item: str = Field(description="as it is listed")
    criterion: str = Field(description="as it is listed")
    finding: str = Field(
        default="", description="in a few words that end with [n]; empty: no source says it"
    )


class FoundContradiction(BaseModel, frozen=True):
    """Two sources that contradict each other about the same subject."""

    about: str = Field(description="what they say differently, in one sentence with both numbers")
    one: int = Field(ge=1, description="the number of a source")
    other: int = Field(ge=1, description="the number of the other source")


class SynthesizeFindingsOutput(BaseModel, frozen=True):
    """The answer, and what is missing from it."""

    answer: str = Field(description="Markdown; claims end with [n]; without the table of `cells`")
    cells: tuple[TableCell, ...] = Field(
        default=(), description="where items and criteria are given: one for each of both"
    )
    contradictions: tuple[FoundContradiction, ...] = ()
    missing: tuple[str, ...] = Field(
        default=(), description="what was asked and no source says, a few words each"
    )
    dissents: bool = Field(default=False, description="whether perspectives in the answer disagree")


SYNTHESIZE_FINDINGS = Task(
    name="synthesize_findings",
    inputs=SynthesizeFindingsInputs,
    output=SynthesizeFindingsOutput,
    max_output_tokens=6144,
    shorten=keep_first_half("sources"),
)
"""Writes one answer from the texts of several workers, with a citation for each claim."""


class AskedFact(BaseModel, frozen=True):
    """A question to the user, and the field for the value."""

    question: str
    field: InputField


class ReadFactsInputs(BaseModel, frozen=True):
    """The questions to the user, and the reply; `today` is formatted as 2026-01-31."""

    question: str
    asked: tuple[AskedFact, ...]
    reply: str
    today: str = ""


class GivenFact(BaseModel, frozen=True):
    """A fact stated in the reply."""

    name: str = Field(description="the name of its field")
    value: str = Field(
        description="a number in digits, a date as 2026-01-31, a choice in the words of the "
        "choice, else the words of the reply"
    )


class ReadFactsOutput(BaseModel, frozen=True):
    """The facts stated in a reply; empty if the reply is about something else."""

    is_reply: bool
    facts: tuple[GivenFact, ...] = ()
    declined: tuple[str, ...] = Field(
        default=(), description="names of fields that the user does not know or does not tell"
    )


READ_FACTS = Task(
    name="read_facts", inputs=ReadFactsInputs, output=ReadFactsOutput, max_output_tokens=1024
)
"""Extracts the requested fields from a free-text reply of the user."""
