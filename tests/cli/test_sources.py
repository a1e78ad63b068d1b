"""Sources have a schedule and a state, which `refdesk sources` shows and changes."""

import time
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from cli.main import main
from deploy.assembly.data_folder import open_source_registry
from knowledge.documents.page import LeftOut
from knowledge.errors import SourceError
from knowledge.ingestion_report import IngestionResult
from knowledge.source_metrics import SourceMetrics
from knowledge.source_registry import (
    RegisteredSource,
    SourceSpec,
    locate_copy,
    parse_source,
)


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REFDESK_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_a_source_is_added_with_a_schedule_listed_and_removed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["sources", "add", "s3://docs/handbook/", "--schedule", "0 6 * * *"]) == 0
    assert main(["sources", "list"]) == 0

    out = capsys.readouterr().out
    assert "added s3://docs/handbook; it is read on the schedule '0 6 * * *'" in out
    assert "s3://docs/handbook\n  not yet read, next " in out
    assert " 06:00 UTC (0 6 * * *)" in out

    assert main(["sources", "remove", "s3://docs/handbook"]) == 0
    assert main(["sources", "remove", "s3://docs/handbook"]) == 3
    assert main(["sources", "list"]) == 0
    assert capsys.readouterr().out.endswith("there are no sources\n")


def test_a_schedule_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sources", "add", "s3://docs", "--schedule", "every day"]) == 1
    assert "expected a schedule in the format of cron" in capsys.readouterr().err


def test_a_source_that_cannot_be_reached_keeps_the_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["sources", "add", "webdav://127.0.0.1:9/dav"])

    assert main(["sources", "sync"]) == 6
    main(["sources", "list"])

    out = capsys.readouterr().out
    assert "webdav://127.0.0.1:9/dav was not read: " in out
    assert "documents that could not be read: 1; their previous versions are kept:\n  - " in out
    shown = out.partition("previous versions are kept:")[2].split("\n")
    assert max(map(len, shown)) <= 80


def test_the_list_shows_what_is_not_in_the_index_within_the_width(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = LeftOut(
        "hidden sheet", 1, "it is hidden in the workbook, in which people do not see it"
    )
    skipped = ("plans/old.doc", "this text document format is not supported; save it as .docx")
    result = IngestionResult(added=1, skipped=(skipped,), left_out=(("a.xlsx", sheet),))
    open_source_registry((data, "default", "default")).record([SourceSpec(place="/d")], result)

    assert main(["sources", "list"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join(line.strip() for line in lines[2:]) == (
        "not in the index: - 1 file left out (plans/old.doc): this text document format is not "
        "supported; save it as .docx - 1 hidden sheet left out: it is hidden in the workbook, in "
        "which people do not see it"
    )


@pytest.mark.parametrize("action", [["ingest"], ["sources", "add"]])
def test_an_address_with_credentials_of_the_machine_becomes_no_source(
    data: Path, action: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*action, "http://169.254.169.254/latest/"]) == 1

    assert "169.254.169.254 has an address where machines keep" in capsys.readouterr().err
    assert open_source_registry((data, "default", "default")).list_own() == []


def test_an_ingestion_keeps_the_schedule_of_its_source(data: Path) -> None:
    registry = open_source_registry((data, "default", "default"))
    spec = SourceSpec(place="/documents")
    registry.add(spec, "0 6 * * *")

    registry.record([spec], IngestionResult())

    (source,) = registry.list_own()
    assert (source.schedule, source.read_at > 0) == ("0 6 * * *", True)


def test_a_website_with_a_schedule_keeps_the_limits_of_its_crawl(data: Path) -> None:
    registry = open_source_registry((data, "default", "default"))
    crawled = parse_source("https://docs.example.com/guide/", pages=5)
    registry.record([crawled], IngestionResult())

    registry.add(parse_source("https://docs.example.com/guide/"), "0 6 * * *")

    [kept] = registry.list_own()
    assert (kept.spec.pages, kept.schedule) == (5, "0 6 * * *")


def test_the_metrics_count_sources_that_were_read_and_what_failed(data: Path) -> None:
    registry = open_source_registry((data, "default", "default"))
    metrics = CollectorRegistry()
    metrics.register(SourceMetrics(open_source_registry((data, "default", "default"))))
    registry.add(parse_source("https://docs.example.com/guide/"), "0 6 * * *")
    before = metrics.get_sample_value("refdesk_sources")

    registry.record([parse_source("https://docs.example.com/")], IngestionResult())
    registry.record_error(parse_source("https://blog.example.com/"), SourceError("no answer"))

    assert before is None
    assert metrics.get_sample_value("refdesk_sources") == 2
    assert metrics.get_sample_value("refdesk_source_failed_documents") == 1
    assert 0 <= (metrics.get_sample_value("refdesk_source_oldest_seconds") or 0) < 60


def test_a_source_is_due_by_its_schedule_else_by_the_interval_of_the_process() -> None:
    noon = 1_767_268_800.0
    daily = RegisteredSource(
        tenant="a", assistant="b", spec=SourceSpec(place="/a"), read_at=noon, schedule="0 6 * * *"
    )
    other = daily.model_copy(update={"schedule": ""})

    assert daily.next_at(60) == noon + 18 * 3600
    assert (other.next_at(60), other.next_at()) == (noon + 60, None)
    assert daily.model_copy(update={"read_at": 0.0}).next_at() > time.time()  # type: ignore[operator]


def test_a_service_is_a_source_and_a_password_in_an_address_is_refused() -> None:
    assert parse_source("Confluence://ACME.atlassian.net/HR/").root == (
        "confluence://acme.atlassian.net/HR"
    )
    for place in ("webdav://ann:secret@host/a", "zendesk://ann:secret@host"):
        with pytest.raises(SourceError, match="must not contain a password") as caught:
            parse_source(place)
        assert "secret" not in str(caught.value)


def test_a_source_that_is_removed_leaves_no_copy(data: Path) -> None:
    registry = open_source_registry((data, "default", "default"))
    spec = SourceSpec(place="s3://docs")
    registry.add(spec, "")
    copy = locate_copy(data, "default", "default", "stores", "s3://docs")
    copy.mkdir(parents=True)

    registry.forget("s3://docs")

    assert not copy.exists()


@pytest.mark.parametrize("place", ["ftp://a/b", "file:///etc"])
def test_an_address_that_no_store_has_is_refused(place: str) -> None:
    with pytest.raises(SourceError, match=r"expected a path, git:PATH or an address of http://"):
        parse_source(place)
