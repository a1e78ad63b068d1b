"""Checklists: the JSON form of requirements, and the account of each unit."""

from agents.review.requirement_extractor import (
    INTRODUCTION,
    UNREAD,
    list_unaccounted,
    list_units_as_requirements,
    read_listed,
)
from agents.review.requirements import Checklist, RuleUnit, make_checklist
from agents.review.verdicts import join_extractions
from llm.tasks.review import RequirementExtractorInputs, RequirementExtractorOutput, TextUnit
from tests.support.reviewing_model import list_requirements


def test_a_checklist_survives_writing_and_reading(law: list[RuleUnit]) -> None:
    made = make_checklist(list_units_as_requirements(law).requirements, "Data Protection Act")

    assert Checklist.model_validate_json(made.model_dump_json()) == made


def test_definitions_are_no_items_of_a_checklist(law: list[RuleUnit]) -> None:
    units = tuple(
        TextUnit(id=unit.unit_id, heading=" > ".join(unit.heading_path), text=unit.text)
        for unit in law
    )
    listed = list_requirements(
        RequirementExtractorInputs(question="?", target_law="Act", units=units)
    )

    extraction = join_extractions([read_listed([listed], law)])
    made = make_checklist(extraction.requirements, "Act")

    assert [
        requirement.id for requirement in extraction.requirements if requirement.is_definition
    ] == ["DEF-001"]
    assert [checklist_item.id for checklist_item in made.checklist] == [
        f"REQ-{number:03d}" for number in range(1, 9)
    ]
    assert made.checklist[0].applicability.startswith("The processor")


UNITS = [
    RuleUnit("law", "law#u1", "The carrier records and retains the readings.", ("Article 1",)),
    RuleUnit("law", "law#u2", "This law begins in May.", ("Article 2",)),
    RuleUnit("law", "law#u3", "Sensors are calibrated.", ("Article 3",)),
    RuleUnit("law", "law#u4", "  ", ("Article 4",)),
]


def make_output(
    *entries: tuple[str, str, str], without: tuple[str, ...] = ()
) -> RequirementExtractorOutput:
    return RequirementExtractorOutput.model_validate(
        {
            "checklist": [
                {"source_section": unit, "requirement": text, "quotation": words}
                for unit, text, words in entries
            ],
            "without": [{"source_section": item, "reason": "says when"} for item in without],
        }
    )


def test_two_duties_of_one_sentence_are_two_requirements_with_their_places() -> None:
    output = make_output(
        ("law#u1", "The carrier must record readings.", "records"),
        ("law#u1", "The carrier must retain readings.", "Retains  the readings"),
        ("law#u1", "The carrier must retain readings.", "retains the readings"),
    )

    listed = read_listed([output], UNITS)

    assert [requirement.quotation for requirement in listed.requirements] == [
        "records",
        "retains the readings",
    ]
    places = [requirement.place for requirement in listed.requirements]
    assert [UNITS[0].text[place.start : place.end] for place in places] == [
        "records", "retains the readings"
    ]  # fmt: skip


def test_a_unit_that_a_model_leaves_out_is_unread_and_no_silence() -> None:
    output = make_output(("law#u1", "Record.", "records"), without=("law#u2",))

    listed = read_listed([output], UNITS)

    assert [unit.unit_id for unit in list_unaccounted([output], UNITS)] == ["law#u3"]
    assert [unit.reason for unit in listed.units] == ["", "says when", UNREAD, "no text"]


def test_words_that_do_not_stand_in_the_unit_are_no_quotation() -> None:
    output = make_output(("law#u3", "Calibrate.", "calibrated yearly"), ("law#u9", "Swim.", "swim"))

    listed = read_listed([output], UNITS)

    assert [requirement.quotation for requirement in listed.requirements] == [
        "Sensors are calibrated."
    ]
    assert len(listed.notes) == 2


def test_without_a_model_every_unit_with_text_is_listed_in_its_order() -> None:
    units_as_requirements = list_units_as_requirements(UNITS)

    assert [requirement.quotation for requirement in units_as_requirements.requirements] == [
        unit.text for unit in UNITS[:3]
    ]
    assert [requirement.id for requirement in units_as_requirements.requirements] == [
        "REQ-001",
        "REQ-002",
        "REQ-003",
    ]
    assert {
        (requirement.kind, requirement.severity)
        for requirement in units_as_requirements.requirements
    } == {("unit", "unjudged")}


def test_without_a_model_the_introduction_of_a_law_is_accounted_for_and_no_requirement() -> None:
    introduction = RuleUnit("law", "law#u0", "This law protects the cold chain.")

    units_as_requirements = list_units_as_requirements([introduction, *UNITS])
    of_two_files = list_units_as_requirements([RuleUnit("a", "a#u1", "Cool it."), *UNITS])

    assert [requirement.quotation for requirement in units_as_requirements.requirements] == [
        unit.text for unit in UNITS[:3]
    ]
    assert (units_as_requirements.units[0].unit_id, units_as_requirements.units[0].reason) == (
        "law#u0",
        INTRODUCTION,
    )
    assert of_two_files.requirements[0].quotation == "Cool it."
