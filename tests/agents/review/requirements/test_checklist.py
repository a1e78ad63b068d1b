"""Checklists: the JSON form of requirements, and what is refused."""

import pytest

from agents.review.errors import ChecklistError
from agents.review.requirement_extractor import list_units_as_requirements, read_listed
from agents.review.requirements import RuleUnit, make_checklist, parse_checklist
from agents.review.verdicts import join_extractions
from llm.tasks.specialists.material import TextUnit
from llm.tasks.specialists.requirement_extractor import Inputs
from tests.support.reviewing_model import list_requirements


def test_a_checklist_survives_writing_and_reading(law: list[RuleUnit]) -> None:
    made = make_checklist(list_units_as_requirements(law).requirements, "Data Protection Act")

    assert parse_checklist(made.model_dump_json()) == made


def test_definitions_are_no_items_of_a_checklist(law: list[RuleUnit]) -> None:
    units = tuple(
        TextUnit(id=one.unit_id, heading=" > ".join(one.heading_path), text=one.text) for one in law
    )
    listed = list_requirements(Inputs(question="?", target_law="Act", units=units))

    found = join_extractions([read_listed([listed], law)])
    made = make_checklist(found.requirements, "Act")

    assert [one.id for one in found.requirements if one.is_definition] == ["DEF-001"]
    assert [one.id for one in made.checklist] == [f"REQ-{number:03d}" for number in range(1, 9)]
    assert made.checklist[0].applicability.startswith("The processor")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("REQ-001: encrypt", "expected a checklist as JSON"),
        ("[" * 100_000, "expected a checklist as JSON"),
        ("[]", "expected an object with a checklist, found list"),
        ("{}", "expected target_law of a checklist"),
        ('{"target_law": "A", "checklist": {}}', "expected checklist of a checklist"),
        ('{"target_law": "A", "checklist": []}', "expected requirements in the checklist"),
        ('{"target_law": "A", "checklist": [{"id": "1"}]}', "expected checklist.0.requirement"),
        (
            '{"target_law": "A", "checklist": [{"id": "1", "requirement": "a"},'
            ' {"id": "1", "requirement": "b"}]}',
            "found some twice: 1",
        ),
    ],
)
def test_what_is_no_checklist_is_refused_by_what_was_expected(text: str, reason: str) -> None:
    with pytest.raises(ChecklistError) as refused:
        parse_checklist(text)

    assert reason in str(refused.value)
