"""The position of a plan of the rules: the question, the tools, and the results so far.

The rules read results only as sources; nothing in a text is taken for an instruction.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from llm.conversations.turns import (
    ModelMessage,
    ToolConversation,
    ToolDescription,
    ToolMessage,
    UserMessage,
)
from llm.offline.planning.question_parts import QuestionParts, read_question
from llm.offline.support import terms

MOST_PASSAGES = "most_passages"
"""The fact with the number of passages that all rounds together may show."""
MOST_ROUNDS = "most_rounds"
VERSIONS = "versions"
"""The fact with the versions that documents state."""
DOCUMENTS = "documents"
"""The fact with the ids of the documents that the question names; with criteria, of those that are
checked whole, each for every criterion."""
CRITERIA = "criteria"
COMBINATIONS = "combinations"
"""The fact with the tools that are often called together, by purpose."""
BASES = "bases"
"""The fact with the built-in tool behind each tool of a set."""
GAPS = "gaps"
"""The fact with what an answer lacks; it is there only in a round after an answer."""
OUTSIDE = "outside"
"""The fact with the names of the tools that neither are built in nor belong to a set."""
NAMED_ON = "named_on"
"""The fact with the position of the first page found so far that names a tool, by tool."""
_DEFAULT_PASSAGES = 10
_DEFAULT_ROUNDS = 3
_FIRST_SHARE = 0.4
SEARCHES = ("graph_search", "search", "hybrid_search", "bm25_search")
Call = tuple[str, dict[str, JsonValue]]
"""The name of a tool, and its arguments."""


@dataclass(frozen=True, slots=True)
class PlanState:
    """The position of a plan: `rounds` that are over, and the passages `shown` by them.

    `inputs` has the names of each tool's arguments; `made` are the calls of earlier rounds; `gaps`
    is None as long as no answer was written; `known_terms` are the words of all results.
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
    combinations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bases: Mapping[str, str] = field(default_factory=dict)
    gaps: tuple[str, ...] | None = None
    made: tuple[Call, ...] = ()
    known_terms: frozenset[str] = frozenset()

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

    def find_by_base(self, base: str) -> str | None:
        """Return the tool of the set that is this built-in tool, else the built-in one itself."""
        own = (name for name in sorted(self.bases) if self.bases[name] == base)
        return next((name for name in (*own, base) if name in self.tools), None)


def read_state(conversation: ToolConversation) -> PlanState:
    """Return the state that the messages of a conversation amount to."""
    asked = next((one.text for one in conversation.messages if isinstance(one, UserMessage)), "")
    results = [one for one in conversation.messages if isinstance(one, ToolMessage)]
    plans = [one for one in conversation.messages if isinstance(one, ModelMessage)]
    facts = conversation.facts
    gaps = facts.get(GAPS)
    return PlanState(
        question=read_question(asked),
        inputs={tool.name: list_inputs(tool) for tool in conversation.tools},
        rounds=len(plans),
        shown=tuple(dict.fromkeys(source for result in results for source in result.sources)),
        most_passages=_read_number(facts.get(MOST_PASSAGES), _DEFAULT_PASSAGES),
        most_rounds=_read_number(facts.get(MOST_ROUNDS), _DEFAULT_ROUNDS),
        versions=_read_texts(facts.get(VERSIONS)),
        documents=_read_texts(facts.get(DOCUMENTS)),
        criteria=_read_texts(facts.get(CRITERIA)),
        combinations=_read_combinations(facts.get(COMBINATIONS)),
        bases=_read_names(facts.get(BASES)),
        gaps=None if gaps is None else _read_texts(gaps),
        made=tuple(
            (use.name, use.arguments)
            for plan in plans
            for use in plan.calls
            if isinstance(use.arguments, dict)
        ),
        known_terms=frozenset(term for result in results for term in terms(result.text)),
    )


def list_inputs(tool: ToolDescription) -> frozenset[str]:
    """Return the names of a tool's arguments."""
    properties = tool.input_schema.get("properties")
    return frozenset(properties) if isinstance(properties, dict) else frozenset()


def _read_number(value: JsonValue, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _read_texts(value: JsonValue) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _read_names(value: JsonValue) -> dict[str, str]:
    found = value.items() if isinstance(value, dict) else ()
    return {name: str(one) for name, one in found}


def _read_combinations(value: JsonValue) -> dict[str, tuple[str, ...]]:
    found = value.items() if isinstance(value, dict) else ()
    return {purpose: _read_texts(names) for purpose, names in found}
