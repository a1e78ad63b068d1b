"""The dialogue between a model and tools, for all ways of answering that call tools.

A dialogue is a value that is built from the payload at each hop. It consists of the messages so
far, and the results of their calls. `take_step` asks the model for the next message. The calls of a
message run in parallel, each in a branch; the next hop builds the dialogue again, with their
results.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import JsonValue

from envelope.run import OUTSIDE, Run
from llm.port import (
    ConversationModel,
    ModelMessage,
    Remark,
    ToolChoice,
    ToolConversation,
    ToolMessage,
    ToolUse,
    UserMessage,
)
from llm.prices import find_smallest_window
from tools.calls import CitedPassage, ToolErrorType, ToolResult
from tools.executor import LONGEST_TEXT, shorten
from tools.listed_parts import split_questions

MOST_STEPS = 10
MOST_CALLS = 8
"""Maximum number of calls per message that are executed."""
MOST_CORRECTIONS = 3
"""Maximum number of invalid calls of one kind before the model has to answer."""
_CORRECTED = (ToolErrorType.HALLUCINATION, ToolErrorType.VALIDATION)
_SEARCHES = frozenset(
    {"expand_context", "search", "graph_search", "hierarchical_search", "similarity_search",
     "bm25_search", "hybrid_search"}
)  # fmt: skip
_SEARCH_FIRST = UserMessage(remark=Remark(has_read_nothing=True))
_CHARACTERS_PER_TOKEN = 4
_RESULTS_SHARE = 0.5
"""The share of the context window that the results of all calls together may take."""
MOST_ROUNDS = 3
_FIRST_SHARE = 0.4
INTENT, NEXT = "plan_intent", "plan_next"
"""Arguments in which a planner states the purpose of a call, and whether to plan again after it.

They are removed before the tool runs.
"""
_LONGEST_QUERY = 2_000
_MOST_STARTS, _MOST_EXCLUDED = 20, 100


class DialogueEnd(StrEnum):
    """The reason why a dialogue makes no further calls."""

    ANSWERED = "answered"
    BUDGET = "budget"
    CORRECTIONS = "corrections"
    STEPS = "steps"
    NOTHING_NEW = "nothing_new"
    REPEATS = "repeats"


@dataclass(frozen=True, slots=True)
class DialogueLimits:
    """The limits of a dialogue.

    If `stops_early` is true, a later message whose searches return no new passage ends the
    dialogue. If `must_look` is true, the model must call a tool before it answers. If `writes_last`
    is true, the model is asked for its answer when a limit is reached; otherwise, another agent
    writes it.
    """

    most_steps: int = MOST_STEPS
    most_calls: int = MOST_CALLS
    stops_early: bool = False
    must_look: bool = False
    writes_last: bool = True


@dataclass(frozen=True, slots=True)
class DialogueStep:
    """The next message; `end` is None if it contains calls, and `model` is "" if no model was
    called.
    """

    message: ModelMessage
    end: DialogueEnd | None
    model: str = ""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The messages of a model so far, with the results of their calls.

    `opening` contains the system prompt, the task, and the tools. Call IDs start with `prefix` and
    are unique in the dialogue. A call is not repeated with the same arguments. `remarks` are user
    messages that follow all results.
    """

    opening: ToolConversation
    messages: tuple[ModelMessage, ...] = ()
    results: Mapping[str, ToolResult] = field(default_factory=dict)
    prefix: str = "s"
    limits: DialogueLimits = DialogueLimits()
    remarks: tuple[UserMessage, ...] = ()

    async def take_step(self, model: ConversationModel, run: Run = OUTSIDE) -> DialogueStep:
        """Return the next message; raises errors from `llm.errors`.

        Its calls are numbered, and repeated calls are removed. They are not validated further: a
        call of an unknown tool gets an error result, so that the model can correct it.
        """
        end = self.find_end()
        if end is None:
            step = await model.converse(self._converse(model.name), run)
            if not step.message.calls and self._must_look():
                looking = {"tool_choice": ToolChoice.REQUIRED}
                again = self._converse(model.name).extend(_SEARCH_FIRST).model_copy(update=looking)
                step = await model.converse(again, run)
            fresh = self.number(step.message.calls)
            if fresh:
                return DialogueStep(
                    step.message.model_copy(update={"calls": fresh}), None, step.model
                )
            if not step.message.calls:
                return DialogueStep(step.message, DialogueEnd.ANSWERED, step.model)
            end = DialogueEnd.REPEATS
        if not self.limits.writes_last or not self.messages:
            return DialogueStep(ModelMessage(text=self.last_text), end)
        closing = self._converse(model.name).model_copy(update={"tool_choice": ToolChoice.NONE})
        last = await model.converse(closing, run)
        text = last.message.text or self.last_text
        return DialogueStep(ModelMessage(text=text), end, last.model)

    @property
    def last_text(self) -> str:
        """The last text that the model wrote alongside its calls, or ""."""
        return next((message.text for message in reversed(self.messages) if message.text), "")

    @property
    def ordered_results(self) -> tuple[ToolResult, ...]:
        """All results in the order of their calls."""
        ids = (use.call_id for message in self.messages for use in message.calls)
        return tuple(self.results[identifier] for identifier in ids if identifier in self.results)

    @property
    def pending(self) -> tuple[ToolUse, ...]:
        """The calls of the last message without a result."""
        last = self.messages[-1].calls if self.messages else ()
        return tuple(use for use in last if use.call_id not in self.results)

    def find_end(self) -> DialogueEnd | None:
        """Return why the model has to answer now, or None if it may call more tools."""
        kinds = Counter(result.error_type for result in self.results.values())
        if kinds[ToolErrorType.BUDGET]:
            return DialogueEnd.BUDGET
        if any(kinds[kind] > MOST_CORRECTIONS for kind in _CORRECTED):
            return DialogueEnd.CORRECTIONS
        if len(self.messages) >= self.limits.most_steps:
            return DialogueEnd.STEPS
        return DialogueEnd.NOTHING_NEW if self._finds_nothing_new() else None

    def number(self, calls: Sequence[ToolUse]) -> tuple[ToolUse, ...]:
        """Return the calls that are not repetitions, within the limit, with their IDs set."""
        known = {_make_key(use) for message in self.messages for use in message.calls}
        fresh: list[ToolUse] = []
        for use in calls:
            if _make_key(use) in known or len(fresh) == self.limits.most_calls:
                continue
            known.add(_make_key(use))
            own = f"{self.prefix}{len(self.messages) + 1}-{len(fresh) + 1}"
            fresh.append(use.model_copy(update={"call_id": own}))
        return tuple(fresh)

    def converse(self, longest_results: int = 0) -> ToolConversation:
        """Return the conversation so far: each message, and the results of its calls.

        The results share `longest_results` characters, but each gets at least `LONGEST_TEXT`.
        """
        texts = _share_room(self.ordered_results, longest_results)
        conversation = self.opening
        for message in self.messages:
            # Vendors reject a call without a result, so a call whose branch was lost is omitted.
            kept = tuple(use for use in message.calls if use.call_id in texts)
            if kept or message.text:
                shown = message.model_copy(update={"calls": kept})
                answers = (texts[use.call_id] for use in kept)
                conversation = conversation.extend(shown, *map(make_tool_message, answers))
        return conversation.extend(*self.remarks)

    def _converse(self, model: str) -> ToolConversation:
        return self.converse(measure_room(model))

    def _must_look(self) -> bool:
        return self.limits.must_look and not self.results and bool(self.opening.tools)

    def _finds_nothing_new(self) -> bool:
        """Return whether the last message searched without finding a new passage.

        The first search does not count, because the next one may use different words. Failed
        searches do not count either.
        """
        if not self.limits.stops_early or not self.messages:
            return False
        *before, last = self.messages
        if not self._has_searched(last) or not any(map(self._has_searched, before)):
            return False
        known = {passage for message in before for passage in self._list_passages(message)}
        given = json.dumps([use.arguments for use in last.calls])
        return all(passage in known or passage in given for passage in self._list_passages(last))

    def _has_searched(self, message: ModelMessage) -> bool:
        results = (self.results.get(use.call_id) for use in message.calls)
        return any(
            tool_result is not None and tool_result.success and tool_result.tool in _SEARCHES
            for tool_result in results
        )

    def _list_passages(self, message: ModelMessage) -> Iterator[str]:
        for use in message.calls:
            if (result := self.results.get(use.call_id)) is not None:
                yield from (citation.chunk_id for citation in result.citations)


def measure_room(model: str) -> int:
    """Return the maximum number of characters for all results together, or 0 if the window is
    unknown.
    """
    window = find_smallest_window(model)
    return 0 if window is None else int(window * _CHARACTERS_PER_TOKEN * _RESULTS_SHARE)


def read_results(results: Mapping[str, JsonValue]) -> dict[str, ToolResult]:
    """Parse the results of a payload, by call id."""
    return {name: ToolResult.model_validate(value) for name, value in results.items()}


def remove_stated(use: ToolUse) -> ToolUse:
    """Return a call without the arguments `INTENT` and `NEXT` of a planner."""
    if not isinstance(use.arguments, dict):
        return use
    own = {name: argument for name, argument in use.arguments.items() if name not in {INTENT, NEXT}}
    return use.model_copy(update={"arguments": own})


def describe_calls(calls: Sequence[ToolUse], agent: str = "") -> tuple[dict[str, JsonValue], ...]:
    """Return calls in the format of the payload, with the `agent` if it has separate
    permissions.
    """
    own: dict[str, JsonValue] = {"agent": agent} if agent else {}
    return tuple(
        {
            "call_id": use.call_id,
            "tool": use.name,
            "arguments": use.arguments,
            **own,
        }
        for use in calls
    )


def make_tool_message(result: ToolResult) -> ToolMessage:
    """Return a result as a message, which contains its text and the citations that the text
    lacks.
    """
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
    """Return the passages cited in results, without duplicates, in order."""
    cited = (citation for result in results for citation in result.citations)
    passages: dict[str, CitedPassage] = {}
    for citation in cited:
        passages.setdefault(citation.chunk_id, citation)
    return list(passages.values())


def plan_searches(
    question: str, dialogue: Dialogue, *, most_passages: int, most_rounds: int = MOST_ROUNDS
) -> tuple[ToolUse, ...]:
    """Return the search calls of the next round, or none if the plan is completed.

    Each question in the message is searched for once. If there is a single question, the search
    continues along the links of the passages found, until `most_passages` or `most_rounds` is
    reached.
    """
    rounds = len(dialogue.messages)
    parts = split_questions(question) or (question,)
    if not rounds and len(parts) > 1:
        share = max(1, most_passages // len(parts))
        return dialogue.number([_search(part, share) for part in parts])
    shown = [passage.chunk_id for passage in list_passages(dialogue.ordered_results)]
    left = most_passages - len(shown)
    if len(parts) > 1 or rounds >= most_rounds or left <= 0 or (rounds and not shown):
        return ()
    if not rounds and most_rounds > 1:
        return dialogue.number([_search(question, max(1, round(most_passages * _FIRST_SHARE)))])
    share = -(-left // max(1, most_rounds - rounds))
    return dialogue.number([_search(question, share, shown)])


def _share_room(results: Sequence[ToolResult], room: int) -> dict[str, ToolResult]:
    """Return the results by call id, shortened to fit; short results leave room for longer ones."""
    longest = LONGEST_TEXT
    left, shortest_first = room, sorted(results, key=lambda result: len(result.text))
    shown: dict[str, ToolResult] = {}
    for place, tool_result in enumerate(shortest_first):
        own = max(longest, left // (len(shortest_first) - place))
        text = shorten(tool_result.text, own)
        left -= len(text)
        shown[tool_result.call_id] = tool_result.model_copy(update={"text": text})
    return shown


def _make_key(use: ToolUse) -> tuple[str, str]:
    return use.name, json.dumps(remove_stated(use).arguments, sort_keys=True)


def _search(query: str, limit: int, shown: Sequence[str] = ()) -> ToolUse:
    arguments: dict[str, JsonValue] = {
        "query": query[:_LONGEST_QUERY],
        "method": "graph",
        "limit": limit,
    }
    if shown:
        arguments |= {"start": [*shown[:_MOST_STARTS]], "exclude": [*shown[:_MOST_EXCLUDED]]}
    return ToolUse(call_id="", name="search", arguments=arguments)
