"""Names tools of others that a task needs and that rules cannot call: they know no values for them.

A page that names a tool makes it more likely, and calls nothing.
"""

from llm.conversations.turns import ToolConversation, UserMessage
from llm.offline.planning.tool_choice import choose_tools
from llm.offline.rounds.plan_state import NAMED_ON, OUTSIDE, list_inputs, read_state

_MOST_NEEDED = 50
_LONGEST_TASK = 20_000
"""Longer than the part of a question by which calls are planned: a matter names tools anywhere."""


def list_needed_tools(conversation: ToolConversation) -> list[str]:
    """Return the names of tools, the surest first; none of them was called."""
    outside = conversation.facts.get(OUTSIDE)
    names = set(outside) if isinstance(outside, list) else set()
    tools = [tool for tool in conversation.tools if tool.name in names]
    if not tools:
        return []
    state = read_state(conversation)
    ranks = conversation.facts.get(NAMED_ON)
    task = next((one.text for one in conversation.messages if isinstance(one, UserMessage)), "")
    chosen = choose_tools(
        task[:_LONGEST_TASK],
        {tool.name: tool.description for tool in tools},
        {name: rank for name, rank in ranks.items() if isinstance(rank, int)}
        if isinstance(ranks, dict)
        else {},
        {tool.name: sorted(list_inputs(tool)) for tool in tools},
    )
    called = {name for name, _ in state.made}
    return [name for name in chosen if name not in called][:_MOST_NEEDED]
