"""Names of models: which ones are those of one model."""

import pytest

from manager.fault_checks import is_same_model


@pytest.mark.parametrize(
    ("requested", "answered_by", "same"),
    [
        ("small@openai", "small-2026-01-01", True),
        ("small", "small-mini", False),
        ("models/big", "big-20260101", True),
        ("alias", "big", True),
        ("", "big", False),
    ],
)
def test_a_dated_name_is_the_same_model(requested: str, answered_by: str, *, same: bool) -> None:
    assert is_same_model(requested, answered_by, {"alias": "big"}) is same
