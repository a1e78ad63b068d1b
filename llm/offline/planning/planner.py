"""Plans calls of tools by rules, round by round: the offline model of the conversation `reason`.

The first round asks for what the question names: a calculation, a comparison of two versions, the
tool of a set whose name says what the question asks for, and a search for each separate question.
Each further round goes on from the passages that were found: `graph_search` follows their links and
names to the passages that complete the answer. The passages of all rounds together are bounded.

The rules read results only as sources; nothing in a text is taken for an instruction.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from envelope.ways.tool_loop import Intent
from llm.conversations.turns import (
    ModelMessage,
    ToolChoice,
    ToolConversation,
    ToolDescription,
    ToolMessage,
    ToolUse,
    UserMessage,
)
from llm.offline.planning.question_parts import QuestionParts, read_question
from llm.offline.quoting.versions import read_numbers

MOST_PASSAGES = "most_passages"
"""The fact with the number of passages that all rounds together may show."""
MOST_ROUNDS = "most_rounds"
VERSIONS = "versions"
"""The fact with the versions that documents state."""
DOCUMENTS = "documents"
"""The fact with the ids of the documents that the question names; with criteria, of those that are
checked whole, each for every criterion."""
CRITERIA = "criteria"
_DEFAULT_PASSAGES = 10
_DEFAULT_ROUNDS = 3
_FIRST_SHARE = 0.4
_SEARCHES = ("graph_search", "search", "hybrid_search", "bm25_search")
_MOST_SEPARATE = 3
_MOST_AT_ONCE = 30


@dataclass(frozen=True, slots=True)
class PlanState:
    """The position of a plan: `rounds` that are over, and the passages `shown` by them.

    `inputs` has the names of each tool's arguments.
    """

    question: QuestionParts
    inputs: Mapping[str, frozenset[str]]
    rounds: int
    shown: tuple[str, ...]
    most_passages: int
    most_rounds: int
    versions: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()

    @property
    def tools(self) -> frozenset[str]:
        """The names of the tools."""
        return frozenset(self.inputs)

    @property
    def share(self) -> int:
        """The number of passages that the next round may show."""
        left = self.most_passages - len(self.shown)
        if not self.rounds and self.most_rounds > 1:
            return max(1, min(left, round(self.most_passages * _FIRST_SHARE)))
        return max(0, -(-left // max(1, self.most_rounds - self.rounds)))


def write_next(conversation: ToolConversation) -> ModelMessage:
    """Return the next calls, or a text without calls when the plan has ended."""
    state = read_state(conversation)
    is_over = state.rounds >= state.most_rounds or conversation.tool_choice is ToolChoice.NONE
    uses = [] if is_over else list(_number(state, _list_calls(state)))
    if not uses:
        return ModelMessage(text=f"{len(state.shown)} passages were found.")
    reason = f"round {state.rounds + 1}: {', '.join(use.name for use in uses)}"
    return ModelMessage(text=reason, calls=tuple(uses))


def has_next(conversation: ToolConversation) -> bool:
    """Return whether the plan has another round after the last message, whose calls still run."""
    state = read_state(conversation)
    is_searched = any(name in state.tools for name in _SEARCHES)
    return state.rounds < state.most_rounds and is_searched and not state.question.is_long


def read_state(conversation: ToolConversation) -> PlanState:
    """Return the state that the messages of a conversation amount to."""
    asked = next((one.text for one in conversation.messages if isinstance(one, UserMessage)), "")
    shown = dict.fromkeys(
        source
        for message in conversation.messages
        if isinstance(message, ToolMessage)
        for source in message.sources
    )
    facts = conversation.facts
    return PlanState(
        question=read_question(asked),
        inputs={tool.name: _list_inputs(tool) for tool in conversation.tools},
        rounds=sum(isinstance(message, ModelMessage) for message in conversation.messages),
        shown=tuple(shown),
        most_passages=_read_number(facts.get(MOST_PASSAGES), _DEFAULT_PASSAGES),
        most_rounds=_read_number(facts.get(MOST_ROUNDS), _DEFAULT_ROUNDS),
        versions=_read_texts(facts.get(VERSIONS)),
        documents=_read_texts(facts.get(DOCUMENTS)),
        criteria=_read_texts(facts.get(CRITERIA)),
    )


def _list_inputs(tool: ToolDescription) -> frozenset[str]:
    properties = tool.input_schema.get("properties")
    return frozenset(properties) if isinstance(properties, dict) else frozenset()


def _list_calls(state: PlanState) -> Iterator[tuple[str, dict[str, JsonValue]]]:
    if state.documents and state.criteria and "check_criteria" in state.tools:
        yield from _list_checks(state)
        return
    if not state.rounds:
        yield from _list_first(state)
    if state.share and not (state.rounds and state.question.is_long):
        yield from _list_searches(state)


def _list_checks(state: PlanState) -> Iterator[tuple[str, dict[str, JsonValue]]]:
    """Yield one call a document in the first round; there is no second one."""
    for document_id in state.documents if not state.rounds else ():
        criteria: list[JsonValue] = [*state.criteria]
        yield "check_criteria", {"document_id": document_id, "criteria": criteria}


def _list_first(state: PlanState) -> Iterator[tuple[str, dict[str, JsonValue]]]:
    question = state.question
    if question.arithmetic and "calculator" in state.tools:
        yield "calculator", {"expression": question.arithmetic}
    versions = _match_versions(question, state.versions)
    is_compared = question.intent is Intent.COMPARISON and len(versions) > 1
    if is_compared and "compare_documents" in state.tools:
        old, *_, new = versions
        yield (
            "compare_documents",
            {"old": old, "new": new, "title_prefix": question.prefix, "limit": 100},
        )
    for name in sorted(state.tools):
        if not any(f"{cue}_" in name or f"_{cue}" in name for cue in question.cues):
            continue
        known = state.inputs[name]
        if "document_id" in known and state.documents:
            yield name, {"document_id": state.documents[0]}
        elif not known or "query" in known:
            query: dict[str, JsonValue] = {"query": question.text[:2_000]}
            # A tool of a set may fix its limit: to give one is an error then.
            yield name, query | ({"limit": 2} if not known or "limit" in known else {})


def _list_searches(state: PlanState) -> Iterator[tuple[str, dict[str, JsonValue]]]:
    search = next((name for name in _SEARCHES if name in state.tools), None)
    if search is None:
        return
    question = state.question
    if question.is_long and "search" in state.tools:
        # Its parts are about several things: links of the first passages lead to one of them.
        aspects: list[JsonValue] = [*question.sentences]
        limit = min(state.most_passages, _MOST_AT_ONCE)
        yield "search", {"query": question.text, "aspects": aspects, "limit": limit}
        return
    separate = question.separate[:_MOST_SEPARATE]
    for part in separate if not state.rounds else (state.question.text,):
        count = len(separate) if not state.rounds else 1
        shown: list[JsonValue] = [*state.shown]
        arguments: dict[str, JsonValue] = {
            "query": part[:2_000],
            "limit": max(1, state.share // count),
            "exclude": shown,
        }
        if search == "graph_search" and state.shown:
            arguments["start"] = shown[:20]
        yield search, arguments


def _match_versions(question: QuestionParts, stated: tuple[str, ...]) -> list[str]:
    """Return the stated versions that a question names, such as `r5` for "revision 5"."""
    found = []
    for number in question.versions:
        matching = (one for one in stated if one.lstrip("vVrR").lstrip("ev. ") == number)
        found.append(next(matching, number))
    if len(found) == 1 and found[0] in stated and question.intent is Intent.COMPARISON:
        # New in a version means: since the one before it.
        earlier = [one for one in stated if read_numbers(one) < read_numbers(found[0])]
        return [*sorted(earlier, key=read_numbers)[-1:], *found]
    return found


def _number(
    state: PlanState, calls: Iterator[tuple[str, dict[str, JsonValue]]]
) -> Iterator[ToolUse]:
    """Yield calls with ids; no call is made twice."""
    seen = set()
    for name, arguments in calls:
        key = name, json.dumps(arguments, sort_keys=True)
        if key not in seen:
            seen.add(key)
            call_id = f"r{state.rounds + 1}-{len(seen)}"
            yield ToolUse(call_id=call_id, name=name, arguments=arguments)


def _read_number(value: JsonValue, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _read_texts(value: JsonValue) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()
