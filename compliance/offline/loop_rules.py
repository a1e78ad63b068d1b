"""Plans the calls of tools of specialists without a model: only the extractor searches."""

from llm.conversations.turns import ModelMessage, ToolConversation, ToolUse
from llm.tasks.specialists.extractor import Inputs

_PREFERRED = ("hybrid_search", "search")


def write_next(conversation: ToolConversation) -> ModelMessage:
    """Return one search for the question, then nothing more."""
    inputs, names = conversation.prompt, {tool.name for tool in conversation.tools}
    if len(conversation.messages) > 1 or not isinstance(inputs, Inputs):
        return ModelMessage()
    tool = next((name for name in _PREFERRED if name in names), "")
    if not tool:
        return ModelMessage()
    arguments = {"query": inputs.question, "limit": inputs.most_results}
    return ModelMessage(calls=(ToolUse(call_id="search", name=tool, arguments=arguments),))
