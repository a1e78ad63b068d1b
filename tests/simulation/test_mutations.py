import pytest

from tests.simulation.mutations import MUTATIONS, Mutation, is_noticed, rules_in
from tests.simulation.simulated_redis import SCRIPTS

EACH = pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.breaks)
RULES = frozenset[str]().union(*(rules_in(script.text) for script in SCRIPTS))


@EACH
def test_a_broken_rule_is_noticed(mutation: Mutation) -> None:
    assert mutation.is_noticed(mutation.seed)


def test_every_rule_of_the_scripts_is_broken_by_a_mutation() -> None:
    assert sorted(RULES) == sorted({mutation.rule for mutation in MUTATIONS})


@EACH
def test_a_mutation_changes_the_scripts_that_keep_its_rule_and_no_other(
    mutation: Mutation,
) -> None:
    changed = [script for script in SCRIPTS if mutation(script.text) != script.text]

    assert changed == [script for script in SCRIPTS if mutation.rule in rules_in(script.text)]


def test_a_mutation_of_a_line_that_it_cannot_break_is_an_error() -> None:
    mutation = Mutation("nothing", rule="x", how=MUTATIONS[0].how, seed=0)

    with pytest.raises(ValueError, match=r"found 'redis\.call'"):
        mutation("redis.call -- rule: x")


def test_the_same_scenarios_hold_with_the_scripts_as_they_are() -> None:
    assert not any(is_noticed(str, seed) for seed in {each.seed for each in MUTATIONS})
