import pytest

from llm.output_parsing import read_complete_fields, read_partial_answer

ANSWERED = (
    '{"status": "answered", '
    '"answer": "Open \\u201eRules\\u201c.\\n\\nThen \\"save\\". \\ud83d\\ude00'
)


def test_the_answer_is_read_as_far_as_it_was_written() -> None:
    assert read_partial_answer(ANSWERED) == 'Open „Rules“.\n\nThen "save". 😀'


def test_no_part_of_an_escape_sequence_is_ever_shown() -> None:
    whole = read_partial_answer(ANSWERED)

    for end in range(len(ANSWERED) + 1):
        assert whole.startswith(read_partial_answer(ANSWERED[:end]))


@pytest.mark.parametrize(
    "written",
    [
        "",
        "{",
        '{"status": "answered", "ans',
        '{"answer": "Open Rules. ',
        '{"status": "insufficient_context", "answer": "Perhaps ',
        '{"status": "answ", "answer": "Open ',
        '["status", "answered"',
        'Here you are: {"status": "answered", "answer": "Open ',
        "<think>{\"status\": \"answered\", \"answer\": \"not yet",
        '{"status": "answered", "answer": ["Open ',
        '{"status": "answered", "answer": null',
    ],
)  # fmt: skip
def test_a_partial_answer_without_text_is_not_shown(written: str) -> None:
    assert read_partial_answer(written) == ""


@pytest.mark.parametrize("before", ["```json\n", "```\n", "<think>a {brace}</think>\n", "\n "])
def test_fences_and_thoughts_before_the_answer_are_skipped(before: str) -> None:
    written = before + '{"status": "answered", "answer": "Open Rules. Then'

    assert read_partial_answer(written) == "Open Rules. Then"


def test_an_answer_before_its_status_waits_until_the_status_is_known() -> None:
    written = '{"answer": "Open Rules.", "status": "answered"'

    assert read_partial_answer(written) == "Open Rules."


def test_a_field_counts_when_it_is_complete() -> None:
    written = '{"canonical_question": "How do I?", "context_type": "new_topic'

    partial_outputs = [read_complete_fields(written[:end]) for end in range(len(written) + 1)]

    assert {output["canonical_question"] for output in partial_outputs if output} == {"How do I?"}
    assert all("context_type" not in output for output in partial_outputs)
