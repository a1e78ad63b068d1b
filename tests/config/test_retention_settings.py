from typing import Any

import pytest

from config.errors import SettingsError
from config.settings import load_settings


def settings(**changes: Any) -> Any:
    return load_settings(_env_file=None, **changes)


def test_the_times_of_an_assistant_come_before_those_of_its_tenant_and_these_before_all() -> None:
    made = settings(
        memory_ttl_days=30,
        result_ttl_hours=24,
        dead_letter_ttl_days=7,
        retention={
            "acme": {"memory_ttl_days": 2, "result_ttl_hours": 3},
            "acme/legal": {"memory_ttl_days": 1},
        },
    )

    assert made.memory_seconds_of("acme", "legal") == 86_400
    assert made.memory_seconds_of("acme", "docs") == 2 * 86_400
    assert made.memory_seconds_of("other", "legal") == 30 * 86_400
    assert made.result_seconds_of("acme", "legal") == 3 * 3_600
    assert made.result_seconds_of("other", "docs") == 24 * 3_600
    assert made.dead_letter_seconds_of("acme", "legal") == 7 * 86_400


@pytest.mark.parametrize(
    "retention",
    [
        {"acme": {"memory_ttl_days": 0}},
        {"acme": {"result_ttl_hours": -1}},
        {"acme": {"memory_days": 3}},
        {"acme/": {}},
        {"acme/docs/c1": {}},
        {"": {}},
    ],
)
def test_an_invalid_time_or_recipient_is_rejected(retention: Any) -> None:
    with pytest.raises(SettingsError, match="RETENTION"):
        settings(retention=retention)


def test_it_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETENTION", '{"acme": {"memory_ttl_days": 0.5}}')

    assert settings().memory_seconds_of("acme", "docs") == 43_200
