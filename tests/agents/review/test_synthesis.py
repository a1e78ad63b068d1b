r"""`\cite{id}` becomes the number of a source, and nothing else does."""

from agents.review.synthesis import Reads, find_silent, number_citations
from envelope.specialists import Extracted, SpecialistName
from envelope.tool_loop import NO_TRIAGE


def test_ids_become_numbers_and_unknown_ids_are_named_and_removed() -> None:
    numbered = number_citations(
        "It must \\cite{law#1, law#9} and may \\cite{law#2}.", {"law#1": 1, "law#2": 2}
    )

    assert numbered.text == "It must [1] and may [2]."
    assert numbered.check.used_citations == ("law#1", "law#2")
    assert numbered.check.invalid_citations == ("law#9",)
    assert not numbered.check.valid


def test_a_planned_specialist_whose_time_ended_without_a_word_is_found() -> None:
    planned = ("extractor", "classifier", "report_generator")
    triage = NO_TRIAGE.model_copy(update={"agent_sequence": planned})
    reads = Reads(
        canonical_question="?",
        triage=triage,
        extracted=Extracted(),
        classification=({"document_id": "law"},),
    )

    assert list(find_silent(reads)) == [SpecialistName.REPORT_GENERATOR]
