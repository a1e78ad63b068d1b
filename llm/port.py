"""The model port: ask with typed inputs, get a typed output with its usage and cost.

A *task* has a prompt file, a type of inputs and a type of outputs. Vendors render the task's prompt
from the inputs. Where none is configured, `llm.missing_model` raises `NoModel`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel

from envelope.run import Run
from llm.text_listener import TextListener

I = TypeVar("I", bound=BaseModel)  # noqa: E741 - the pair I and O is the usual one
O = TypeVar("O", bound=BaseModel)  # noqa: E741


@dataclass(frozen=True, slots=True)
class Task(Generic[I, O]):
    """One kind of model call: its name, its types and its parameters.

    `time_share` is the part of the time limit of a call that it may take: a step that prepares an
    answer leaves time for the answer, and the question goes on without it.
    """

    name: str
    inputs: type[I]
    output: type[O]
    temperature: float = 0.0
    max_output_tokens: int = 2048
    time_share: float = 1.0


PREPARING_SHARE = 0.25
"""The time share of what prepares an answer, or words a question back."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call; cached tokens are part of the input tokens."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ModelAnswer(Generic[O]):
    """A typed output, its usage and cost. `cost_usd` is None if the price is unknown, never 0."""

    output: O
    model: str
    usage: Usage
    cost_usd: Decimal | None
    milliseconds: float
    from_store: bool = False


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call for the journal; failed calls are recorded, too.

    `from_cache` marks an answer that another question paid for; `saved_usd` is its cost, or None if
    the price is unknown. `answered_by` is the model that the vendor says answered; empty: it does
    not say.
    """

    task: str
    model: str
    usage: Usage
    cost_usd: Decimal | None
    milliseconds: float
    error: str | None = None
    from_store: bool = False
    prompt_hash: str = ""
    from_cache: bool = False
    saved_usd: Decimal | None = Decimal(0)
    answered_by: str = ""


class Model(Protocol):
    """A model or a chain of models; `name` is `model@provider`, or `offline`."""

    name: str

    async def ask(
        self,
        task: Task[I, O],
        inputs: I,
        run: Run,
        *,
        skip: int = 0,
        listener: TextListener | None = None,
    ) -> ModelAnswer[O]:
        """Return the answer, or raise an error of `llm.errors`.

        `skip` starts that many models further down a fallback chain (a chain shorter than that
        starts at its last model). `listener` receives the text while it is written.
        """
        ...


OFFLINE = "offline"
"""The name of what stands in a setting where no model is configured."""


def find_model(model: Model) -> Model | None:
    """Return the model, or None where no model is configured."""
    return None if model.name == OFFLINE else model


class VectorModel(Protocol):
    """Turns texts into vectors of `dimensions` numbers, L2-normalised.

    `forms` names how it embeds questions and documents differently; empty: it does not.
    """

    name: str
    dimensions: int
    forms: str

    async def embed(
        self, texts: Sequence[str], run: Run, *, are_questions: bool = False
    ) -> Sequence[Sequence[float]]: ...


class ScoreModel(Protocol):
    """Scores texts by how well they answer a question; the higher, the better."""

    name: str

    async def score(self, question: str, texts: Sequence[str], run: Run) -> Sequence[float]:
        """Return a score for each text, in their order, or raise an error of `llm.errors`."""
        ...


_calls: ContextVar[tuple[list[ModelCall], ...]] = ContextVar("model_calls", default=())


@contextmanager
def record_calls() -> Iterator[list[ModelCall]]:
    """Yield a list that every call made inside is appended to, also from tasks started inside.

    Blocks nest: a call is in the list of each block around it. The list stays readable after an
    error, which is when the calls matter most.
    """
    calls: list[ModelCall] = []
    token = _calls.set((*_calls.get(), calls))
    try:
        yield calls
    finally:
        _calls.reset(token)


def record(call: ModelCall) -> None:
    """Append a call to the lists of the blocks around this point; without one it is dropped."""
    for calls in _calls.get():
        calls.append(call)
