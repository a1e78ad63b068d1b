"""The section of `refdesk status` that shows who lives."""

import re
import tomllib
from pathlib import Path

import pytest

from broker.embedded_redis import find_server, server_version
from cli.commands.doctor import check_sources
from cli.commands.status import NOBODY, source_lines, worker_lines
from cli.printing import WIDTH
from deploy.assembly.runtime import INGESTION, ROLES
from knowledge.answerability import ENGLISH_NOTE
from knowledge.source_registry import RegisteredSource, SourceSpec
from memory.presence import LivingWorker
from tests.support.command_line import ROOT, Run


def living(host: str, *roles: str) -> LivingWorker:
    return LivingWorker(host, 7, roles, started_at=0.0, seen_at=61.5)


def test_without_workers_the_command_names_the_command_that_starts_a_worker(run: Run) -> None:
    result = run("status")

    assert result.out.endswith(f"\n\nWorkers\n  {NOBODY}\n")
    assert "refdesk up" in NOBODY
    assert "refdesk worker --role" in NOBODY
    assert run("status", "--json").json["workers"] == []


def test_documents_that_the_shipped_model_cannot_compare_are_said(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "urlaub.md"
    page.write_text("# Urlaub\n\nAlle Mitarbeiter haben dreißig Tage Urlaub im Jahr.\n")

    ingested = run("ingest", str(page))
    status = run("status")

    expected = f"EMBEDDING_MODEL=all-MiniLM-L6-v2, documents in de: {ENGLISH_NOTE}"
    assert f"note on {expected}" in ingested.out
    assert f"note: {expected}" in status.out
    assert "Set EMBEDDING_MODEL=multilingual" in ENGLISH_NOTE


def test_a_worker_has_its_host_pid_times_and_roles() -> None:
    assert worker_lines(
        [living("pod-a", "lang", "search"), living("pod-b", *ROLES, INGESTION)]
    ) == [
        "",
        "Workers",
        "  pod-a, pid 7",
        "    since 1970-01-01 00:00:00Z, last seen 1970-01-01 00:01:01Z",
        "    roles: lang, search",
        "  pod-b, pid 7",
        "    since 1970-01-01 00:00:00Z, last seen 1970-01-01 00:01:01Z",
        "    roles: every role, ingestion",
    ]


def test_nothing_is_wider_than_a_terminal() -> None:
    lines = worker_lines([]) + worker_lines([living("h" * 200, *ROLES[1:])])

    assert max(map(len, lines)) <= WIDTH


@pytest.mark.slow
def test_the_command_prints_its_version(run: Run) -> None:
    result = run("--version")

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (result.status, result.out) == (0, f"refdesk {project['version']}\n")


@pytest.mark.slow
def test_names_keep_their_capitals_in_the_help(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")

    result = run("serve", "--help")

    assert "Serve the HTTP API, the chat completions API" in result.out


@pytest.mark.slow
@pytest.mark.redis
def test_status_says_which_redis_runs(run: Run) -> None:
    program = find_server()
    assert program is not None, "a test of a real redis-server needs one"
    major, minor = server_version(program).numbers

    result = run("status")

    first, head, *_ = result.out.splitlines()
    assert re.fullmatch(
        rf"(Redis|Valkey) {major}\.{minor}\.\d+ of the data folder, with data stored on "
        f"disk",
        first,
    )
    assert head.startswith("role ")


def test_a_source_that_was_never_read_has_no_time() -> None:
    source = RegisteredSource(
        tenant="a", assistant="b", spec=SourceSpec(place="/handbook"), read_at=0
    )

    lines = list(source_lines([source]))

    assert lines[2:] == ["  /handbook", "    not read yet"]
    assert [finding.text for finding in check_sources([source])] == [
        "/handbook has not been read yet"
    ]
