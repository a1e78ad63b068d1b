"""Lines of a file that fail for one reason are one note with their number."""

from tests.knowledge.documents.conftest import Desk


async def test_lines_that_fail_for_one_reason_are_one_note_with_their_number(desk: Desk) -> None:
    questions = "\n".join('{"question": "How?", "answer": "So."}' for _ in range(26))
    desk.write("questions.jsonl", f"{questions}\nno JSON\n")

    result = await desk.ingest()

    (first, reason), other, (source, repeated) = result.failed
    assert first == "questions.jsonl:1"
    assert reason.startswith("expected the keys")
    assert other[0] == "questions.jsonl:27"
    assert source == "questions.jsonl"
    assert repeated == f"25 more of its lines could not be read for this reason: {reason}"
