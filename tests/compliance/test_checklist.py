"""Checklists: the JSON form of requirements, and what is refused."""

import pytest

from compliance.errors import ChecklistError
from compliance.requirements.checklist import make_checklist, parse_checklist
from compliance.requirements.extraction import extract_requirements
from compliance.requirements.requirement import RuleUnit


def test_a_checklist_survives_writing_and_reading(law: list[RuleUnit]) -> None:
    made = make_checklist(extract_requirements(law).requirements, "Register Data Protection Act")

    assert parse_checklist(made.model_dump_json()) == made


def test_definitions_are_no_items_of_a_checklist(law: list[RuleUnit]) -> None:
    made = make_checklist(extract_requirements(law).requirements, "Act")

    assert [one.id for one in made.checklist] == [f"REQ-{number:03d}" for number in range(3, 11)]
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
