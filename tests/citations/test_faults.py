from citations.faults import CheckedAnswer, check_draft, find_faults
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
