"""The steps of a tool loop as functions, and the loop itself for one process.

The flow makes each step a separate hop: it uses `open_conversation`, `read_calls` and
`add_results`. `run_loop` runs the same steps in one process, for evaluations.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from llm.conversations.port import ConversationModel, ModelStep
from llm.conversations.turns import (
    ModelMessage,
    ToolChoice,
    ToolConversation,
    ToolDescription,
    ToolMessage,
    UserMessage,
)
from tools.budget import ToolBudget
from tools.calls import CitedPassage, ToolCall, ToolCaller, ToolErrorType, ToolResult
from tools.executor import ToolExecutor
from tools.waves import arrange_waves

TASK = "reason"
MOST_STEPS = 10
MOST_CORRECTIONS = 3
"""The calls that a model may get wrong before it must answer; counted by kind, not by name."""
_CORRECTED = (ToolErrorType.HALLUCINATION, ToolErrorType.VALIDATION)


@dataclass(frozen=True, slots=True)
class LoopResult:
    """The end of a loop: `reason` is answered, corrections, budget or steps."""

    conversation: ToolConversation
    steps: tuple[ModelStep, ...]
    results: tuple[ToolResult, ...]
    reason: str

    @property
    def answer(self) -> str:
        """The text of the last message."""
        last = self.conversation.messages[-1]
        return last.text if isinstance(last, ModelMessage) else ""

    @property
    def passages(self) -> list[CitedPassage]:
        """The passages that results cite, each once, in the order in which they were shown."""
        return list_passages(self.results)


def open_conversation(
    question: str,
    tools: Sequence[ToolDescription],
    *,
    system: str = "",
    facts: dict[str, JsonValue] | None = None,
) -> ToolConversation:
    """Return the conversation in which a model plans calls for a question."""
    return ToolConversation(
        task=TASK,
        system=system,
        messages=(UserMessage(text=question),),
        tools=tuple(tools),
        facts=facts or {},
    )


def read_calls(message: ModelMessage) -> list[ToolCall]:
    """Return the calls of a message; nothing about them is checked."""
    return [
        ToolCall(
            call_id=use.call_id,
            tool=use.name,
            arguments=use.arguments,
            depends_on=use.depends_on,
        )
        for use in message.calls
    ]


def add_results(
    conversation: ToolConversation, message: ModelMessage, results: Sequence[ToolResult]
) -> ToolConversation:
    """Return the conversation after a message and the results of its calls, in their order."""
    by_id = {result.call_id: result for result in results}
    found = [by_id[use.call_id] for use in message.calls if use.call_id in by_id]
    return conversation.extend(message, *map(make_tool_message, found))


def make_tool_message(result: ToolResult) -> ToolMessage:
    """Return a result as a model reads it: its text, and every citation that the text lost."""
    sources = tuple(citation.chunk_id for citation in result.citations)
    lost = [source for source in sources if f"[{source}]" not in result.text]
    further = f"\nfurther sources: {', '.join(f'[{source}]' for source in lost)}" if lost else ""
    return ToolMessage(
        call_id=result.call_id,
        name=result.tool,
        text=f"{result.text}{further}",
        is_error=not result.success,
        sources=sources,
    )


def list_passages(results: Sequence[ToolResult]) -> list[CitedPassage]:
    """Return the passages that results cite, each once, in order."""
    cited = (citation for result in results for citation in result.citations)
    found: dict[str, CitedPassage] = {}
    for citation in cited:
        found.setdefault(citation.chunk_id, citation)
    return list(found.values())


def find_end(results: Sequence[ToolResult]) -> str:
    """Return why a model must answer now, from all results so far; empty: it may go on."""
    kinds = Counter(result.error_type for result in results)
    if kinds[ToolErrorType.BUDGET]:
        return "budget"
    return "corrections" if any(kinds[kind] > MOST_CORRECTIONS for kind in _CORRECTED) else ""


async def execute_calls(
    executor: ToolExecutor,
    calls: Sequence[ToolCall],
    caller: ToolCaller,
    budget: ToolBudget | None = None,
) -> list[ToolResult]:
    """Return the results of calls, wave by wave; calls that can never run are refused."""
    arranged = arrange_waves(calls)
    results = list(arranged.refused)
    for wave in arranged.waves:
        results += await executor.execute_wave(wave, caller, budget)
    return results


async def run_loop(
    model: ConversationModel,
    executor: ToolExecutor,
    conversation: ToolConversation,
    caller: ToolCaller,
    *,
    budget: ToolBudget | None = None,
    most_steps: int = MOST_STEPS,
) -> LoopResult:
    """Ask and run calls until the model answers; at a limit it is asked once more, without tools.

    Raises what the model raises: results of tools never do.
    """
    steps: list[ModelStep] = []
    results: list[ToolResult] = []
    reason = ""
    while not reason:
        if len(steps) >= most_steps:
            reason = "steps"
            break
        step = await model.converse(conversation)
        steps.append(step)
        if not step.message.calls:
            return LoopResult(
                conversation.extend(step.message), tuple(steps), tuple(results), "answered"
            )
        found = await execute_calls(executor, read_calls(step.message), caller, budget)
        results += found
        conversation = add_results(conversation, step.message, found)
        reason = find_end(results)
    last = await model.converse(conversation.model_copy(update={"tool_choice": ToolChoice.NONE}))
    steps.append(last)
    message = ModelMessage(text=last.message.text)
    return LoopResult(conversation.extend(message), tuple(steps), tuple(results), reason)
