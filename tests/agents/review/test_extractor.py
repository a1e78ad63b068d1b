"""The extractor looks for more where a question is more complex."""

from agents.review.extractor import count_results
from envelope.tool_loop import NO_TRIAGE


def test_a_more_complex_question_gets_more_passages_and_ten_at_most() -> None:
    shown = [
        count_results(NO_TRIAGE.model_copy(update={"complexity": complexity}))
        for complexity in (0, 50, 100)
    ]

    assert shown == [6, 8, 10]
