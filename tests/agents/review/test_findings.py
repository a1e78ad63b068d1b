"""Notes of the rules are in the language of the reader."""

import tomllib
from pathlib import Path
from string import Formatter

import pytest

from agents.named_documents import TitledDocument, find_scope
from agents.review import findings
from agents.review.findings import list_errors, translate_note
from envelope.specialists import SpecialistError, complete_sequence

NOTES: dict[str, dict[str, str]] = tomllib.loads(
    Path(findings.__file__).with_name("fixed_notes.toml").read_text("utf-8")
)


def list_names(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_a_reason_is_in_the_language_of_the_reader() -> None:
    reason = "the model gave no verdict"

    assert translate_note(reason, "cs") == "model nevydal verdikt"
    assert translate_note(f"{reason}; as the model says", "de") == (
        "das Modell hat kein Urteil gegeben; as the model says"
    )


def test_a_note_keeps_its_values() -> None:
    law, other = TitledDocument("a", "Harbour Act"), TitledDocument("b", "Ferry Act")
    (assumed, *_) = find_scope("Does it comply with the law?", (law,)).notes
    (several, *_) = find_scope("Does it comply with the law?", (law, other)).notes

    assert "'Harbour Act' je jediný" in translate_note(assumed, "cs")
    assert "es gibt 2 davon" in translate_note(several, "de")


def test_what_the_rules_did_not_write_stays_as_it_is() -> None:
    for note in ("The model saw no passage.", "no document", "", "its period is longer"):
        assert translate_note(note, "cs") == note
    assert translate_note("the model gave no verdict", "en") == "the model gave no verdict"
    assert translate_note("the model gave no verdict", "fr") == "the model gave no verdict"


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
    text = "no document to classify"
    error = SpecialistError(error_id="RD-2026-01-31-01234", specialist="compliance", text=text)

    assert translate_note(str(error), "de") == (
        "[RD-2026-01-31-01234] compliance: es fehlt ein Dokument, dessen Art bestimmt wird"
    )


def test_one_fault_of_two_attempts_is_named_once() -> None:
    errors = [
        SpecialistError(error_id=f"RD-2026-01-31-0000{number}", specialist="compliance", text=text)
        for number, text in enumerate(("no text", "no text", "no document to classify"))
    ]

    assert list_errors(errors) == [str(errors[0]), str(errors[2])]
