"""Notes of the rules are in the language of the reader."""

import tomllib
from pathlib import Path
from string import Formatter

import pytest

from compliance.requirements.extraction import extract_requirements
from compliance.requirements.requirement import RuleUnit
from compliance.team.findings import list_errors
from compliance.team.review_scope import TitledDocument, find_scope
from compliance.verdicts.opposition import compare_periods
from compliance.wording import fixed_notes
from compliance.wording.fixed_notes import translate_note
from envelope.ways.specialists import SpecialistError, complete_sequence

NOTES: dict[str, dict[str, str]] = tomllib.loads(
    Path(fixed_notes.__file__).with_suffix(".toml").read_text("utf-8")
)


def list_names(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_a_reason_is_in_the_language_of_the_reader() -> None:
    reason = compare_periods("Report it within 3 days.", "Report it within 14 days.")

    assert translate_note(reason, "cs") == "jeho lhůta je delší, než je dovoleno"
    assert translate_note(f"{reason}; it permits what is forbidden", "de") == (
        "seine Frist ist länger als erlaubt; es erlaubt, was verboten ist"
    )


def test_a_note_keeps_its_values() -> None:
    law, other = TitledDocument("a", "Harbour Act"), TitledDocument("b", "Ferry Act")
    (assumed, *_) = find_scope("Does it comply with the law?", (law,)).notes
    (several, *_) = find_scope("Does it comply with the law?", (law, other)).notes
    (unread,) = extract_requirements([RuleUnit("a", "a#u1", "Text.", (), "fi")]).notes

    assert "'Harbour Act' je jediný" in translate_note(assumed, "cs")
    assert "es gibt 2 davon" in translate_note(several, "de")
    assert translate_note(unread, "cs").startswith("slova pro povinnosti v jazyce 'fi'")


def test_what_the_rules_did_not_write_stays_as_it_is() -> None:
    for note in ("The model saw no passage.", "no document", "", "its period is longer"):
        assert translate_note(note, "cs") == note
    assert translate_note("it permits what is forbidden", "en") == "it permits what is forbidden"
    assert translate_note("it permits what is forbidden", "fr") == "it permits what is forbidden"


@pytest.mark.parametrize("language", ["de", "cs"])
@pytest.mark.parametrize("key", NOTES)
def test_every_note_is_translated_with_its_values(key: str, language: str) -> None:
    texts = NOTES[key]
    values = {name: f"‹{name}›" for name in list_names(texts["en"])}

    assert list_names(texts[language]) == set(values)
    assert translate_note(texts["en"].format(**values), language) == texts[language].format(
        **values
    )


def test_what_was_added_to_a_sequence_is_in_the_language_of_the_reader() -> None:
    notes = complete_sequence(["compliance", "poet"]).notes

    assert [translate_note(one, "cs") for one in notes] == [
        "'poet' byl vynechán: takový specialista neexistuje",
        "requirement_extractor byl přidán: compliance potřebuje jeho výsledky",
        "extractor byl přidán: requirement_extractor potřebuje jeho výsledky",
    ]


def test_an_error_keeps_its_id_and_its_specialist() -> None:
    text = "no requirement could be decided"
    error = SpecialistError(error_id="RD-2026-01-31-01234", specialist="compliance", text=text)

    assert translate_note(str(error), "de") == (
        "[RD-2026-01-31-01234] compliance: keine Anforderung konnte entschieden werden"
    )


def test_one_fault_of_two_attempts_is_named_once() -> None:
    errors = [
        SpecialistError(error_id=f"RD-2026-01-31-0000{number}", specialist="compliance", text=text)
        for number, text in enumerate(("no text", "no text", "no requirement could be decided"))
    ]

    assert list_errors(errors) == [str(errors[0]), str(errors[2])]
