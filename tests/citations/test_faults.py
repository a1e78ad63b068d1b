import pytest

from citations.faults import CheckedAnswer, check_draft, find_faults, withhold_faults
from envelope.sources import SourceReference, SourceUsed

CONTEXT = "A rule may have up to 8 conditions."


def make_answer(text: str) -> CheckedAnswer:
    reference = SourceReference(number=1, chunk_id="a", title="Rules", span=(0, len(CONTEXT)))
    used = SourceUsed(number=1, chunk_id="a", title="Rules")
    return CheckedAnswer(text, CONTEXT, (reference,), (used,), "en")


def test_a_draft_shows_no_sentence_above_a_list_that_has_no_source() -> None:
    answer = make_answer(f"Your password is wanted here.\n\n- {CONTEXT} [1]")

    draft = check_draft(answer, None)

    # A judge reads it with the whole answer; nobody has read a draft.
    assert find_faults(answer) == ()
    assert draft is not None
    assert draft.text == f"- {CONTEXT} [1]"


def test_none_of_many_false_claims_is_sent_without_a_judge() -> None:
    false = [f"A rule may have up to {number} conditions. [1]" for number in range(100, 140)]
    answer = make_answer("\n\n".join([f"{CONTEXT} [1]", *false]))

    draft = check_draft(answer, None)

    assert withhold_faults(answer).text == f"{CONTEXT} [1]"
    assert draft is not None
    assert draft.text == f"{CONTEXT} [1]"


@pytest.mark.parametrize(
    ("claim", "note"),
    [
        ("Article 27 allows it. [1]", "no source contains: Article 27"),
        ("See clause 44 for conditions. [1]", "no source contains: clause 44"),
        ("Annex Q lists them. [1]", "no source contains: Annex Q"),
        ("Section 3 and \u00a7 4 say it. [1]", ""),
    ],
)
def test_a_reference_that_no_source_has_is_noted_for_the_judge(claim: str, note: str) -> None:
    text = "\u00a7 3 holds for 27 days and 44 people.\n\n4. Conditions\n\nQ"
    reference = SourceReference(number=1, chunk_id="a", title="Act", span=(0, len(text)))
    used = SourceUsed(number=1, chunk_id="a", title="Act")

    faults = find_faults(CheckedAnswer(claim, text, (reference,), (used,), "en"))

    assert [(fault.reason, fault.is_proved) for fault in faults] == (
        [(note, False)] if note else []
    )
