"""`refdesk doctor` says what works, what does not, and no secret."""

from pathlib import Path

import pytest

from cli.commands.doctor import EXIT_FAULTS, SetupFinding, hide_secrets
from cli.model_in_use import NO_MODEL, describe_models, say_models_once
from cli.printing import WIDTH
from tests.support.app_harness import settings_of
from tests.support.command_line import Run

SECRET = "a-password-that-nobody-may-read"  # noqa: S105 - of nothing


def test_an_installation_that_works_is_examined_in_one_page(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "leave.md"
    page.write_text("# Leave\n\nAll employees have thirty days of leave a year.\n")
    run("ingest", str(page))

    result = run("doctor")

    lines = result.out.splitlines()
    assert result.status == 0
    assert "FAULT" not in result.out
    assert all(len(line) <= WIDTH for line in lines)
    assert len(lines) < 25
    parts = {item["part"] for item in run("doctor", "--json").json}
    assert parts == {
        "versions", "settings", "disk", "redis", "queues", "clock", "workers", "index",
        "jobs", "embedding", "models", "records", "slack", "telegram", "sources",
    }  # fmt: skip


def test_an_unreachable_service_is_a_fault_and_hides_no_other_finding(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", f"redis://:{SECRET}@127.0.0.1:1/0")
    monkeypatch.setenv("QDRANT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("RECORDS_URL", f"postgresql://desk:{SECRET}@127.0.0.1:1/desk")

    result = run("doctor", "--json")

    states = {item["part"]: item["state"] for item in result.json}
    assert result.status == EXIT_FAULTS
    assert {part for part, state in states.items() if state == "fault"} == {
        "redis", "index", "records",
    }  # fmt: skip
    assert states["embedding"] in {"ok", "note"}
    assert SECRET not in result.out + result.err


def test_a_secret_that_an_error_quotes_is_hidden() -> None:
    hidden_findings = hide_secrets([SetupFinding("redis", "fault", f"refused {SECRET}")], {SECRET})

    assert hidden_findings == [SetupFinding("redis", "fault", "refused [hidden]")]


def test_the_first_question_says_that_no_model_is_in_use_and_the_next_one_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = settings_of(tmp_path)

    say_models_once(describe_models(own), own.refdesk_data)
    first = capsys.readouterr().err
    say_models_once(describe_models(own), own.refdesk_data)
    second = capsys.readouterr().err
    other = own.model_copy(update={"gen_model": "gpt-5-mini@openai"})
    say_models_once(describe_models(other), own.refdesk_data)
    changed = capsys.readouterr().err

    assert first == f"refdesk: {NO_MODEL}\n"
    assert second == ""
    assert "gpt-5-mini@openai" in changed
