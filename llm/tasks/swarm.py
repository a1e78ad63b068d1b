"""The tasks of a swarm: the plan, the work on each task, and the combined answer."""

from typing import Literal

from pydantic import BaseModel, Field, JsonValue

from envelope.conversation import AnswerStyle, InputField
from llm.port import ModelMessage, Task, keep_first_half
from llm.tasks.question import Confidence
from llm.tasks.search import PromptSource


class PlannedWorker(BaseModel, frozen=True):
    """A planned worker with its brief."""

    role: str = Field(description="one of the listed worker types")
    specialization: str = Field(
        default="", description="the worker's part or perspective, in a few words"
    )
    item: str = Field(
        default="", description="the entry of `items` that the worker looks up; else empty"
    )
    objective: str = Field(
        description="the information to find, in words that are understandable without context"
    )
    output: str = Field(default="", description="the form of the worker's result")
    tools: tuple[str, ...] = Field(
        default=(), description="names of tools; empty: the default tools"
    )
    depends_on: tuple[int, ...] = Field(
        default=(),
        description="positions (from 0) in this list of the workers that must finish first",
    )
    priority: int = Field(default=5, ge=0, le=10, description="10 is the most urgent")


class MissingFact(BaseModel, frozen=True):
    """A fact that only the user knows and that is required to begin."""

    name: str = Field(
        description="identifier of lower-case letters, digits and underscores, such as "
        "target_market"
    )
    question: str
    type: Literal["text", "number", "date", "choice", "yes_no"] = "text"
    choices: tuple[str, ...] = ()


class PlanSwarmOutput(BaseModel, frozen=True):
    """The decision about a question, and the workers."""

    reasoning: str = Field(
        default="", description="the reason in one or two sentences, before the other fields"
    )
    action: Literal["simple_response", "orchestrate"]
    confidence: Confidence = 0.5
    complexity: float = Field(ge=0, le=1, description="0: one search suffices; 1: a project")
    strategy: str = Field(default="", description="one of the listed strategies, or empty")
    items: tuple[str, ...] = Field(
        default=(), description="if the answer is a table: the items in question, one per row"
    )
    criteria: tuple[str, ...] = Field(
        default=(), description="if the answer is a table: the questions about each item"
    )
    needed: tuple[MissingFact, ...] = ()
    workers: tuple[PlannedWorker, ...] = ()


class PlanSwarmInputs(BaseModel, frozen=True):
    """The question, the available tools and documents, and the problems of an earlier plan."""

    question: str
    earlier_turns: tuple[str, ...] = Field(
        default=(), description="earlier messages of the user in the conversation, oldest first"
    )
    active_question: str = Field(
        default="",
        description="the question that the conversation is still about; empty: a new topic begins",
    )
    language: str = Field(default="", description="language of the user, ISO 639-1; empty: unknown")
    domain_name: str = Field(default="", description="the configured name of the desk")
    domain_scope: str = Field(default="", description="the subject of the documents")
    documents: tuple[str, ...] = Field(
        default=(),
        description="ids, titles, kinds and versions; the last entry states how many further "
        "documents are not listed",
    )
    document_languages: tuple[str, ...] = Field(
        default=(), description="languages of all documents, ISO 639-1, the most frequent first"
    )
    tools: dict[str, str] = Field(
        default_factory=dict, description="descriptions of the available tools, by name"
    )
    most_workers: int = Field(default=32, ge=1)
    strategy: str = Field(
        default="", description="the strategy that is already chosen; empty: none"
    )
    facts: dict[str, JsonValue] = Field(
        default_factory=dict, description="facts that the user gave"
    )
    done: tuple[str, ...] = Field(
        default=(), description="briefs of earlier plans with their results"
    )
    problems: tuple[str, ...] = Field(default=(), description="the problems of the last plan")


PLAN_SWARM = Task(
    name="plan_swarm", inputs=PlanSwarmInputs, output=PlanSwarmOutput, max_output_tokens=6144
)
"""Plans how a question is divided among workers, and with which strategy."""


class WorkOnTaskInputs(BaseModel, frozen=True):
    """The brief of one worker."""

    objective: str
    question: str = Field(
        default="", description="the user's question, of which the brief is a part"
    )
    language: str = Field(default="", description="language of the user, ISO 639-1; empty: unknown")
    persona: str = Field(
        default="", description="role or person in whose voice the answer will be written"
    )
    domain_name: str = Field(default="", description="the configured name of the desk")
    domain_scope: str = Field(default="", description="the subject of the documents")
    documents: tuple[str, ...] = Field(
        default=(),
        description="ids, titles, kinds and versions; the last entry states how many further "
        "documents are not listed",
    )
    document_languages: tuple[str, ...] = Field(
        default=(), description="languages of all documents, ISO 639-1, the most frequent first"
    )
    criteria: tuple[str, ...] = Field(
        default=(), description="the questions about the worker's item"
    )
    role: str = Field(default="", description="the worker type")
    specialization: str = ""
    output: str = Field(default="", description="the form of the result")
    known: dict[str, JsonValue] = Field(
        default_factory=dict, description="facts that the user gave"
    )
    found: tuple[str, ...] = Field(
        default=(), description="results of the workers on which this worker depends"
    )
    most_calls: int = Field(
        default=8, ge=1, description="maximum number of tool calls in one message"
    )


WORK_ON_TASK = Task(
    name="work_on_task", inputs=WorkOnTaskInputs, output=ModelMessage, max_output_tokens=2048
)
"""Works on one task of a plan, in a conversation in which the worker may call its tools."""


class WorkerFinding(BaseModel, frozen=True):
    """The text of a worker, with the numbers of its sources; empty if it found nothing."""

    worker: str = Field(description="the worker's part or perspective, or an empty text")
    objective: str
    text: str
    sources: tuple[int, ...] = Field(
        default=(), description="numbers of the sources that the worker found, best first"
    )
    problem: str = Field(default="", description="the reason for a missing result")


class SynthesizeFindingsInputs(BaseModel, frozen=True):
    """The question, the texts of the workers, and the passages that they found."""

    question: str
    language: str = Field(description="language of the answer, ISO 639-1")
    language_name: str = Field(default="", description="English name of that language")
    domain_name: str = Field(default="", description="the configured name of the desk")
    domain_scope: str = Field(default="", description="the subject of the documents")
    persona: str = Field(
        default="", description="role or person in whose voice the answer is written"
    )
    strategy: str = Field(default="", description="the strategy that divided the question")
    style: AnswerStyle = Field(default="", description="the form of answer that the user requested")
    items: tuple[str, ...] = Field(
        default=(), description="the rows of the table, if the answer is a table"
    )
    criteria: tuple[str, ...] = Field(default=(), description="the columns of the table")
    sources: tuple[PromptSource, ...]
    findings: tuple[WorkerFinding, ...]
    facts: tuple[str, ...] = Field(default=(), description="facts that the user gave")
    left_out: int = Field(
        default=0, ge=0, description="number of passages that did not fit into the prompt"
    )
    analysis: str = Field(default="", description="the problems of the previous answer")
    avoid: tuple[str, ...] = Field(default=(), description="claims that no source supports")
    before: str = Field(default="", description="the previous answer, which is to be rewritten")


class TableCell(BaseModel, frozen=True):
    """The finding about one item and one criterion."""

    item: str = Field(description="the item, copied from `items`")
    criterion: str = Field(description="the criterion, copied from `criteria`")
    finding: str = Field(
        default="",
        description="the finding in a few words that end with [n]; empty: not in the sources",
    )


class FoundContradiction(BaseModel, frozen=True):
    """Two sources that contradict each other about the same subject."""

    about: str = Field(description="the contradiction in one sentence with both numbers")
    one: int = Field(ge=1, description="the number of a source")
    other: int = Field(ge=1, description="the number of the other source")


class SynthesizeFindingsOutput(BaseModel, frozen=True):
    """The answer, and what is missing from it."""

    answer: str = Field(description="Markdown; claims end with [n]; without the table of `cells`")
    cells: tuple[TableCell, ...] = Field(
        default=(), description="if `items` and `criteria` are given: one cell for each combination"
    )
    contradictions: tuple[FoundContradiction, ...] = ()
    missing: tuple[str, ...] = Field(
        default=(), description="parts of the question that no source answers, a few words each"
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

    name: str = Field(description="name of the requested field")
    value: str = Field(
        description="a number in digits, a date such as 2026-01-31, the exact text of a choice, "
        "otherwise the words of the reply"
    )


class ReadFactsOutput(BaseModel, frozen=True):
    """The facts stated in a reply; empty if the reply is about something else."""

    is_reply: bool
    facts: tuple[GivenFact, ...] = ()
    declined: tuple[str, ...] = Field(
        default=(),
        description="names of fields whose value the user does not know or declines to give",
    )


READ_FACTS = Task(
    name="read_facts", inputs=ReadFactsInputs, output=ReadFactsOutput, max_output_tokens=1024
)
"""Extracts the requested fields from a free-text reply of the user."""
