"""Requirements of a rule: each with its place, its addressee, its kind and its condition."""

import pytest

from compliance.requirements.extraction import extract_requirements
from compliance.requirements.requirement import Requirement, RuleUnit
from compliance.wording.cues import RuleKind


def extract(text: str, language: str = "en") -> tuple[Requirement, ...]:
    unit = RuleUnit("law", "art_1", text, ("Law", "Article 1"), language)
    return extract_requirements([unit]).requirements


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("The processor shall keep a record of transfers.", RuleKind.DUTY),
        ("A keeper must answer within ten days.", RuleKind.DUTY),
        ("The processor may not sell personal data.", RuleKind.BAN),
        ("Selling personal data is prohibited.", RuleKind.BAN),
        ("The processor may engage a subcontractor.", RuleKind.PERMISSION),
        ("The person shall not be required to give reasons.", RuleKind.PERMISSION),
        ("'Record' means any stored information.", RuleKind.DEFINITION),
    ],
)
def test_an_english_sentence_is_a_rule_of_its_kind(text: str, kind: RuleKind) -> None:
    assert [one.kind for one in extract(text)] == [kind]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Der Verantwortliche muss die Daten löschen.", RuleKind.DUTY),
        ("Der Verantwortliche hat die betroffene Person zu unterrichten.", RuleKind.DUTY),
        ("Der Auftragsverarbeiter darf die Daten nicht weitergeben.", RuleKind.BAN),
        ("Die Weitergabe ist verboten.", RuleKind.BAN),
        ("Die Behörde kann Auskunft verlangen.", RuleKind.PERMISSION),
        ("Empfänger im Sinne dieses Gesetzes ist jede Stelle.", RuleKind.DEFINITION),
    ],
)
def test_a_german_sentence_is_a_rule_of_its_kind(text: str, kind: RuleKind) -> None:
    assert [one.kind for one in extract(text, "de")] == [kind]


def test_every_item_of_a_list_is_a_requirement_with_its_introduction() -> None:
    text = "2. Providers shall: (a) keep logs; (b) name a contact; and (c) test the system."

    found = extract(text)

    assert [one.text for one in found] == [
        "(a) keep logs;",
        "(b) name a contact; and",
        "(c) test the system.",
    ]
    assert {one.lead for one in found} == {"2. Providers shall:"}
    assert {one.addressee for one in found} == {"Providers"}


def test_a_reference_to_an_item_begins_no_item() -> None:
    found = extract("Systems under Article 6(1) point (a) of this Law shall be registered.")

    assert len(found) == 1


def test_a_place_holds_its_requirement_unchanged() -> None:
    text = "Scope. 1. The keeper shall, e.g. by letter, answer. 2. Nobody may be charged a fee."

    found = extract(text)

    assert [text[one.place.start : one.place.end] for one in found] == [one.text for one in found]
    assert found[0].place.heading_path == ("Law", "Article 1")


def test_the_addressee_is_the_subject_behind_a_condition() -> None:
    found = extract("Where data were lost, the keeper that lost them shall notify the Office.")

    assert [one.addressee for one in found] == ["the keeper"]
    assert found[0].condition == "Where data were lost"


def test_the_addressee_of_a_passive_is_its_agent() -> None:
    found = extract("The record shall be kept by the processor.")

    assert [one.addressee for one in found] == ["the processor"]


def test_every_unit_is_accounted_for() -> None:
    units = [
        RuleUnit("law", "1", "The keeper shall answer."),
        RuleUnit("law", "2", "This Law is about registers."),
        RuleUnit("law", "3", " "),
    ]

    found = extract_requirements(units)

    assert [(one.unit_id, one.reason) for one in found.units] == [
        ("1", ""),
        ("2", "no obligation"),
        ("3", "no text"),
    ]
    assert found.units[0].requirement_ids == ("REQ-001",)


def test_a_language_without_cues_is_named() -> None:
    found = extract_requirements(
        [RuleUnit("law", "1", "Az adatkezelő törli az adatokat.", (), "hu")]
    )

    assert found.units[0].reason == "no cues for the language"
    assert "'hu'" in found.notes[0]


def test_a_law_of_three_hundred_units_misses_none() -> None:
    units = [
        RuleUnit("law", str(number), f"{number}. The keeper shall do task {number}.")
        for number in range(300)
    ]

    found = extract_requirements(units)

    assert [one.place.unit_id for one in found.requirements] == [str(one) for one in range(300)]
    assert len({one.id for one in found.requirements}) == 300


@pytest.mark.parametrize(
    ("language", "duty", "ban", "permission"),
    [
        (
            "cs",
            "Zpracovatel je povinen vést záznamy.",
            "Prodej údajů se zakazuje.",
            "Správce může prostory kontrolovat.",
        ),
        (
            "sk",
            "Sprostredkovateľ je povinný viesť záznamy.",
            "Sprostredkovateľ nesmie údaje predávať.",
            "Prevádzkovateľ môže vykonať kontrolu.",
        ),
        (
            "pl",
            "Podmiot jest zobowiązany prowadzić rejestr.",
            "Podmiot nie może sprzedawać danych.",
            "Administrator może przeprowadzić kontrolę.",
        ),
        (
            "de",
            "Der Auftragnehmer ist verpflichtet, Daten zu löschen.",
            "Der Auftragnehmer darf die Daten nicht verkaufen.",
            "Der Auftraggeber darf die Räume besichtigen.",
        ),
        (
            "fr",
            "Le sous-traitant doit tenir un registre.",
            "Le sous-traitant ne peut vendre les données.",
            "Le responsable peut contrôler les locaux.",
        ),
        (
            "es",
            "El encargado debe llevar un registro.",
            "El encargado no podrá vender los datos.",
            "El responsable podrá inspeccionar los locales.",
        ),
    ],
)
def test_rules_are_found_in_the_languages_that_have_cues(
    language: str, duty: str, ban: str, permission: str
) -> None:
    units = [
        RuleUnit("law", str(number), text, (), language)
        for number, text in enumerate((duty, ban, permission))
    ]

    found = extract_requirements(units)

    assert [one.kind.value for one in found.requirements] == ["duty", "ban", "permission"]
    assert found.notes == ()
