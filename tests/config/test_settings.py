import pytest

from config.errors import SettingsError
from config.settings import EMPTY_HAS_A_MEANING, Settings, load_settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HANDOVER_WEBHOOK", '{"url": "https://acme.test", "secret": "whsec_hidden"}'),
        ("COMPATIBLE_SERVERS", '{"openai": {"base_url": "http://a.test", "api_key": "hidden"}}'),
    ],
)
def test_the_error_of_a_setting_does_not_repeat_its_secret(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(SettingsError, match=name) as raised:
        load_settings(_env_file=None)

    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('"http://a.test"', "COMPATIBLE_SERVERS: expected an object, found a text"),
        ('[{"name": "own"}]', "COMPATIBLE_SERVERS: expected an object, found a list"),
        ('{"own": "http://a.test"}', "COMPATIBLE_SERVERS['own']: expected an object, found a text"),
        ('{"own": null}', "COMPATIBLE_SERVERS['own']: expected an object, found null"),
        ('{"own": {}}', "COMPATIBLE_SERVERS['own']['base_url']: expected a value, found nothing"),
        (
            '{"own": {"base_url": 8}}',
            "COMPATIBLE_SERVERS['own']['base_url']: expected a text, found a number",
        ),
        ("http://a.test", "COMPATIBLE_SERVERS: expected JSON"),
    ],
)
def test_a_setting_of_another_shape_names_what_was_expected_and_an_example(
    value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPATIBLE_SERVERS", value)

    with pytest.raises(SettingsError) as raised:
        load_settings(_env_file=None)

    assert str(raised.value).startswith(message)
    assert "such as " in str(raised.value)
    assert '{"NAME": {"base_url": "...", "api_key": "..."}}' in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("QDRANT_URL", "qdrant:6333"),
        ("OPENAI_BASE_URL", "localhost/v1"),
        ("SLACK_API_URL", "slack.com"),
        ("TELEGRAM_API_URL", "telegram"),
        ("TELEGRAM_WEBHOOK_URL", "hooks"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "no-value"),
        ("DEFAULT_LANGUAGE", "german"),
        ("TENANT", "acme/docs"),
        ("ASSISTANT", "my docs"),
        ("SWARM_STRATEGY", "debate"),
        ("RESULT_TTL_HOURS", "1e99"),
        ("MEMORY_TTL_DAYS", "inf"),
        ("MODEL_TIMEOUT_SECONDS", "1e99"),
        ("DEADLINE_SECONDS", "inf"),
    ],
)
def test_a_value_with_which_no_question_could_be_answered_is_refused_at_the_start(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(SettingsError, match=f"^{name}: "):
        load_settings(_env_file=None)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, field in Settings.model_fields.items()
        if field.default is None and name not in EMPTY_HAS_A_MEANING
    ],
)
def test_an_empty_value_of_a_setting_that_may_be_unset_unsets_it(name: str) -> None:
    settings = load_settings(_env_file=None, **{name: ""})

    assert getattr(settings, name) is None


def test_an_empty_prefix_of_an_embedding_model_is_unset() -> None:
    assert (
        load_settings(_env_file=None, embedding_question_prefix="").embedding_question_prefix == ""
    )
