"""Finds the true reason where a question can be answered from no document."""

from envelope.conversation import ClarificationReason
from knowledge.port import Findings


def find_refusal_reason(
    findings: Findings, *, language: str, text: str, text_eng: str
) -> ClarificationReason | None:
    """Return why nothing could be found; None where the documents can be asked in this language.

    A text that nobody translated cannot be compared with documents in other languages.
    """
    if findings.documents == 0:
        return ClarificationReason.NO_DOCUMENTS
    is_foreign = bool(language and findings.languages) and language not in findings.languages
    if is_foreign and text_eng in ("", text):
        return ClarificationReason.NO_TRANSLATION
    return None
