"""The true reason where no document can answer."""

from dataclasses import replace

import pytest

from envelope.conversation import ClarificationReason as Reason
from knowledge.port import Findings, find_refusal_reason, find_uncompared


def make_findings(documents: int | None, *languages: str) -> Findings:
    return Findings(
        hits=(),
        quality="poor",
        answerability=0.0,
        coverage=0.0,
        documents=documents,
        languages=languages,
        uncompared=tuple(language for language in languages if language != "de"),
    )


@pytest.mark.parametrize(
    ("findings", "language", "text_eng", "reason"),
    [
        (make_findings(0), "en", "", Reason.NO_DOCUMENTS),
        (make_findings(3, "en"), "de", "Wie viele?", Reason.NO_TRANSLATION),
        (make_findings(3, "en"), "de", "", Reason.NO_TRANSLATION),
        (make_findings(3, "en"), "de", "How many?", None),
        (make_findings(3, "de", "en"), "de", "", None),
        (make_findings(None), "de", "", None),
        (make_findings(3, "en"), "", "", None),
    ],
)
def test_a_text_that_is_empty_or_cannot_be_compared_is_not_refused_by_subject(
    findings: Findings, language: str, text_eng: str, reason: Reason | None
) -> None:
    assert (
        find_refusal_reason(
            findings, language=language, text="Wie viele?", text_eng=text_eng, uses_model=False
        )
        is reason
    )


def test_documents_that_a_model_compares_with_a_foreign_question_are_no_matter_of_language() -> (
    None
):
    compared = replace(make_findings(3, "en"), uncompared=())

    reason = find_refusal_reason(
        compared, language="de", text="Wie viele?", text_eng="", uses_model=False
    )

    assert reason is None


def test_with_a_model_nobody_reads_that_no_translation_is_set_up() -> None:
    reason = find_refusal_reason(
        make_findings(3, "en"), language="de", text="Wie viele?", text_eng="", uses_model=True
    )

    assert reason is None


def test_a_translated_question_was_compared_with_english_documents_and_no_others() -> None:
    findings = make_findings(3, "en", "de", "ru")

    assert find_uncompared(findings, text="Wie viele?", text_eng="") == ("en", "ru")
    assert find_uncompared(findings, text="Wie viele?", text_eng="How many?") == ("ru",)
