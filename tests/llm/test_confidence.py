import pytest

from llm.tasks.search import RespondOutput


@pytest.mark.parametrize(
    ("said", "read"), [(0.4, 0.4), (1, 1.0), (95, 0.95), (-1, 0.0), (1e9, 0.0)]
)
def test_an_answer_is_not_lost_by_the_scale_of_its_confidence(said: float, read: float) -> None:
    written = {"status": "answered", "answer": "Yes. [1]", "confidence": said}

    assert RespondOutput.model_validate(written).confidence == pytest.approx(read)
