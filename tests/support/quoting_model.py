"""A model that searches once for what it is asked, and quotes what it found: honest and plain.

It plays the model of a whole desk where a test is about the engine, not about words.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from pydantic import BaseModel

from envelope.run import OUTSIDE, Run
from llm.errors import NoModel
from llm.port import (
    ModelAnswer,
    ModelMessage,
    ModelStep,
    StopReason,
    ToolConversation,
    ToolMessage,
    ToolUse,
    Usage,
)
from llm.tasks.question import (
    EssenceInputs,
    EssenceOutput,
    ScopeInputs,
    ScopeOutput,
    TranslateInputs,
    TranslateOutput,
)
from llm.tasks.search import JudgeInputs, JudgeOutput, RespondInputs, RespondOutput
from llm.tasks.swarm import (
    PlannedWorker,
    PlanSwarmInputs,
    PlanSwarmOutput,
    SynthesizeFindingsInputs,
    SynthesizeFindingsOutput,
)
from tools.listed_parts import find_items


class QuotingModel:
    """Answers the tasks of the ways; for every other task it says that there is no model."""

    name = "quoting"

    async def ask(
        self, task: Any, inputs: Any, run: Run = OUTSIDE, **options: Any
    ) -> ModelAnswer[Any]:
        if task.name not in _ANSWERS:
            raise NoModel(f"expected a model for {task.name!r}, found none")
        output: Any = _ANSWERS[task.name](inputs)
        return ModelAnswer(output, self.name, Usage(), Decimal(0), 0.0)

    async def converse(
        self, conversation: ToolConversation, run: Run = OUTSIDE, *, skip: int = 0
    ) -> ModelStep:
        tool_messages = [
            tool_message
            for tool_message in conversation.messages
            if isinstance(tool_message, ToolMessage)
        ]
        sources = [source for item in tool_messages for source in item.sources]
        message = ModelMessage(text=f"Found: [{sources[0]}]" if sources else "DONE")
        if not tool_messages:
            arguments = {"query": conversation.messages[0].text, "limit": 3}
            call = ToolUse(call_id="a", name="search", arguments=arguments)
            message = ModelMessage(calls=(call,))
        stop = StopReason.TOOL_USE if message.calls else StopReason.END_TURN
        return ModelStep(message, stop, self.name, Usage(), Decimal(0), 0.0)


def _translate(inputs: TranslateInputs) -> TranslateOutput:
    return TranslateOutput(text_eng=inputs.text, confidence=1)


def _essence(inputs: EssenceInputs) -> EssenceOutput:
    question = inputs.text_eng or inputs.text
    return EssenceOutput(canonical_question=question, context_type="new_topic")


def _scope(_inputs: ScopeInputs) -> ScopeOutput:
    return ScopeOutput(verdict="within", confidence=1, analysis="it is about the documents")


def _plan(inputs: PlanSwarmInputs) -> PlanSwarmOutput:
    listed = find_items(inputs.question)
    items = (inputs.question,) if listed is None else listed.items
    workers = [
        PlannedWorker(role="research", objective=f"{inputs.question} ({item})") for item in items
    ]
    return PlanSwarmOutput(action="orchestrate", complexity=0.6, workers=tuple(workers))


def _respond(inputs: RespondInputs) -> RespondOutput:
    text = _quote_sources(inputs.sources[:3])
    return RespondOutput(status="answered", answer=text, confidence=0.9)


def _synthesize(inputs: SynthesizeFindingsInputs) -> SynthesizeFindingsOutput:
    return SynthesizeFindingsOutput(answer=_quote_sources(inputs.sources[:6]))


def _judge(_inputs: JudgeInputs) -> JudgeOutput:
    return JudgeOutput(
        claims_read=1, completeness=1, accuracy=1, language_matches=True, decision="approve"
    )


def _quote_sources(sources: Any) -> str:
    return "\n\n".join(f"{_quote(source.text)} [{source.number}]" for source in sources)


def _quote(text: str) -> str:
    """Return the first line of prose of a passage."""
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line[:1].isalnum()), " ".join(text.split()))


_ANSWERS: Mapping[str, Callable[[Any], BaseModel]] = {
    "translate": _translate,
    "essence": _essence,
    "scope": _scope,
    "plan_swarm": _plan,
    "respond": _respond,
    "synthesize_findings": _synthesize,
    "judge": _judge,
}
