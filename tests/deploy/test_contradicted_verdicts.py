"""A verdict of a model that the words of a clause contradict is shown to a person."""

import pytest

from compliance.wording.fixed_notes import translate_note
from tests.deploy.conftest import OpenReviews
from tests.deploy.test_specialist_models import write_decisions
from tests.deploy.test_specialists_way import CLEAN, FAULTY, count
from tests.support.app_harness import PartlyScriptedModel

pytestmark = pytest.mark.slow

CONTRADICTED = "the rules read a contradiction, so a person has to decide"


async def test_what_a_model_finds_fulfilled_against_plain_words_is_noted(
    open_reviews: OpenReviews,
) -> None:
    model = PartlyScriptedModel(compliance=[write_decisions("COMPLIANT", "p5")])

    async with open_reviews(model) as harness:
        reply = await harness.driver().say(FAULTY)

    assert count(reply) == {"requirements": 8, "compliant": 8, "violations": 0, "gaps": 0}
    noted = [one for one in reply["verdicts"]["notes"] if CONTRADICTED in one]
    assert len(noted) == 3
    assert any(one.endswith("; its period is longer than allowed") for one in noted)
    assert all(one in reply["text"] for one in noted)


async def test_what_no_clause_contradicts_has_no_such_note(open_reviews: OpenReviews) -> None:
    model = PartlyScriptedModel(compliance=[write_decisions("COMPLIANT", "p5")])

    async with open_reviews(model) as harness:
        reply = await harness.driver().say(CLEAN)

    assert CONTRADICTED not in reply["text"]


def test_such_a_note_is_in_the_language_of_the_reader() -> None:
    note = f"REQ-004: gpt finds it fulfilled, and {CONTRADICTED}; it permits what is forbidden"

    assert translate_note(note, "de") == (
        "REQ-004: gpt hält das für erfüllt, und die Regeln lesen einen Widerspruch, deshalb muss "
        "ein Mensch entscheiden; es erlaubt, was verboten ist"
    )
