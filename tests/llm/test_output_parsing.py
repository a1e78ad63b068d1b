"""What a model writes is read as far as it can be, at no further call."""

import json

import pytest

from llm.output_parsing import NotReadable, read
from llm.tasks.question import UnderstandOutput

UNDERSTOOD = {"canonical_question": "", "context_type": "new_topic", "verdict": "within"}


def test_a_null_where_none_is_allowed_is_a_field_that_was_left_out() -> None:
    details = {"reason": "why", "style": None, "answer_language": None, "act": None}

    output = read(json.dumps({**UNDERSTOOD, "details": details}), UnderstandOutput)

    assert output.details is not None
    assert (output.details.reason, output.details.style, output.details.act) == ("why", "", None)


@pytest.mark.parametrize(
    "wrong", [{"verdict": None}, {"details": {"style": None, "from_now_on": "perhaps"}}]
)
def test_missing_or_invalid_fields_are_requested_again(wrong: dict[str, object]) -> None:
    with pytest.raises(NotReadable):
        read(json.dumps({**UNDERSTOOD, **wrong}), UnderstandOutput)


@pytest.mark.parametrize(("text", "ignores_schema"), [("", False), (" \n", False), ("Yes.", True)])
def test_an_empty_reply_does_not_show_that_a_server_ignores_schemas(
    text: str, ignores_schema: bool
) -> None:
    with pytest.raises(NotReadable) as raised:
        read(text, UnderstandOutput)

    assert raised.value.ignores_schema is ignores_schema
