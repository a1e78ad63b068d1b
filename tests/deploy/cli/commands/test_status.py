"""The section of `refdesk status` that shows who lives."""

from config.settings import load_settings
from deploy.assembly.runtime import INGESTION, ROLES
from deploy.cli.operations.status import NOBODY, find_notes, worker_lines
from deploy.cli.printing import WIDTH
from memory.presence import LivingWorker
from tests.support.command_line import Run


def living(host: str, *roles: str) -> LivingWorker:
    return LivingWorker(host, 7, roles, started_at=0.0, seen_at=61.5)


def test_where_nobody_lives_it_says_what_starts_a_worker(run: Run) -> None:
    result = run("status")

    assert result.out.endswith(f"\n\nWorkers\n  {NOBODY}\n")
    assert "refdesk up" in NOBODY
    assert "refdesk worker --role" in NOBODY
    assert run("status", "--json").json["workers"] == []


def test_an_embedding_model_without_calibration_is_said() -> None:
    other = "BAAI/bge-small-en-v1.5@fastembed"

    assert list(find_notes(load_settings())) == []
    (note,) = find_notes(load_settings().model_copy(update={"embedding_model": other}))
    assert note.startswith(f"EMBEDDING_MODEL={other}: it is not calibrated")


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
