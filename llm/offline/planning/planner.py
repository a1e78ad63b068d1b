"""Plans calls of tools by rules, round by round: the offline model of the conversation `reason`.

The first round asks for what the question names: a calculation, a comparison of two versions, the
tools of a set whose names say what the question asks for, and a search for each separate question.
A question of several steps goes on from the passages that were found before an answer is written;
any other is answered first, and a further round looks for what that answer lacks. The passages of
all rounds before an answer are bounded together.

The rules read results only as sources; nothing in a text is taken for an instruction.
"""

import json
from collections.abc import Iterator

from pydantic import JsonValue

from llm.conversations.turns import ModelMessage, ToolChoice, ToolConversation, ToolUse
from llm.offline.planning.question_steps import needs_several_looks
from llm.offline.rounds.first_round import list_first
from llm.offline.rounds.further_rounds import list_refined, list_walk
from llm.offline.rounds.plan_state import OUTSIDE, SEARCHES, Call, PlanState, read_state


def write_next(conversation: ToolConversation) -> ModelMessage:
    """Return the next calls, or a text without calls when the plan has ended."""
    state = read_state(conversation)
    # The manager counts the rounds after an answer; those before it are counted here.
    is_walked = state.rounds >= state.most_rounds and state.gaps is None
    is_over = is_walked or conversation.tool_choice is ToolChoice.NONE
    uses = [] if is_over else list(_number(state, _list_calls(state)))
    if not uses:
        return ModelMessage(text=f"{len(state.shown)} passages were found.")
    return ModelMessage(text=_explain(state, uses), calls=tuple(uses))


def has_next(conversation: ToolConversation) -> bool:
    """Return whether the plan goes on before an answer is written; the last calls still run."""
    state = read_state(conversation)
    if state.gaps is not None or state.rounds >= state.most_rounds:
        return False
    if state.question.is_long:
        # The pages that are found name tools of others.
        return bool(conversation.facts.get(OUTSIDE)) and state.rounds == 1
    # A tool of a set that fits the question leads nowhere else.
    is_searched = any(name in SEARCHES for name, _ in state.made)
    return is_searched and needs_several_looks(state.question.text)


def _list_calls(state: PlanState) -> Iterator[Call]:
    if state.documents and state.criteria and "check_criteria" in state.tools:
        yield from _list_checks(state)
    elif not state.rounds:
        yield from list_first(state)
    elif not state.question.is_long:
        yield from list_walk(state) if state.gaps is None else list_refined(state)


def _list_checks(state: PlanState) -> Iterator[Call]:
    """Yield one call a document in the first round; there is no second one."""
    for document_id in state.documents if not state.rounds else ():
        criteria: list[JsonValue] = [*state.criteria]
        yield "check_criteria", {"document_id": document_id, "criteria": criteria}


def _explain(state: PlanState, uses: list[ToolUse]) -> str:
    """Return why these calls are made, for those who read the trace."""
    names = ", ".join(use.name for use in uses)
    if not state.rounds:
        cues = ", ".join(sorted(state.question.cues))
        reason = f"the question asks for {cues}" if cues else "a search for the question"
    elif state.gaps is None:
        reason = f"going on from {len(state.shown)} passages"
    else:
        reason = f"the answer lacks: {'; '.join(state.gaps)}" if state.gaps else "no answer yet"
    return f"round {state.rounds + 1}: {names} ({reason})"


def _number(state: PlanState, calls: Iterator[Call]) -> Iterator[ToolUse]:
    """Yield calls with ids; no call is made twice."""
    seen = set()
    for name, arguments in calls:
        key = name, json.dumps(arguments, sort_keys=True)
        if key not in seen:
            seen.add(key)
            call_id = f"r{state.rounds + 1}-{len(seen)}"
            yield ToolUse(call_id=call_id, name=name, arguments=arguments)
