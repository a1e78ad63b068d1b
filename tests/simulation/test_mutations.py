import pytest

from broker.transport import scripts
from broker.transport.scripts import LuaScript
from tests.simulation.mutations import MUTATIONS, Mutation

EACH = pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.breaks)


@EACH
def test_a_broken_script_is_noticed(mutation: Mutation) -> None:
    assert mutation.is_noticed(mutation.seed)


@EACH
def test_what_is_broken_stands_in_the_scripts(mutation: Mutation) -> None:
    texts = [each.text for each in vars(scripts).values() if isinstance(each, LuaScript)]

    assert any(mutation.old in text for text in texts)


def test_the_same_scenarios_hold_with_the_scripts_as_they_are() -> None:
    whole = Mutation("nothing", 0, "", "")

    assert not any(whole.is_noticed(seed) for seed in {each.seed for each in MUTATIONS})
