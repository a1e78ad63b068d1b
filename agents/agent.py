"""The base class of agents. An agent receives typed reads and returns typed writes; it has no other
access to the envelope.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar

from pydantic import BaseModel

from envelope.conversation import ClarificationReason
from envelope.outcome import HopOutcome
from envelope.role import Role
from envelope.run import OUTSIDE, Run
from envelope.specialists import SpecialistProfile
from envelope.swarm import StrategyChoice
from envelope.texts import Texts, choose_texts_language
from envelope.tool_loop import WayName

if TYPE_CHECKING:
    from envelope.verified import VerifiedAnswer
    from knowledge.language.port import Detector
    from knowledge.library.library import Library, NamedInText
    from knowledge.port import Searcher
    from knowledge.search.question_vectors import EarlyEmbedding
    from llm.port import Model, Task, Usage
    from memory.work_store import RedisWorkStore
    from tools.calls import ToolReceipts
    from tools.catalog import ToolCatalog
    from tools.executor import ToolBudget


R = TypeVar("R", bound=BaseModel)
W = TypeVar("W", bound=BaseModel)


class AgentSettings(Protocol):
    """The settings of an assistant that its agents need, with the names used in `config/`."""

    @property
    def domain_name(self) -> str: ...

    @property
    def domain_scope(self) -> str: ...

    @property
    def domain_tone(self) -> str: ...

    @property
    def domain_formatting(self) -> str: ...

    @property
    def product_names(self) -> tuple[str, ...]: ...

    @property
    def glossary(self) -> tuple[str, ...]: ...

    @property
    def topic(self) -> str: ...

    @property
    def default_language(self) -> str: ...

    @property
    def way(self) -> WayName: ...

    @property
    def search_results_limit(self) -> int: ...

    @property
    def combines_understanding(self) -> bool: ...

    @property
    def guardrails_strictness(self) -> Literal["low", "medium", "high"]: ...

    @property
    def judge(self) -> Literal["always", "doubt", "never"]: ...

    @property
    def search_below_complexity(self) -> int: ...

    @property
    def specialists_above_complexity(self) -> int: ...

    @property
    def swarm_above_complexity(self) -> int: ...

    @property
    def multi_tool_enabled(self) -> bool: ...

    @property
    def max_tool_calls(self) -> int: ...

    @property
    def tool_timeout_seconds(self) -> float: ...

    @property
    def specialists(self) -> Mapping[str, SpecialistProfile]: ...

    @property
    def swarm_strategy(self) -> StrategyChoice: ...

    @property
    def swarm_workers(self) -> int: ...

    @property
    def swarm_retries(self) -> int: ...

    @property
    def swarm_enough_share(self) -> float: ...


class AgentParts(Protocol):
    """The dependencies that the assembly provides to the agents of one assistant."""

    @property
    def settings(self) -> AgentSettings: ...

    @property
    def model(self) -> "Callable[[str], Model]":
        """Returns the model for a task in `llm/tasks`."""
        ...

    @property
    def uses_model(self) -> bool:
        """Whether a model writes the answers. If not, the passages found by the search are
        shown.
        """
        ...

    def estimate_usd(self, task: str, usage: "Usage") -> Decimal | None:
        """Return the price of a call for a task, or None if it is unknown."""
        ...

    @property
    def context_tokens(self) -> int:
        """The maximum size of the context for an answer, in tokens."""
        ...

    @property
    def searcher(self) -> "Searcher":
        """Searches the assistant's documents; raises `LookupError` if there is no index."""
        ...

    @property
    def early_embedding(self) -> "EarlyEmbedding | None":
        """Embeds a question before its search; None if no vendor embeds questions."""
        ...

    @property
    def tools(self) -> "ToolCatalog":
        """The tools of the assistant; raises `LookupError` if there is no index."""
        ...

    @property
    def library(self) -> "Library":
        """The documents of the assistant; raises `LookupError` if there is no index."""
        ...

    @property
    def work(self) -> "RedisWorkStore":
        """Stores values that are too large for an envelope together with the conversation of a
        question.
        """
        ...

    @property
    def find_named(self) -> "Callable[[str, Sequence[str]], Awaitable[NamedInText]]":
        """Returns the versions and documents that a text names and that a person in the given
        groups may read; raises `LookupError` if there is no index.
        """
        ...

    @property
    def find_verified(
        self,
    ) -> (
        "Callable[[Sequence[str], Sequence[str], Run], Awaitable[Sequence[VerifiedAnswer]]] | None"
    ):
        """A function that returns the verified answers whose questions are most similar to the
        given texts, restricted to answers that the given groups may read. None if verified answers
        cannot be searched.
        """
        ...

    @property
    def list_versions(self) -> "Callable[[Sequence[str]], Awaitable[Sequence[str]]]":
        """Returns the versions stated in the documents that a person in the given groups may
        read.
        """
        ...

    @property
    def detector(self) -> "Detector": ...

    @property
    def language_of(self) -> Callable[[str], str]:
        """Returns the language of a text, or the default language if it is uncertain."""
        ...

    @property
    def read_languages(self) -> "Callable[[tuple[str, ...]], Awaitable[Mapping[str, float]]]":
        """Returns the number of documents per language that a person in the given groups may read,
        or an empty mapping if it is unknown.
        """
        ...

    @property
    def texts(self) -> Texts: ...

    @property
    def open_budget(self) -> "Callable[[Run], ToolBudget] | None":
        """Returns the budget for a run's tool calls, for a `ToolExecutor`; None without a limit."""
        ...

    @property
    def open_receipts(self) -> "Callable[[Run], ToolReceipts] | None":
        """Returns the receipts for a run's calls with side effects, for a `ToolExecutor`. Without
        receipts, no such call is made.
        """
        ...

    @property
    def shows_drafts(self) -> bool:
        """Whether an answer is shown while it is being written, and not only after its approval."""
        ...


class MayAsk(BaseModel, frozen=True):
    """Attributes with which an agent asks for clarification or refuses to answer. The `Writes`
    class of every agent that may do so derives from this class. The flow then continues with the
    clarification agent, which writes the text.
    """

    needs_clarification: bool = False
    clarification_reason: ClarificationReason | None = None
    clarification_message: str = ""


class ReadsLanguage(BaseModel, frozen=True):
    """The language of the question (ISO 639-1), and the language of the fixed texts around its
    answer.
    """

    language: str = "en"
    texts_language: str = ""

    @property
    def reply_language(self) -> str:
        """Language of the answer, as a BCP 47 tag."""
        return choose_texts_language(self.language, self.texts_language)


class ProgressStep(StrEnum):
    """The step shown to people while an agent works, with a text in each language."""

    UNDERSTAND = "understand"
    SEARCH = "search"
    WRITE = "write"
    CHECK = "check"


class AgentTier(StrEnum):
    """The tier of an agent: orchestrator, specialist, or any other."""

    ORCHESTRATOR = "orchestrator"
    SPECIALIST = "specialist"
    WORKER = "worker"


class AgentRole(StrEnum):
    """The task of an orchestrator or a specialist; workers have none."""

    ORCHESTRATE = "orchestrate"
    EXTRACT = "extract"
    CLASSIFY = "classify"
    VERIFY = "verify"
    AUDIT = "audit"
    SYNTHESIZE = "synthesize"
    REPORT = "report"


class Agent(ABC, Generic[R, W]):
    """Does the work of one role on the payload of an envelope.

    An agent has no access to the envelope itself. It returns `Wrote`, `RetryAfter` or `GaveUp`; an
    exception is a failure, never a success. An instance works on one envelope in its `run`, and is
    created by `in_run` from the configured instance. It keeps no state between envelopes.
    `agents/roster.py` makes the declarations of its class available to the rest of the program.
    """

    role: ClassVar[Role]
    step: ClassVar[ProgressStep]
    """The step shown to people while the agent works."""
    slots: ClassVar[int] = 16
    """The default of `CONCURRENCY`, the number of envelopes that an instance works on at the same
    time.
    """
    model_task: "ClassVar[Task[Any, Any] | None]" = None
    """The task for which the agent calls a model, or the first one if there are several."""
    needs_index: ClassVar[bool] = False
    """Whether the agent searches or reads the documents."""
    tier: ClassVar[AgentTier] = AgentTier.WORKER
    agent_role: ClassVar[AgentRole | None] = None
    """The task of an orchestrator or a specialist; workers have none."""
    reads: type[R]
    writes: type[W]
    run: Run = OUTSIDE
    """The current run; models, tools and stores receive it with each call."""

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        """Return the agent, created with the `parts` that it needs; by default, it needs none."""
        return cls()

    def in_run(self, run: Run) -> Self:
        """Return a copy of the agent for one run; everything else is shared with the original."""
        own = object.__new__(type(self))
        own.__dict__.update(self.__dict__, run=run)
        return own

    @abstractmethod
    async def work(self, reads: R) -> HopOutcome[W]:
        """Return the attributes to add to the payload."""


@dataclass(frozen=True, slots=True)
class DeskDomain:
    """The settings of the desk: name, subject, names that are not translated, terms with their
    usage, and style.

    `tone` and `formatting` affect the form of answers, but not their content.
    """

    name: str = ""
    scope: str = ""
    product_names: tuple[str, ...] = ()
    glossary: tuple[str, ...] = ()
    tone: str = ""
    formatting: str = ""

    @classmethod
    def of(cls, settings: AgentSettings) -> Self:
        """Return the facts about the desk that are stated in these settings."""
        return cls(
            name=settings.domain_name,
            scope=settings.domain_scope,
            product_names=settings.product_names,
            glossary=settings.glossary,
            tone=settings.domain_tone,
            formatting=settings.domain_formatting,
        )
