"""Notes of the rules are in the language of the reader."""

import ast
import re
import tomllib
from pathlib import Path
from string import Formatter

import pytest

from agents.named_documents import TitledDocument, find_scope
from agents.review import findings
from agents.review.audit import AuditedCitation, CitationAudit
from agents.review.findings import (
    describe_audit,
    describe_checklist,
    describe_review,
    fill,
    list_errors,
    load_finding_texts,
    translate_note,
)
from agents.review.requirements import Extraction, Requirement, RuleKind, TextPlace
from agents.review.verdicts import ReviewResult, RuleVerdict, Status, VerdictEvidence
from config.texts import load_texts as load_desk_texts
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


def test_an_audit_alone_is_told_with_its_counts_and_its_wrong_citations() -> None:
    good = AuditedCitation(label="[1]", claim="Four hours.", exists=True)
    wrong = good.model_copy(
        update={"label": "[2]", "problems": ("the number 6 does not occur in the source",)}
    )

    shown = describe_audit(CitationAudit(citations=(good, wrong)), "de")

    assert [finding.text for finding in shown] == [
        "1 von 2 Zitaten sind ohne Beanstandung.",
        "[2] Four hours: die Zahl 6 kommt in der Quelle nicht vor",
    ]


def test_a_note_keeps_its_values() -> None:
    law, other = TitledDocument("a", "Harbour Act"), TitledDocument("b", "Ferry Act")
    (assumed, *_) = find_scope("Does it comply with the law?", (law,)).notes
    (several, *_) = find_scope("Does it comply with the law?", (law, other)).notes

    assert "'Harbour Act' je jediný" in translate_note(assumed, "cs")
    assert "es gibt 2 davon" in translate_note(several, "de")


def test_text_that_the_rules_did_not_write_stays_unchanged() -> None:
    for note in ("The model saw no passage.", "no document", "", "its period is longer"):
        assert translate_note(note, "cs") == note
    assert translate_note("the model gave no verdict", "en") == "the model gave no verdict"
    assert translate_note("the model gave no verdict", "xx") == "the model gave no verdict"


@pytest.mark.parametrize("language", load_desk_texts().languages)
def test_every_sentence_of_a_finding_is_in_every_language_of_the_desk(language: str) -> None:
    english, own = load_finding_texts("en"), load_finding_texts(language)

    for key, text in english.items():
        assert list_names(own[key]) == list_names(text), key
        assert language == "en" or key == "requirement" or own[key] != text, key


@pytest.mark.parametrize("language", load_desk_texts().languages)
def test_every_note_is_translated_with_its_values(language: str) -> None:
    for key, texts in NOTES.items():
        values = {name: f"‹{name}›" for name in list_names(texts["en"])}
        translated = translate_note(texts["en"].format(**values), language)

        assert list_names(texts[language]) == set(values), key
        assert translated == texts[language].format(**values), key
        assert language == "en" or texts[language] != texts["en"], key


def test_every_english_note_is_a_text_in_the_code() -> None:
    product = Path(findings.__file__).parents[2]
    literals = "\n".join(
        node.value
        for folder in ("agents", "envelope")
        for module in (product / folder).rglob("*.py")
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    for key, texts in NOTES.items():
        parts = re.split(r"‹|law or rule|document to review", re.sub(r"\{\w+\}", "‹", texts["en"]))
        missing = [
            part for part in parts if part.replace("{{", "{").replace("}}", "}") not in literals
        ]
        assert not missing, key


def test_additions_to_a_sequence_are_in_the_language_of_the_reader() -> None:
    notes = complete_sequence(["compliance", "poet"]).notes

    assert [translate_note(note, "cs") for note in notes] == [
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


def make_place(document: str, *path: str) -> TextPlace:
    return TextPlace(document_id=document, unit_id="u", heading_path=path, start=0, end=9)


def make_requirement(name: str, statement: str, *path: str) -> Requirement:
    return Requirement(
        id=name, kind=RuleKind.DUTY, statement=statement, quotation=statement,
        place=make_place("law", *path),
    )  # fmt: skip


def describe(requirements: list[Requirement], verdicts: list[RuleVerdict]) -> list[str]:
    described = describe_review(
        Extraction(requirements=tuple(requirements), units=()),
        ReviewResult(verdicts=tuple(verdicts)),
        law="Harbour Act",
        document="Berth Contract",
        language="en",
    )
    return [finding.text for finding in described]


def test_a_requirement_is_named_by_its_article_also_if_a_heading_stands_below_it() -> None:
    path = ("Harbour Act", "Title II", "Article 9", "Pilots")
    duty = make_requirement("REQ-001", "A pilot is on board.", *path)
    other = make_requirement("REQ-002", "The crew is insured.", "Article 10")
    late = RuleVerdict(requirement_id="REQ-001", status=Status.UNDECIDED, note="too late")

    said = describe([duty, other], [late, RuleVerdict(requirement_id="REQ-002", status=Status.GAP)])

    assert said[1] == "1 of 2 requirements could not be decided (too late): Article 9 > Pilots."


def test_requirements_under_one_heading_are_told_apart_by_their_words() -> None:
    texts = ("A pilot is on board.", "The crew is insured.")
    duties = [
        make_requirement(f"REQ-{at}", text, "California", "TITLE") for at, text in enumerate(texts)
    ]
    verdicts = [RuleVerdict(requirement_id=duty.id, status=Status.COMPLIANT) for duty in duties]

    said = describe(duties, verdicts)

    assert said[1].startswith("TITLE (“A pilot is on board”) is fulfilled")
    assert said[2].startswith("TITLE (“The crew is insured”) is fulfilled")


def test_verdicts_that_nobody_gave_are_not_counted_as_none() -> None:
    duties = [make_requirement(f"REQ-{at}", "Insure it.", f"Article {at}") for at in range(3)]
    lost = [
        RuleVerdict(requirement_id=duty.id, status=Status.UNDECIDED, note="the model is away")
        for duty in duties
    ]

    assert describe(duties, lost) == [
        "None of the 3 requirements of Harbour Act could be judged for Berth Contract: the model "
        "is away."
    ]


def test_a_law_that_was_not_read_is_not_a_law_without_requirements() -> None:
    described = describe_checklist(
        Extraction(requirements=(), units=()), law="Harbour Act", language="en", read=0, unread=12
    )

    assert [finding.text for finding in described] == [
        "12 of 12 units of Harbour Act could not be read, so nobody knows what they require."
    ]


def test_a_gap_has_the_passages_that_were_judged_and_a_fulfilled_rule_its_clause() -> None:
    duties = [
        make_requirement("REQ-1", "A pilot is on board.", "Article 1"),
        make_requirement("REQ-2", "The crew is insured.", "Article 2"),
    ]
    crew = VerdictEvidence(place=make_place("contract", "7 Crew"), text="All are insured.")
    verdicts = [
        RuleVerdict(
            requirement_id="REQ-1", status=Status.GAP, closest=(crew,), note="It names no pilot."
        ),
        RuleVerdict(requirement_id="REQ-2", status=Status.COMPLIANT, evidence=(crew,)),
    ]

    _, gap, met = describe_review(
        Extraction(requirements=tuple(duties), units=()),
        ReviewResult(verdicts=tuple(verdicts)),
        law="Harbour Act",
        document="Berth Contract",
        language="en",
    )

    assert gap.text.endswith("It names no pilot. Closest in the document: 7 Crew.")
    assert gap.places == (duties[0].place, crew.place)
    assert met.text == "Article 2 is fulfilled: 7 Crew of the document says “All are insured”."
    assert met.places == (duties[1].place, crew.place)
    assert gap.is_verdict
    assert met.is_verdict


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("{document}: kontrola podle {law}. Z 3", "Řád: kontrola podle Vyhláška 48/2021 Sb. Z 3"),
        ("{law} is read in ../{document}", "Vyhláška 48/2021 Sb. is read in ../Řád"),
        ("see {law}.", "see Vyhláška 48/2021 Sb."),
    ],
)
def test_a_name_that_ends_with_a_full_stop_ends_a_sentence_once(
    template: str, sentence: str
) -> None:
    assert fill(template, document="Řád", law="Vyhláška 48/2021 Sb.") == sentence
