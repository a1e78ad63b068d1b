"""Works on one task of the plan, one step at a time; its calls run in branches."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from pydantic import BaseModel, JsonValue

from agents.agent import Agent, AgentParts, DeskDomain, ProgressStep
from agents.swarm.swarm_plan import MOST_STEPS, WorkerPlan
from agents.swarm.workers import (
    LONGEST_PERSONA,
    WorkerOutput,
    WorkerProgress,
    WorkerStatus,
    WorkerTask,
    dump_outputs,
    fit_output,
    open_worker,
    write_output,
)
from citations.wording import find_asking_fault
from envelope.conversation import InputField, PauseQuestion
from envelope.outcome import GaveUp, HopOutcome, RetryAfter, Wrote
from envelope.role import Role
from llm.errors import ModelError, ModelUnavailable
from llm.port import (
    ConversationModel,
    Model,
    ModelMessage,
    Remark,
    ToolDescription,
    ToolUse,
    UserMessage,
)
from llm.tasks.swarm import WORK_ON_TASK, WorkOnTaskInputs
from tools.calls import ToolErrorType, ToolResult
from tools.catalog import ToolCatalog, describe_tools
from tools.dialogue import (
    MOST_CALLS,
    MOST_ROUNDS,
    Dialogue,
    DialogueEnd,
    DialogueLimits,
    DialogueStep,
    describe_calls,
    plan_searches,
    read_results,
)
from tools.passages import describe_documents, list_languages

if TYPE_CHECKING:
    from knowledge.index.listing import ListedDocument

ASK_USER = "ask_user"
ListDocuments = Callable[[Sequence[str]], "Awaitable[Sequence[ListedDocument]]"]
"""Returns the documents that a person in these groups may read."""
LONGEST_WAIT_SECONDS = 15.0
"""How long a worker waits for a model whose rate limit or circuit breaker requires a pause."""
_NO_ANSWER = "The user did not answer."
_ASK_TOOL = ToolDescription(
    name=ASK_USER,
    description="Ask the user for one fact about their own case that no document has.",
    input_schema={
        "type": "object",
        "properties": {"question": {"type": "string"}},
        "required": ["question"],
    },
)


class Reads(BaseModel, frozen=True):
    """The task, the messages so far with their results, and the user's replies."""

    worker_task: dict[str, JsonValue]
    tool_calls: tuple[dict[str, JsonValue], ...] = ()
    plan_messages: tuple[dict[str, JsonValue], ...] = ()
    multi_tool_results: dict[str, JsonValue] = {}
    needs_input: tuple[PauseQuestion, ...] = ()
    user_inputs: dict[str, JsonValue] = {}
    language: str = "en"
    persona: str = ""
    groups: tuple[str, ...] = ()


class Writes(BaseModel, frozen=True):
    """The next calls, if any; the findings so far; and the state in which it waits for the user."""

    tool_calls: tuple[dict[str, JsonValue], ...] = ()
    plan_messages: tuple[dict[str, JsonValue], ...] = ()
    worker_outputs: dict[str, JsonValue] = {}
    worker_progress: dict[str, JsonValue] = {}
    needs_input: tuple[PauseQuestion, ...] = ()


class WorkAgent(Agent[Reads, Writes]):
    """Asks a model for the next calls until there are none; without a model, it makes plain
    searches.

    A worker that waited for the user continues with its messages, so that neither a message nor a
    call that has a result is repeated. Calls of tools that are not in the brief never run.
    """

    role = Role.WORK
    step = ProgressStep.SEARCH
    model_task = WORK_ON_TASK
    needs_index = True
    reads = Reads
    writes = Writes

    def __init__(
        self,
        *,
        model: Model,
        tools: ToolCatalog,
        list_documents: ListDocuments,
        domain: DeskDomain | None = None,
        uses_model: bool = True,
    ) -> None:
        self._model = model
        self._tools = describe_tools(tools.select())
        self._list_documents = list_documents
        self._domain = DeskDomain() if domain is None else domain
        self._uses_model = uses_model

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        return cls(
            model=parts.model(WORK_ON_TASK.name),
            tools=parts.tools,
            list_documents=parts.library.list_documents,
            domain=DeskDomain.of(parts.settings),
            uses_model=parts.uses_model,
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        task = WorkerTask.model_validate(reads.worker_task)
        dialogue = await self._open(task, reads)
        if not self._uses_model:
            return Wrote(_search(task, dialogue))
        if not isinstance(self._model, ConversationModel):
            return GaveUp(f"the model {self._model.name!r} does not support tool calls")
        if reads.needs_input:
            return Wrote(_stop(task, dialogue, reads.needs_input, is_new=False))
        has_waited = task.progress is not None and bool(task.progress.messages)
        if has_waited and not reads.tool_calls and dialogue.pending:
            return Wrote(Writes(tool_calls=describe_calls(dialogue.pending)))
        try:
            step, fault = await self._take_step(self._model, task, dialogue, reads)
        except ModelError as error:
            return _wait_or_give_up(error)
        if fault:
            return GaveUp(
                f"the question asks the user for information that must not be requested: {fault}"
            )
        if step.end is None:
            return Wrote(_go_on(task, dialogue, step.message))
        return Wrote(Writes(worker_outputs=_write(task, dialogue, step.message.text, step.end)))

    async def _take_step(
        self, model: ConversationModel, task: WorkerTask, dialogue: Dialogue, reads: Reads
    ) -> tuple[DialogueStep, str]:
        """Return the next step, and why its question to the user must not be asked, or an empty
        string.

        Such a question is sent back once.
        """
        # Not the objective: a model wrote it.
        given = " ".join(map(str, (*task.known.values(), *reads.user_inputs.values())))
        step = await dialogue.take_step(model, self.run)
        if not (fault := _find_asking_fault(step.message, given)):
            return step, ""
        remark = UserMessage(remark=Remark(refused_question=fault))
        step = await replace(dialogue, remarks=(remark,)).take_step(model, self.run)
        return step, _find_asking_fault(step.message, given)

    async def _open(self, task: WorkerTask, reads: Reads) -> Dialogue:
        worker = task.worker
        opened = open_worker(worker, self._tools)
        listed = await self._list_documents(reads.groups) if self._uses_model else ()
        opening = opened.model_copy(
            update={
                "task": WORK_ON_TASK.name,
                "messages": (UserMessage(text=task.objective),),
                "tools": (*opened.tools, _ASK_TOOL),
                "prompt": WorkOnTaskInputs(
                    objective=worker.objective,
                    question=task.question,
                    domain_name=self._domain.name,
                    domain_scope=self._domain.scope,
                    documents=describe_documents(listed, task.objective),
                    document_languages=list_languages(listed),
                    language=reads.language,
                    persona=reads.persona[:LONGEST_PERSONA],
                    criteria=task.criteria if worker.subject else (),
                    role=worker.role,
                    specialization=worker.specialization,
                    output=worker.output,
                    known=task.known,
                    found=task.found,
                    most_calls=MOST_CALLS,
                ),
                # Questions that overlap have equal parts, which are paid once; see
                # MODEL_CACHE_SECONDS.
                "sharing": tuple(sorted(reads.groups)),
            }
        )
        before = task.progress or WorkerProgress()
        messages = tuple(
            ModelMessage.model_validate(message)
            for message in (*before.messages, *reads.plan_messages)
        )
        results = read_results({**before.results, **reads.multi_tool_results})
        if before.messages:
            results |= _list_answers(task, messages, results, reads.user_inputs)
        limits = DialogueLimits(MOST_STEPS, MOST_CALLS, must_look=True)
        return Dialogue(opening, messages, results, limits=limits)


def plan_worker_searches(
    worker: WorkerPlan, dialogue: Dialogue, objective: str = ""
) -> tuple[ToolUse, ...]:
    """Return the next searches; a worker with an item searches once, and others follow links."""
    return plan_searches(
        objective or worker.objective,
        dialogue,
        most_passages=worker.passages,
        most_rounds=1 if worker.subject else MOST_ROUNDS,
    )


def _wait_or_give_up(error: ModelError) -> RetryAfter[Writes] | GaveUp:
    """Return the outcome after a failed call, which is to wait if the model will soon be available
    again. Starting again immediately would use up the retries of the worker before the model can be
    called.
    """
    reason = f"{error.reason}: {error}"
    seconds = error.retry_after_seconds if isinstance(error, ModelUnavailable) else None
    if seconds is None or seconds > LONGEST_WAIT_SECONDS:
        return GaveUp(reason)
    return RetryAfter(seconds, reason)


def _search(task: WorkerTask, dialogue: Dialogue) -> Writes:
    """Return the next plain searches, or their results."""
    calls = plan_worker_searches(task.worker, dialogue, task.objective)
    outputs = _write(task, dialogue, "")
    if not calls:
        return Writes(worker_outputs=outputs)
    message = ModelMessage(calls=calls)
    return Writes(
        tool_calls=describe_calls(calls),
        plan_messages=(message.model_dump(mode="json"),),
        worker_outputs=outputs,
    )


def _find_asking_fault(message: ModelMessage, given: str) -> str:
    """Return why a question to the user in a message must not be asked, or "" if it may."""
    asked = (str(call.arguments) for call in message.calls if call.name == ASK_USER)
    return next((fault for info in asked if (fault := find_asking_fault(info, given))), "")


def _go_on(task: WorkerTask, dialogue: Dialogue, message: ModelMessage) -> Writes:
    """Return the tool calls of a message, or its question to the user."""
    asked = [use for use in message.calls if use.name == ASK_USER]
    if asked:
        questions = tuple(_make_question(task, use, dialogue) for use in asked)
        waiting = replace(dialogue, messages=(*dialogue.messages, message))
        return _stop(task, waiting, questions, is_new=True)
    return Writes(
        tool_calls=describe_calls(message.calls),
        plan_messages=(message.model_dump(mode="json"),),
        worker_outputs=_write(task, dialogue, dialogue.last_text),
    )


def _write(
    task: WorkerTask, dialogue: Dialogue, text: str, end: DialogueEnd | None = None
) -> dict[str, JsonValue]:
    results = list(dialogue.results.values())
    reason = "" if end is None else end.value
    written = write_output(task.worker, results, text, reason)
    return dump_outputs([fit_output(written, task.most_bytes)])


def _stop(
    task: WorkerTask, dialogue: Dialogue, questions: tuple[PauseQuestion, ...], *, is_new: bool
) -> Writes:
    """Return the final state of the worker, with its question to the user if there is one."""
    progress = WorkerProgress(
        messages=tuple(message.model_dump(mode="json") for message in dialogue.messages),
        results={name: result.model_dump(mode="json") for name, result in dialogue.results.items()},
    )
    output = WorkerOutput(worker_id=task.worker.id, status=WorkerStatus.NEEDS_INPUT)
    return Writes(
        worker_outputs=dump_outputs([output]),
        worker_progress={task.worker.id: progress.model_dump(mode="json")},
        needs_input=questions if is_new else (),
    )


def _make_question(task: WorkerTask, use: ToolUse, dialogue: Dialogue) -> PauseQuestion:
    """Return a question to the user, in which passages have their titles instead of their ids."""
    arguments = use.arguments if isinstance(use.arguments, dict) else {}
    text = str(arguments.get("question") or task.worker.objective)
    read = [citation for result in dialogue.results.values() for citation in result.citations]
    titles = {citation.chunk_id: citation.title for citation in read}
    for chunk_id in sorted(titles, key=len, reverse=True):
        for written in (f"[{chunk_id}]", f"({chunk_id})", chunk_id):
            text = text.replace(written, titles[chunk_id])
    name = _name_field(task, use.call_id)
    return PauseQuestion(id=name, text=text[:1_000], field=InputField(name=name))


def _name_field(task: WorkerTask, call_id: str) -> str:
    return f"{task.worker.id}_{call_id}".replace("-", "_").lower()[:60]


def _list_answers(
    task: WorkerTask,
    messages: Sequence[ModelMessage],
    results: Mapping[str, ToolResult],
    answers: Mapping[str, JsonValue],
) -> dict[str, ToolResult]:
    """Return a result for each question to the user; a missing answer also gets a result."""
    by_call = {}
    for message in messages:
        for use in message.calls:
            if use.name == ASK_USER and use.call_id not in results:
                given = answers.get(_name_field(task, use.call_id))
                by_call[use.call_id] = ToolResult(
                    call_id=use.call_id,
                    tool=ASK_USER,
                    success=True,
                    error_type=ToolErrorType.SUCCESS,
                    text=_NO_ANSWER if given is None else str(given)[:2_000],
                )
    return by_call
