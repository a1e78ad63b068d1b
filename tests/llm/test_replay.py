from collections.abc import Iterator
from decimal import Decimal

import pytest

from envelope.question import Question as Message
from llm.chain import ChainLink, FallbackChain
from llm.errors import (
    AccessDenied,
    ChainExhausted,
    ModelError,
    ModelUnavailable,
    Refused,
    RejectedRequest,
    UnreadableOutput,
)
from llm.port import Model, Usage, record_calls
from llm.stored_model import StoredModel
from tests.llm.sample_task import BLUE, COLOUR, SKY, CallsInMemory, Colour, PlainPrompts, Question
from tests.support.runs import start_run
from tests.support.scripted_model import Scripted, ScriptedModel

GREY = Colour(name="grey")
PAID = Usage(10, 5, 2)


def message(message_id: str = "m") -> Message:
    return Message(tenant="t", assistant="a", conversation_id="c", message_id=message_id)


@pytest.fixture
def fake_documents() -> CallsInMemory:
    return CallsInMemory()


def make_paid_model(*script: Scripted, name: str = "m@openai") -> ScriptedModel:
    return ScriptedModel(script, name=name, usage=PAID, cost_usd=Decimal("0.25"))


def make_stored_model(model: Model, fake_documents: CallsInMemory) -> StoredModel:
    return StoredModel(model, fake_documents, prompts=PlainPrompts())


async def test_a_redelivered_hop_finds_the_answer_that_was_paid(
    fake_documents: CallsInMemory,
) -> None:
    inner = make_paid_model(BLUE)

    run = start_run(message(), stage="essence", attempt=0)
    first = await make_stored_model(inner, fake_documents).ask(COLOUR, SKY, run)
    run = start_run(message(), stage="essence", attempt=0)
    again = await make_stored_model(inner, fake_documents).ask(COLOUR, SKY, run)

    assert len(inner.calls) == 1
    assert (first.from_store, again.from_store) == (False, True)
    assert (again.output, again.model, again.usage) == (BLUE, "m@openai", PAID)
    assert again.cost_usd == Decimal("0.25")


async def test_the_calls_behind_a_found_answer_are_recorded_again_and_marked(
    fake_documents: CallsInMemory,
) -> None:
    chain = FallbackChain(
        [
            ChainLink(make_paid_model(ModelUnavailable("down"), name="a")),
            ChainLink(make_paid_model(BLUE, name="b")),
        ]
    )

    run = start_run(message(), stage="essence", attempt=0)
    await make_stored_model(chain, fake_documents).ask(COLOUR, SKY, run)
    with record_calls() as calls:
        await make_stored_model(chain, fake_documents).ask(COLOUR, SKY, run)

    assert [(call.model, call.from_store, call.cost_usd) for call in calls] == [
        ("a", True, Decimal("0.25")),
        ("b", True, Decimal("0.25")),
    ]


def variations() -> Iterator[tuple[str, dict[str, object]]]:
    yield "message", {"question": message("other")}
    yield "stage", {"stage": "response"}
    yield "attempt", {"attempt": 1}
    yield "inputs", {"inputs": Question(text="And at night?")}
    yield "model of the chain", {"skip": 1}


@pytest.mark.parametrize(
    "change", [change for _, change in variations()], ids=[name for name, _ in variations()]
)
async def test_any_difference_leads_to_a_new_request(
    fake_documents: CallsInMemory, change: dict[str, object]
) -> None:
    inner = make_paid_model(BLUE, GREY)
    model = make_stored_model(inner, fake_documents)

    async def ask(
        question: Message = message(),  # noqa: B008 - frozen
        stage: str = "essence",
        attempt: int = 0,
        inputs: Question = SKY,
        skip: int = 0,
    ) -> Colour:
        run = start_run(question, stage=stage, attempt=attempt)
        return (await model.ask(COLOUR, inputs, run, skip=skip)).output

    first = await ask()
    second = await ask(**change)  # type: ignore[arg-type] # one argument each

    assert (first, second) == (BLUE, GREY)


@pytest.mark.parametrize(
    "error",
    [
        RejectedRequest("a wrong field"),
        Refused("a word"),
        ChainExhausted("both", (AccessDenied("a word"), UnreadableOutput("a poem"))),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_failure_because_of_the_content_is_paid_once_and_keeps_its_reason(
    fake_documents: CallsInMemory, error: ModelError
) -> None:
    inner = make_paid_model(error)

    with record_calls() as calls:
        for _ in range(2):
            run = start_run(message(), stage="essence", attempt=0)
            with pytest.raises(type(error)) as raised:
                await make_stored_model(inner, fake_documents).ask(COLOUR, SKY, run)
            assert (str(raised.value), raised.value.reason) == (str(error), error.reason)

    assert [call.from_store for call in calls] == [False, True]


@pytest.mark.parametrize(
    "error",
    [
        ModelUnavailable("down"),
        ChainExhausted("both", (Refused("a word"), ModelUnavailable("down"))),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_failure_that_may_pass_is_not_stored(
    fake_documents: CallsInMemory, error: ModelError
) -> None:
    inner = make_paid_model(error, BLUE)
    model = make_stored_model(inner, fake_documents)

    run = start_run(message(), stage="essence", attempt=0)
    with pytest.raises(ModelUnavailable):
        await model.ask(COLOUR, SKY, run)
    answer = await model.ask(COLOUR, SKY, run)

    assert answer.output == BLUE


@pytest.mark.parametrize("frame", [b"", b"{}", b"\xff", b"null"])
async def test_an_unreadable_stored_answer_is_requested_again(
    fake_documents: CallsInMemory, frame: bytes
) -> None:
    inner = make_paid_model(BLUE, GREY)
    model = make_stored_model(inner, fake_documents)

    run = start_run(message(), stage="essence", attempt=0)
    await model.ask(COLOUR, SKY, run)
    fake_documents.kept = dict.fromkeys(fake_documents.kept, frame)
    answer = await model.ask(COLOUR, SKY, run)

    assert answer.output == GREY


async def test_an_unknown_price_stays_unknown_in_the_store(fake_documents: CallsInMemory) -> None:
    model = make_stored_model(ScriptedModel([BLUE], cost_usd=None), fake_documents)

    run = start_run(message(), stage="essence", attempt=0)
    await model.ask(COLOUR, SKY, run)
    again = await model.ask(COLOUR, SKY, run)

    assert (again.from_store, again.cost_usd) == (True, None)


async def test_outside_of_a_hop_nothing_is_stored(fake_documents: CallsInMemory) -> None:
    inner = make_paid_model(BLUE, GREY)

    await make_stored_model(inner, fake_documents).ask(COLOUR, SKY)
    await make_stored_model(inner, fake_documents).ask(COLOUR, SKY)

    assert (len(inner.calls), fake_documents.kept) == (2, {})


class SpeedsInMemory:
    """Keeps what is added."""

    def __init__(self) -> None:
        self.added: list[tuple[str, int]] = []

    async def add(self, model: str, tokens: int, milliseconds: float) -> None:
        self.added.append((model, tokens))


async def test_the_speed_of_a_model_is_measured_once_by_the_call_that_was_paid(
    fake_documents: CallsInMemory,
) -> None:
    speeds = SpeedsInMemory()
    inner = make_paid_model(BLUE)
    model = StoredModel(inner, fake_documents, prompts=PlainPrompts(), speeds=speeds)

    for _ in range(2):
        await model.ask(COLOUR, SKY, start_run(message(), stage="essence", attempt=0))

    assert speeds.added == [("m@openai", PAID.output_tokens)]
