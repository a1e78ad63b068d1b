r"""Sentences of models name requirements and passages as people know them."""

from agents.review.names import name_ids
from llm.tasks.review import (
    ClauseReading,
    ComplianceInputs,
    ComplianceOutput,
    KnownRequirement,
    SynthesisInputs,
    SynthesisOutput,
    SynthesisSource,
    TextUnit,
)

INPUTS = ComplianceInputs(
    question="?",
    language="de",
    requirements=(
        KnownRequirement(id="REQ-001", statement="Kühl.", heading="Gesetz > Artikel 2 > Absatz"),
        KnownRequirement(id="REQ-002", statement="Drei Jahre.", heading="Artikel 3 Akten"),
        KnownRequirement(id="REQ-003", statement="Lesbar.", heading="Artikel 3 Akten"),
    ),
    passages=(
        TextUnit(id="p1", heading="1 Cold", text="Cold, see REQ-009 and p3."),
        TextUnit(id="p2", text="Kept."),
        TextUnit(id="p3", heading="3 Rest", text="None."),
        TextUnit(id="REQ-009", heading="9 Ours", text="None."),
    ),
)


def test_no_id_of_the_inputs_stays_in_a_sentence() -> None:
    reading = ClauseReading(
        passage="p1", requirement_id="REQ-001", effect="breaks", reason="REQ-001 (p1), REQ-0012."
    )
    given = ComplianceOutput(readings=(reading,), notes=("REQ-002: nicht REQ-003, p2.",))

    named = name_ids(given, INPUTS)

    assert named.readings[0].reason == "Artikel 2 > Absatz (1 Cold), REQ-0012."
    assert (named.readings[0].passage, named.readings[0].requirement_id) == ("p1", "REQ-001")
    assert named.notes == (
        "Artikel 3 Akten („Drei Jahre“): nicht Artikel 3 Akten („Lesbar“), „Kept“.",
    )


def test_an_id_that_a_document_contains_too_stays() -> None:
    given = ComplianceOutput(notes=("REQ-009 and p3 stay, p1 does not.",))

    assert name_ids(given, INPUTS).notes == ("REQ-009 and p3 stay, 1 Cold does not.",)


def test_an_id_of_another_part_is_named_and_an_invented_label_is_removed() -> None:
    other = KnownRequirement(id="REQ-007", statement="Warm.", heading="Gesetz > Artikel 9")
    given = ComplianceOutput(notes=("Wie REQ-007 (p1; p2), nicht so (p77) oder (p3).",))

    named = name_ids(given, INPUTS, known=[other])

    assert named.notes == ("Wie Artikel 9 (1 Cold; „Kept“), nicht so oder (p3).",)


def test_a_citation_keeps_its_id() -> None:
    source = SynthesisSource(id="law#3", place="Law > Article 4", text="Four hours.")
    inputs = SynthesisInputs(question="?", sources=(source,))
    given = SynthesisOutput(answer="Four hours \\cite{law#3, x}, see law#3.")

    assert name_ids(given, inputs).answer == "Four hours \\cite{law#3, x}, see Article 4."
