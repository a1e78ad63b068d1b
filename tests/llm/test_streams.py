"""Answers that are passed on while both vendors' real clients receive them."""

from dataclasses import replace

import pytest

from envelope.run import OUTSIDE
from llm.errors import ModelUnavailable, RateLimited
from llm.output_parsing import ask_and_follow
from llm.port import ModelAnswer, ModelCall, PartialText, TextListener, Usage, record_calls
from llm.registry import Registry
from llm.vendors.catalogue import VendorAccess
from tests.llm.sample_task import BLUE, COLOUR, SKY, Colour, PlainPrompts
from tests.llm.vendor_dialects import Dialect, OpenAI
from tests.support.model_server import ModelServer, Response

PIECES = ('{"name": ', '"blue", "shade"', ": 0.25}")
WHOLE = "".join(PIECES)


class Followed:
    """One question, and its result: the drafts, the answer, the recorded calls."""

    def __init__(self, registry: Registry, dialect: Dialect) -> None:
        self.listener = TextListener(COLOUR.name)
        self.texts: list[PartialText] = []
        self.calls: list[ModelCall] = []
        self._model = registry.model(f"{dialect.model}@{dialect.provider}")

    async def run(self) -> ModelAnswer[Colour]:
        with record_calls() as self.calls:
            return await ask_and_follow(
                self.listener,
                lambda listener: self._model.ask(COLOUR, SKY, OUTSIDE, listener=listener),
                self._keep,
            )

    async def _keep(self, partial: PartialText) -> None:
        self.texts.append(partial)


@pytest.fixture
def followed(registry: Registry, dialect: Dialect) -> Followed:
    return Followed(registry, dialect)


async def test_an_answer_that_is_followed_is_read_and_paid_as_any_other(
    server: ModelServer, dialect: Dialect, followed: Followed
) -> None:
    server.will_send(dialect.stream(*PIECES))

    answer = await followed.run()

    assert answer.output == BLUE
    assert [(call.usage, call.error) for call in followed.calls] == [(Usage(100, 20, 40), None)]
    # The thoughts of a model count as progress, too.
    assert followed.listener.characters >= len(WHOLE)
    assert all(WHOLE.startswith(partial.text) for partial in followed.texts)
    assert not followed.listener.is_unstreamed


async def test_an_incomplete_stream_is_requested_again_from_the_beginning(
    server: ModelServer, dialect: Dialect, followed: Followed
) -> None:
    server.will_send(dialect.stream(*PIECES[:2], finished=False), dialect.stream(*PIECES))

    answer = await followed.run()

    assert answer.output == BLUE
    assert all(WHOLE.startswith(partial.text) for partial in followed.texts)
    assert len(server.received) == 2


async def test_a_stream_that_never_ends_well_fails_like_any_other_answer(
    server: ModelServer, dialect: Dialect, followed: Followed
) -> None:
    broken = dialect.stream(*PIECES[:2], finished=False)
    cut = Response(body=broken.body, content_type=broken.content_type, ends="cut")
    server.will_send(cut, cut, cut)

    with pytest.raises(ModelUnavailable):
        await followed.run()

    assert followed.calls[0].error is not None


async def test_a_stream_that_is_refused_on_submission_is_reported_as_such(
    server: ModelServer, dialect: Dialect, followed: Followed
) -> None:
    server.will_send(dialect.failure(429, retry_after="70"))

    with pytest.raises(RateLimited) as caught:
        await followed.run()

    assert caught.value.retry_after_seconds == 70


async def test_an_answer_that_cannot_be_read_is_repaired_and_the_repair_is_followed(
    server: ModelServer, dialect: Dialect, followed: Followed
) -> None:
    server.will_send(dialect.stream("blue, ", "I think"), dialect.stream(*PIECES))

    answer = await followed.run()

    assert answer.output == BLUE
    assert len(server.received) == 2
    assert followed.listener.attempts == 2


async def test_a_failure_of_the_reader_costs_the_draft_and_not_the_answer(
    server: ModelServer, dialect: Dialect, registry: Registry
) -> None:
    server.will_send(dialect.stream(*PIECES))
    model = registry.model(f"{dialect.model}@{dialect.provider}")

    async def fail(partial: PartialText) -> None:
        raise ValueError(partial.text)

    answer = await ask_and_follow(
        TextListener(COLOUR.name),
        lambda listener: model.ask(COLOUR, SKY, OUTSIDE, listener=listener),
        fail,
    )

    assert answer.output == BLUE


async def ask_twice(server: ModelServer) -> Followed:
    access = {"openai": VendorAccess(api_key="k", base_url=f"{server.url}/v1")}
    registry = Registry(prompts=PlainPrompts(), access=access)
    followed = Followed(registry, OpenAI())
    answers = [await followed.run(), await followed.run()]
    await registry.close()
    assert [answer.output for answer in answers] == [BLUE, BLUE]
    return followed


async def test_a_whole_answer_of_a_server_that_sends_no_streams_is_not_paid_twice(
    server: ModelServer,
) -> None:
    server.will_send(OpenAI().answer(WHOLE), OpenAI().answer(WHOLE))

    followed = await ask_twice(server)

    assert len(server.received) == 2
    assert followed.listener.is_unstreamed
    assert followed.calls[0].usage == Usage(100, 20, 40)


async def test_a_server_that_rejects_streams_is_not_asked_for_one_again(
    server: ModelServer,
) -> None:
    rejection = OpenAI().rejection("stream", "streaming is not supported")
    server.will_send(rejection, OpenAI().answer(WHOLE), OpenAI().answer(WHOLE))

    followed = await ask_twice(server)

    assert ["stream" in received.body for received in server.received] == [True, False, False]
    assert followed.listener.is_unstreamed


async def test_a_model_that_writes_slowly_is_not_replaced_by_the_next(
    server: ModelServer,
) -> None:
    access = {"openai": VendorAccess(api_key="k", base_url=f"{server.url}/v1")}
    registry = Registry(prompts=PlainPrompts(), access=access, patience_seconds=0.2)
    listener = TextListener(COLOUR.name)
    model = registry.model("gpt-4o-mini@openai,gpt-4.1@openai")
    slow = OpenAI().stream(*(character for character in WHOLE))
    server.will_send(replace(slow, pause_seconds=0.02))

    async def skip(_: PartialText) -> None:
        return None

    answer = await ask_and_follow(
        listener, lambda listener: model.ask(COLOUR, SKY, OUTSIDE, listener=listener), skip
    )
    await registry.close()

    assert answer.output == BLUE
    assert len(server.received) == 1


async def test_a_server_that_rejects_the_options_of_a_stream_still_streams(
    server: ModelServer,
) -> None:
    rejection = OpenAI().rejection("stream_options", "stream_options is unknown")
    server.will_send(rejection, OpenAI().stream(*PIECES), OpenAI().stream(*PIECES))

    followed = await ask_twice(server)

    assert ["stream_options" in received.body for received in server.received] == [
        True,
        False,
        False,
    ]
    assert not followed.listener.is_unstreamed
