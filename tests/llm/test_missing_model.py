import pytest

from llm.chain import ChainLink, FallbackChain
from llm.errors import ChainExhausted, ModelUnavailable, NoModel
from llm.missing_model import MissingModel
from llm.port import record_calls
from tests.llm.sample_task import COLOUR, SKY
from tests.support.scripted_model import ScriptedModel


async def test_without_a_model_a_task_says_so_and_nothing_was_asked() -> None:
    with record_calls() as calls, pytest.raises(NoModel, match="for the task 'colour', found none"):
        await MissingModel().ask(COLOUR, SKY)

    assert calls == []


async def test_a_chain_that_ends_without_a_model_names_the_failure_of_its_first() -> None:
    failing = ScriptedModel([ModelUnavailable("the vendor is away")])
    chain = FallbackChain([ChainLink(failing), ChainLink(MissingModel())])

    with pytest.raises(ChainExhausted) as raised:
        await chain.ask(COLOUR, SKY)

    assert raised.value.reason == "unavailable"
