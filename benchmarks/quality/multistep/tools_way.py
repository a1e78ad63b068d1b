"""The searches of the tool loop without a model, in one process."""

from dataclasses import replace

from benchmarks.quality.multistep.ways import EvaluationParts, FoundPages
from knowledge.sections import document_of
from llm.conversations.turns import ModelMessage, ToolConversation
from tools.calls import ToolCall, ToolCaller
from tools.catalog import make_builtin
from tools.dialogue import Dialogue, execute_calls, list_passages
from tools.executor import ToolExecutor
from tools.plain_search import plan_searches


class ToolsWay:
    """A search for each part that a question lists; for a single one, along its links."""

    def __init__(self, parts: EvaluationParts) -> None:
        self._executor = ToolExecutor(make_builtin(parts))

    async def find(self, text: str, k: int) -> FoundPages:
        dialogue = Dialogue(ToolConversation(task="reason", messages=()))
        while calls := plan_searches(text, dialogue, most_passages=k):
            made = [
                ToolCall(call_id=one.call_id, tool=one.name, arguments=one.arguments)
                for one in calls
            ]
            found = await execute_calls(self._executor, made, ToolCaller(agent="reason"))
            dialogue = replace(
                dialogue,
                messages=(*dialogue.messages, ModelMessage(calls=calls)),
                results={**dialogue.results, **{one.call_id: one for one in found}},
            )
        cited = list_passages(dialogue.ordered_results)
        return FoundPages(
            document_ids=tuple(dict.fromkeys(document_of(one.chunk_id) for one in cited))[:k],
            calls=len(dialogue.results),
            rounds=len(dialogue.messages),
        )
