"""The tool loop as users get it: its agents with the offline rules, one after the other.

Planning, calls, the answer and its assessment are those of the product, in one process: only the
broker and the steps before and after the loop are left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, JsonValue

from agents.agent import Agent
from agents.response import ResponseAgent
from agents.tool_loop import assess, reason, reflect
from config.texts import load_texts
from deploy.evaluation.multistep.ways import EvaluationParts, FoundPages
from envelope.outcome import Wrote
from knowledge.sections import document_of
from llm.offline.model import OfflineModel
from llm.offline.planning.assessment import Evidence, measure_completeness
from tools.calls import ToolCall, ToolCaller, ToolErrorType, ToolResult
from tools.catalog import make_builtin
from tools.dialogue import execute_calls, list_passages
from tools.errors import ToolRejected
from tools.executor import ToolExecutor
from tools.tool import Tool

_ROUNDS = 3
_COMPARISON = "compare_documents"
_KINDS = ("added", "removed", "changed")


class DeskTool(Tool[BaseModel, BaseModel]):
    """A tool that a folder of tasks describes; it cannot be called."""

    inputs = BaseModel
    output = BaseModel

    def __init__(self, name: str, description: str, arguments: Iterable[str]) -> None:
        self.name = name
        self.description = description
        self._arguments = tuple(arguments)

    def describe_inputs(self) -> dict[str, JsonValue]:
        properties: dict[str, JsonValue] = {name: {"type": "string"} for name in self._arguments}
        return {"type": "object", "properties": properties, "required": [*self._arguments]}

    async def run(self, inputs: BaseModel, caller: ToolCaller) -> BaseModel:
        raise ToolRejected(f"{self.name} is described, and not there")


@dataclass(slots=True)
class _LoopState:
    """The payload of one question while its loop runs."""

    payload: dict[str, Any]
    results: dict[str, ToolResult] = field(default_factory=dict)
    steps: int = 0

    async def run(self, agent: Agent[Any, Any]) -> dict[str, Any]:
        """Let an agent read the payload and write to it; return what it wrote."""
        known = {
            name: self.payload[name] for name in agent.reads.model_fields if name in self.payload
        }
        outcome = await agent.work(agent.reads.model_validate(known))
        if not isinstance(outcome, Wrote):
            raise ValueError(f"expected that {agent.role} writes, found {outcome!r}")
        written: dict[str, Any] = outcome.writes.model_dump(mode="json")
        appended = ("plan_messages", "plan_rounds")
        self.payload |= {name: one for name, one in written.items() if name not in appended}
        for name in appended:
            self.payload[name] = [*self.payload.get(name, ()), *written.get(name, ())]
        return written


class ToolsWay:
    """The tool loop with the offline rules, over the built-in tools and those of a desk."""

    def __init__(
        self,
        parts: EvaluationParts,
        tools: Mapping[str, str],
        inputs: Mapping[str, Sequence[str]],
    ) -> None:
        own = [DeskTool(name, about, inputs.get(name, ())) for name, about in tools.items()]
        self._catalog = make_builtin(parts).extend(own)
        self._executor = ToolExecutor(self._catalog)
        self._library = parts.library
        model = OfflineModel()
        self._reflect = reflect.ReflectAgent()
        self._respond = ResponseAgent(model=model, texts=load_texts())
        self._assess = assess.AssessAgent(model=model)

    async def find(self, text: str, k: int) -> FoundPages:
        state = _LoopState({"canonical_question": text, "language": "en"})
        planner = reason.ReasonAgent(
            model=OfflineModel(),
            tools=self._catalog,
            list_versions=self._library.list_versions,
            find_named=self._library.find_named,
            read_texts=self._library.read_texts,
            limits=reason.PlanLimits(most_rounds=_ROUNDS, most_passages=k),
        )
        for _ in range(_ROUNDS):
            await self._plan(planner, state)
            if state.payload.get("loop_end"):
                break
            await state.run(self._reflect)
            await state.run(self._respond)
            if state.payload.get("needs_clarification"):
                state.payload |= {"assessment": None, "needs_clarification": False}
                continue
            assessed = (await state.run(self._assess))["assessment"]
            if assessed is None or assessed["is_enough"]:
                break
        return self._describe(text, k, state)

    async def _plan(self, planner: reason.ReasonAgent, state: _LoopState) -> None:
        """Let the planner plan and its calls run, until an answer can be written."""
        goes_on = True
        while goes_on:
            written = await state.run(planner)
            calls = [ToolCall.model_validate(call) for call in written["tool_calls"]]
            state.steps += bool(calls)
            found = await execute_calls(self._executor, calls, ToolCaller(agent="reason"))
            state.results |= {one.call_id: one for one in found}
            state.payload["multi_tool_results"] = {
                name: one.model_dump(mode="json") for name, one in state.results.items()
            }
            goes_on = written["continues_planning"]

    def _describe(self, text: str, k: int, state: _LoopState) -> FoundPages:
        results = list(state.results.values())
        evidence = [one for found in results if found.tool != _COMPARISON for one in _read(found)]
        ids = dict.fromkeys(document_of(one.chunk_id) for one in list_passages(results))
        rounds = state.payload.get("plan_rounds", ())
        return FoundPages(
            document_ids=tuple(ids)[:k],
            texts=tuple(one.text for one in evidence),
            confidence=measure_completeness(text, evidence),
            calls=len(results),
            rounds=state.steps,
            unknown_tools=sum(one.error_type is ToolErrorType.HALLUCINATION for one in results),
            changes=_read_changes(results),
            needed_tools=tuple(rounds[-1]["needed"]) if rounds else (),
        )


def _read(result: ToolResult) -> list[Evidence]:
    return [
        Evidence(
            text=f"{one.citation.title}\n{one.text}",
            score=one.citation.score,
            is_linked=one.is_linked,
        )
        for one in result.quoted
    ]


def _read_changes(results: Iterable[ToolResult]) -> Mapping[str, tuple[str, ...]] | None:
    for result in results:
        if result.tool == _COMPARISON and isinstance(result.data, dict):
            changes: Any = result.data["changes"]
            return {
                kind: tuple(one["document_id"] for one in changes if one["change"] == kind)
                for kind in _KINDS
            }
    return None
