"""Plans the calls of a search without a model: a search for each part, then along its links.

Nothing is decided about the meaning of a question or of a result: the plan is the same for all.
"""

from collections.abc import Sequence

from pydantic import JsonValue

from llm.conversation import ToolUse
from tools.dialogue import Dialogue, list_passages
from tools.listed_parts import split_questions

MOST_ROUNDS = 3
_FIRST_SHARE = 0.4
_LONGEST_QUERY = 2_000
_MOST_STARTS, _MOST_EXCLUDED = 20, 100


def plan_searches(
    question: str, dialogue: Dialogue, *, most_passages: int, most_rounds: int = MOST_ROUNDS
) -> tuple[ToolUse, ...]:
    """Return the calls of the next round; none when the plan has ended.

    Each part that the question lists is searched for once. A question of one part goes on from the
    passages that were found, along their links, until `most_passages` or `most_rounds` are reached.
    """
    rounds = len(dialogue.messages)
    parts = split_questions(question) or (question,)
    if not rounds and len(parts) > 1:
        share = max(1, most_passages // len(parts))
        return dialogue.number([_search(one, share) for one in parts])
    shown = [one.chunk_id for one in list_passages(dialogue.ordered_results)]
    left = most_passages - len(shown)
    if len(parts) > 1 or rounds >= most_rounds or left <= 0 or (rounds and not shown):
        return ()
    if not rounds and most_rounds > 1:
        return dialogue.number([_search(question, max(1, round(most_passages * _FIRST_SHARE)))])
    share = -(-left // max(1, most_rounds - rounds))
    return dialogue.number([_search(question, share, shown)])


def _search(query: str, limit: int, shown: Sequence[str] = ()) -> ToolUse:
    arguments: dict[str, JsonValue] = {
        "query": query[:_LONGEST_QUERY],
        "method": "graph",
        "limit": limit,
    }
    if shown:
        arguments |= {"start": [*shown[:_MOST_STARTS]], "exclude": [*shown[:_MOST_EXCLUDED]]}
    return ToolUse(call_id="", name="search", arguments=arguments)
