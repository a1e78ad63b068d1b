import pytest
from pydantic import JsonValue

from tools.effects.digests import digest_arguments


@pytest.mark.parametrize("other", [{"a": 1.5}, {"a": "1"}, {"a": True}, {"b": 1}, [1], None, {}])
def test_different_arguments_have_different_digests(other: JsonValue) -> None:
    assert digest_arguments({"a": 1}) != digest_arguments(other)


def test_a_digest_has_one_length_and_does_not_depend_on_the_order_of_keys() -> None:
    assert len(digest_arguments({"a": "ü" * 10_000})) == 32
    assert digest_arguments({"a": 1, "b": 2}) == digest_arguments({"b": 2, "a": 1})
