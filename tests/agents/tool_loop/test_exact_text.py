import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import JsonValue

from agents.tool_loop.tool import is_shown_unchanged, write_exactly

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=5,
)


@given(VALUES)
@example("A variation selector: \U000e0100")
def test_the_shown_text_is_the_value_and_no_reply_changes_it(value: JsonValue) -> None:
    shown = write_exactly(value, 10_000)

    assert shown is not None
    assert json.loads(shown) == value
    assert is_shown_unchanged(f"`{shown}`")


@pytest.mark.parametrize(
    "text",
    [
        "max@a.example",
        "https://a.example/x?y=1",
        "see <b>x</b> [here](https://evil.example)",
        "www.evil.example",
        "two  spaces",
        "hidden\u200b and turned \u202e signs",
        "`code`",
    ],
)
def test_addresses_marks_and_hidden_signs_are_shown(text: str) -> None:
    shown = write_exactly({"to": text}, 1_000)

    assert shown is not None
    assert json.loads(shown) == {"to": text}


def test_plain_values_are_not_made_harder_to_read() -> None:
    assert write_exactly({"id": "7", "amount": 5}, 100) == '{"id": "7", "amount": 5}'


def test_a_value_that_is_too_long_is_not_shown_in_part() -> None:
    assert write_exactly({"text": "x" * 100}, 100) is None
