"""The ledger of facts."""

import pytest

from swarm.ledger.facts import FactLedger, FactStatus, open_facts, verify_facts
from swarm.synthesis.merged_claims import merge_claims
from tests.swarm.builders import make_output, make_passage, make_swarm_plan, make_worker


def test_a_fact_becomes_more_certain_and_never_less() -> None:
    ledger = FactLedger().record("It rains.", FactStatus.GUESSED)

    ledger = ledger.record("It rains.", FactStatus.VERIFIED, ["weather#0"])
    ledger = ledger.record("It rains.", FactStatus.GUESSED)

    assert [one.status for one in ledger.facts] == [FactStatus.VERIFIED]
    assert ledger.facts[0].sources == ("weather#0",)


def test_a_verified_fact_has_a_source() -> None:
    with pytest.raises(ValueError, match="expected a source"):
        FactLedger().record("It rains.", FactStatus.VERIFIED)


def test_claims_with_sources_verify_what_was_to_be_looked_up() -> None:
    plan = make_swarm_plan(make_worker("w", objective="the fee of Alfa"))
    outputs = {"w": make_output("w", make_passage("f", "The fee of Alfa is 7 euros."))}

    ledger = verify_facts(open_facts(plan, ["I am in Norway."]), merge_claims(plan, outputs))

    assert [one.text for one in ledger.list_by(FactStatus.GIVEN)] == ["I am in Norway."]
    assert [one.text for one in ledger.list_by(FactStatus.TO_LOOK_UP)] == ["the fee of Alfa"]
    assert [one.sources for one in ledger.list_by(FactStatus.VERIFIED)] == [("f#0",)]
