"""The types of workers, the task of one worker, and the limits of its output.

The output of a worker is derived from the results of its tool calls. It is treated as data: it is
limited in size, and texts with instructions to an assistant are omitted.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pydantic import BaseModel, Field, JsonValue

from agents.swarm.swarm_plan import SwarmPlan, TaskLedger, TaskState, UnknownName, WorkerPlan
from envelope.sources import TOOL_SOURCE
from knowledge.index.graph.called_names import split_words
from knowledge.index.terms import terms
from llm.injection import is_order_to_assistant
from llm.port import ToolConversation, ToolDescription, UserMessage
from llm.tasks.swarm import WORK_ON_TASK
from tools.calls import CHANGES, CitedPassage, PassageText, ToolErrorType, ToolResult
from tools.passages import LINKED, FoundPassage

MOST_PASSAGES = 30
MOST_TEXT_BYTES = 64_000
"""The bytes of a worker's text; a longer one is not cut, but left out as a whole."""
_SUBJECT_WEIGHT = 6.0
"""The amount by which the score of a passage that contains all words of the subject exceeds that of
one without any.
"""
_NAMED_SHARE = 0.5
"""The share of the words of a subject that a passage must contain to be about the subject."""
_OUTSIDE_BRACKETS = "("


@dataclass(frozen=True, slots=True)
class WorkerType:
    """The common properties of all workers of a type; `tools` contains their usual tools.

    The prompt `plan_swarm` describes the purpose of a type, and `work_on_task` the procedure of its
    workers.
    """

    name: str
    tools: tuple[str, ...]


_READING = ("search", "read_section", "read_document")
TYPES = (
    WorkerType("analysis", (*_READING, "compare_documents", "definition_aligner")),
    WorkerType("code", (*_READING, "lookup")),
    WorkerType(
        "data", ("get_document_list", "get_document_info", "read_document", "search", "calculator")
    ),
    WorkerType("research", ("search", "expand_context", *_READING[1:], "lookup")),
)
"""The built-in types of workers. Code in documents is read as text and never executed."""
MOST_BYTES = 20_000
"""Maximum number of bytes of passages that a worker returns."""
_LEAST_BYTES = 4_000
_ALL_BYTES = 300_000
"""Maximum number of bytes of passages that all workers of a plan together return."""
_LONGEST_VALUE = 300
LONGEST_PERSONA = 200
_NOT_LOOKED_UP = "it called no tool, so nothing was looked up"


class WorkerStatus(StrEnum):
    """How the work of a worker ended."""

    DONE = "done"
    FAILED = "failed"
    NEEDS_INPUT = "needs_input"


class WorkerOutput(BaseModel, frozen=True, extra="ignore"):
    """The output of a worker: its text, and passages with their sources, best first.

    `stop_reason` is the reason why it made no further calls, see `tools.dialogue.DialogueEnd`;
    `effects` contains the tools with which it changed external systems.
    """

    worker_id: str
    status: WorkerStatus = WorkerStatus.DONE
    text: str = ""
    passages: tuple[FoundPassage, ...] = ()
    calls: int = Field(default=0, ge=0)
    failed_calls: int = Field(default=0, ge=0)
    left_out: int = Field(
        default=0, ge=0, description="passages with orders to an assistant, or without room"
    )
    error: str = ""
    stop_reason: str = ""
    effects: tuple[str, ...] = ()

    @property
    def is_usable(self) -> bool:
        """Whether the output is useful, because something was found or done."""
        return self.status is WorkerStatus.DONE and bool(self.passages or self.effects)


class WorkerRegistry:
    """Types of workers by name; raises `ValueError` if two have the same name."""

    def __init__(self, types: Iterable[WorkerType]) -> None:
        self._types: dict[str, WorkerType] = {}
        for kind in types:
            self.register(kind)

    def register(self, worker_type: WorkerType) -> None:
        if worker_type.name in self._types:
            raise ValueError(f"two worker types have the name {worker_type.name!r}")
        self._types[worker_type.name] = worker_type

    def find(self, name: str) -> WorkerType:
        """Return a type; raises `UnknownName`."""
        if name not in self._types:
            known = ", ".join(sorted(self._types))
            raise UnknownName(f"expected one of {known} as a type of worker, found {name[:80]!r}")
        return self._types[name]

    @property
    def usual_tools(self) -> dict[str, tuple[str, ...]]:
        """The usual tools of each type."""
        return {name: kind.tools for name, kind in self._types.items()}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all types, in alphabetical order."""
        return tuple(sorted(self._types))


class WorkerProgress(BaseModel, frozen=True, extra="ignore"):
    """The state in which a worker waits for the user: its messages, and the results of its
    calls.
    """

    messages: tuple[dict[str, JsonValue], ...] = ()
    results: dict[str, JsonValue] = {}


class WorkerTask(BaseModel, frozen=True, extra="ignore"):
    """A worker with its brief, the facts that the user gave, and the findings of earlier
    workers.
    """

    worker: WorkerPlan
    question: str = Field(default="", description="of the user")
    criteria: tuple[str, ...] = Field(default=(), description="of the table, asked of each item")
    known: dict[str, JsonValue] = {}
    found: tuple[str, ...] = ()
    workers: int = Field(default=1, ge=1, description="of the plan")
    progress: WorkerProgress | None = None

    @property
    def most_bytes(self) -> int:
        """Maximum number of bytes of passages that this worker returns."""
        return max(_LEAST_BYTES, min(MOST_BYTES, _ALL_BYTES // self.workers))

    @property
    def objective(self) -> str:
        """The brief, with the facts that the user gave."""
        values = [str(value)[:_LONGEST_VALUE] for value in self.known.values() if value is not None]
        fresh = [
            value for value in values if value.casefold() not in self.worker.objective.casefold()
        ]
        return f"{self.worker.objective} ({', '.join(fresh)})" if fresh else self.worker.objective


def write_output(
    worker: WorkerPlan, results: Sequence[ToolResult], text: str = "", stop_reason: str = ""
) -> WorkerOutput:
    """Return the output of a worker, given the results of its calls; `text` is the worker's text.

    Passages that the text refers to come first. A worker without a successful call has failed, even
    if it made no call: what it wrote has no source.
    """
    found_passages = list(_read_passages(worker.id, results))
    safe = [passage for passage in found_passages if not is_order_to_assistant(passage.text)]
    ranked = safe
    if worker.subject and not text:
        # No model has read the passages: an item that none of them names counts as not found.
        is_named = any(names_subject(worker.subject, passage) for passage in safe)
        ranked = rank_by_subject(safe, worker.subject) if is_named else []
    ranked = sorted(ranked, key=lambda one: f"[{one.citation.chunk_id}]" not in text)
    passages = tuple(ranked[: MOST_PASSAGES if text else min(worker.passages, MOST_PASSAGES)])
    failed = sum(not result.success for result in results)
    errors = (result.error or "" for result in results if not result.success)
    return WorkerOutput(
        worker_id=worker.id,
        status=WorkerStatus.FAILED if failed == len(results) else WorkerStatus.DONE,
        text=text,
        passages=passages,
        calls=len(results),
        failed_calls=failed,
        left_out=len(found_passages) - len(safe),
        error=next(errors, "" if results else _NOT_LOOKED_UP)[:500],
        stop_reason=stop_reason,
        effects=tuple(
            result.tool for result in results if result.success and result.metadata.get(CHANGES)
        ),
    )


def fail_worker(worker: WorkerPlan, error: str) -> WorkerOutput:
    """Return the output of a worker that ended without a result."""
    return WorkerOutput(worker_id=worker.id, status=WorkerStatus.FAILED, error=error[:500])


def read_ends(
    outputs: Mapping[str, JsonValue], ledger: Mapping[str, JsonValue], plan: SwarmPlan
) -> dict[str, WorkerOutput]:
    """Return the outputs of the workers; for a worker that failed without any output, its error."""
    ends = read_outputs(outputs)
    for task in TaskLedger.model_validate(ledger).tasks:
        worker = plan.find_worker(task.task_id)
        has_ended = task.state in (TaskState.FAILED, TaskState.SKIPPED)
        if worker is not None and has_ended and worker.id not in ends:
            ends[worker.id] = fail_worker(worker, task.error)
    return ends


def rank_by_subject(passages: Sequence[FoundPassage], subject: str) -> list[FoundPassage]:
    """Return passages sorted by score, with those about the subject first."""
    wanted = set(split_words(subject.partition(_OUTSIDE_BRACKETS)[0])) or set(split_words(subject))

    def rate(passage: FoundPassage) -> float:
        own = set(split_words(f"{passage.citation.title} {passage.text}"))
        share = len(wanted & own) / max(1, len(wanted))
        return passage.citation.score + _SUBJECT_WEIGHT * share

    return sorted(passages, key=lambda one: -rate(one))


def names_subject(subject: str, passage: FoundPassage) -> bool:
    """Return whether a passage, including its location, contains half of the words of a subject."""
    citation = passage.citation
    language = citation.language or "en"
    wanted = set(terms(subject, language))
    place = " ".join((citation.title, *citation.crumbs, *citation.heading_path))
    own = set(terms(f"{place} {passage.text}", language))
    return len(wanted & own) >= _NAMED_SHARE * len(wanted)


def make_registry() -> WorkerRegistry:
    """Return a registry of the built-in types."""
    return WorkerRegistry(TYPES)


def open_worker(worker: WorkerPlan, tools: Sequence[ToolDescription]) -> ToolConversation:
    """Return the conversation in which a worker calls its tools.

    Only the tools of the brief are described.
    """
    own = tuple(tool for tool in tools if tool.name in worker.tools)
    brief = UserMessage(text=worker.objective)
    return ToolConversation(task=WORK_ON_TASK.name, messages=(brief,), tools=own)


def fit_output(output: WorkerOutput, most_bytes: int = MOST_BYTES) -> WorkerOutput:
    """Return an output with its whole text and the first passages that fit; the first always does.

    Instructions to an assistant are removed, and a text above `MOST_TEXT_BYTES`, which `error`
    states. `left_out` counts the passages that are not returned.
    """
    kept: list[FoundPassage] = []
    room = most_bytes
    for passage in output.passages[:MOST_PASSAGES]:
        if is_order_to_assistant(passage.text):
            continue
        room -= len(passage.model_dump_json().encode())
        if room < 0 and kept:
            break
        kept.append(passage)
    size, text, error, status = len(output.text.encode()), output.text, output.error, output.status
    if size > MOST_TEXT_BYTES:
        # Without passages nothing is left, which must not look as if nothing had been found.
        status = status if kept else WorkerStatus.FAILED
        text, error = "", f"expected a text of at most {MOST_TEXT_BYTES:,} bytes, found {size:,}"
    return output.model_copy(
        update={
            "status": status,
            "text": "" if is_order_to_assistant(text) else text,
            "error": error,
            "passages": tuple(kept),
            "left_out": output.left_out + len(output.passages) - len(kept),
        }
    )


def read_outputs(stored: Mapping[str, JsonValue]) -> dict[str, WorkerOutput]:
    """Return the outputs in a payload, by worker."""
    return {name: WorkerOutput.model_validate(value) for name, value in stored.items()}


def dump_outputs(outputs: Iterable[WorkerOutput]) -> dict[str, JsonValue]:
    """Return outputs in the format of a payload."""
    return {output.worker_id: output.model_dump(mode="json") for output in outputs}


def _read_passages(worker_id: str, results: Sequence[ToolResult]) -> Iterator[FoundPassage]:
    """Yield the passages quoted in results, without duplicates.

    A result that is itself a source, such as a calculation, is a passage with the tool's name.
    """
    seen: set[str] = set()
    for result in results:
        if result.error_type is not ToolErrorType.SUCCESS:
            continue
        passages = _read_quoted(result.quoted)
        for passage in passages or _read_cited(result.citations) or _read_own(worker_id, result):
            if passage.citation.chunk_id not in seen:
                seen.add(passage.citation.chunk_id)
                yield passage


def _read_quoted(quoted: Iterable[PassageText]) -> list[FoundPassage]:
    return [
        FoundPassage(
            citation=passage_text.citation,
            text=passage_text.text,
            relation=LINKED if passage_text.is_linked else "",
        )
        for passage_text in quoted
    ]


def _read_own(worker_id: str, result: ToolResult) -> list[FoundPassage]:
    if not result.is_source:
        return []
    citation = CitedPassage(
        chunk_id=f"{TOOL_SOURCE}{worker_id}/{result.call_id}",
        document_id=f"{TOOL_SOURCE}{result.tool}",
        title=result.tool,
    )
    return [FoundPassage(citation=citation, text=result.text)]


def _read_cited(citations: Iterable[CitedPassage]) -> list[FoundPassage]:
    return [FoundPassage(citation=citation, text="") for citation in citations]
