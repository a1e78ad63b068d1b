"""Notes of the rules are in the language of the reader."""

from compliance.requirements.extraction import extract_requirements
from compliance.requirements.requirement import RuleUnit
from compliance.team.review_scope import TitledDocument, find_scope
from compliance.verdicts.opposition import compare_periods
from compliance.wording.fixed_notes import translate_note


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
    assert translate_note(unread, "cs").startswith("pro jazyk 'fi' nejsou")


def test_what_the_rules_did_not_write_stays_as_it_is() -> None:
    for note in ("The model saw no passage.", "no document", "", "its period is longer"):
        assert translate_note(note, "cs") == note
    assert translate_note("it permits what is forbidden", "en") == "it permits what is forbidden"
    assert translate_note("it permits what is forbidden", "fr") == "it permits what is forbidden"
