"""Dashboards and alert rules ask only for metrics and labels that processes show, and show all."""

import asyncio
import json
import re
import shutil
import subprocess
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from deploy.assembly.data_folder import open_source_registry
from gateway.chat.delivery import push_metrics
from gateway.chat.ports import Tally
from gateway.http.context import HttpMeter
from knowledge.source_metrics import SourceMetrics
from records.record import Record
from telemetry.observer import EndedQuestion
from telemetry.question_metrics import QuestionMetrics
from tests.support.app_harness import ROOT, settings_of
from worker.metrics import SHOWN, PrometheusMeter

DASHBOARD, OF_THE_DESK = (
    json.loads((ROOT / "deploy" / "dashboards" / name).read_text())
    for name in ("workers.json", "desk.json")
)
DEPLOYMENT = (ROOT / "docs" / "deployment.md").read_text()
OF_WORKERS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
RULES: dict[str, Any] = yaml.safe_load((ROOT / "deploy/kubernetes/alarms.yaml").read_text())["spec"]
METRIC = re.compile(r"\b(?:refdesk|process)_[a-z_]+\b")
RECORDED_AND_ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
ALERTS = [rule for rule in RECORDED_AND_ALERTS if "alert" in rule]
QUERIES = [
    query["expr"] for panel in OF_THE_DESK["panels"] for query in panel.get("targets", ())
] + [rule["expr"] for rule in RECORDED_AND_ALERTS]


def list_shown_metrics() -> dict[str, set[str]]:
    """Every metric of a worker with its labels, as its samples and its families are called."""
    meter = PrometheusMeter()
    meter.count_hop("lang", "forward", 0.1)
    meter.register_role("lang", slots=1, running=lambda: 0)
    meter.count_lost("lang")
    meter.count_redelivery("lang")
    meter.count_failure("lang", "failed")
    meter.count_fallback("lang", "level")
    meter.count_model_call("lang", "model", failed=False, cost_usd=None)
    meter.count_model_call("lang", "model", failed=False, cost_usd=Decimal(1))
    meter.count_cache_hit("lang", "model", saved_usd=Decimal(1))
    meter.count_decision("lang", "rules")
    meter.count_search("search", "cache")
    meter.count_routing("lang", "completed")
    meter.observe_score("quality", 0.9)
    meter.count_fault("lost_result")
    meter.count_tool_call("tool", "search", "timeout")
    meter.count_specialist_error("compliance", "high")
    results = {
        sample.name: set(sample.labels)
        for family in meter.registry.collect()
        for sample in family.samples
        if not sample.name.endswith("_created")
    }
    depths = {metric: {"role"} for metric, _ in SHOWN.values()}
    return {**results, **depths, "refdesk_broker_up": set(), "refdesk_accepting": set()}


def test_every_metric_of_a_worker_is_in_the_list_of_these_tests() -> None:
    families = {family.name for family in PrometheusMeter().registry.collect()}
    shown = list_shown_metrics()

    for family in families:
        assert any(name.startswith(family) for name in shown), family


@pytest.fixture
async def shown(tmp_path: Path) -> dict[str, set[str]]:
    """The metrics of every process, with the labels of their samples."""
    http = HttpMeter()
    http.count_request("/healthz", 200, 0.1)
    http.count_outcome("answered")
    http.count_feedback("up")
    questions = QuestionMetrics(asyncio.Event())
    record = Record("t", "a", "c", "m", 0.0, 1.0, quality=0.5)
    questions.measure(EndedQuestion(record, ()))
    questions.measure(EndedQuestion(replace(record, cost_usd=None), ()))
    counts = [Tally() for _ in range(3)]
    for tally in counts:
        tally.add("one")
    registries = [http.registry, CollectorRegistry(), push_metrics("slack", *counts)]
    registries[1].register(questions)
    sampled = {
        sample.name: set(sample.labels) - {"le"}
        for registry in registries
        for family in registry.collect()
        for sample in family.samples
        if not sample.name.endswith("_created")
    }
    sources = SourceMetrics(open_source_registry(settings_of(tmp_path).data_place)).describe()
    return {**list_shown_metrics(), **sampled, **{source.name: set() for source in sources}}


@pytest.mark.parametrize("query", [*OF_WORKERS, *QUERIES])
def test_a_query_asks_for_metrics_that_exist_and_groups_by_their_labels(
    query: str, shown: dict[str, set[str]]
) -> None:
    labels = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", query)))) - {"le"}

    assert METRIC.search(query) or query not in OF_WORKERS
    for metric in METRIC.findall(query):
        assert metric in shown, metric
        if query in OF_WORKERS or query.count("refdesk_") == 1:
            assert labels <= shown[metric], (metric, labels)


def test_every_metric_of_questions_and_sources_is_documented_and_on_the_dashboard(
    shown: dict[str, set[str]],
) -> None:
    names = {name for name in shown if re.match(r"refdesk_(question|source)", name)}
    stems = {re.sub(r"_(sum|count|bucket|created)$", "", name) for name in names}
    listed = {stem for stem in stems if f"{stem}_total" not in names}

    for stem in listed:
        assert f"`{stem}`" in DEPLOYMENT, stem
        assert any(stem in query for query in QUERIES), stem


def test_every_alert_says_what_to_do_and_how_bad_it_is() -> None:
    assert len({rule["alert"] for rule in ALERTS}) == len(ALERTS)
    for rule in ALERTS:
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}, rule["alert"]
        assert rule["annotations"]["summary"].endswith("."), rule["alert"]


UNIT_TESTS = """
rule_files: [rules.yaml]
tests:
  - interval: 1m
    input_series:
      - series: refdesk_questions_total{tenant="t", assistant="many", outcome="failed"}
        values: _x30 3x90
      - series: refdesk_questions_total{tenant="t", assistant="many", outcome="answered"}
        values: 0+2x120
      - series: refdesk_questions_total{tenant="t", assistant="few", outcome="failed"}
        values: _x30 3x90
      - series: refdesk_questions_total{tenant="t", assistant="few", outcome="answered"}
        values: 0+1x120
      - series: refdesk_question_quality_bucket{assistant="many", le="0.5"}
        values: 20x120
      - series: refdesk_question_quality_bucket{assistant="many", le="+Inf"}
        values: 20x120
      - series: refdesk_question_quality_bucket{assistant="few", le="0.5"}
        values: 19x120
      - series: refdesk_question_quality_bucket{assistant="few", le="+Inf"}
        values: 19x120
      - series: refdesk_source_failed_documents
        values: 0x120
    alert_rule_test:
      - eval_time: 41m
        alertname: RefdeskQuestionsFail
        exp_alerts:
          - exp_labels: {severity: critical, tenant: t, assistant: many}
            exp_annotations:
              summary: >-
                Of at least 20 questions in 15 minutes, more than one in twenty failed;
                look with refdesk doctor.
      - eval_time: 90m
        alertname: RefdeskQualityFalls
        exp_alerts:
          - exp_labels: {severity: warning, assistant: many}
            exp_annotations:
              summary: Of at least 20 judged answers in a day, half score below 0.7.
      - eval_time: 41m
        alertname: RefdeskSourcesFail
        exp_alerts: []
"""


def test_first_failures_count_and_few_questions_raise_no_alert_about_shares(
    tmp_path: Path,
) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian: prometheus)")
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": RULES["groups"]}))
    (tmp_path / "test.yaml").write_text(UNIT_TESTS)

    for words in (["check", "rules", "rules.yaml"], ["test", "rules", "test.yaml"]):
        done = subprocess.run(
            [promtool, *words], cwd=tmp_path, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr


def test_whatever_a_worker_exports_of_its_work_is_on_the_dashboard_and_in_the_docs() -> None:
    stems = {
        re.sub(r"_(sum|count|bucket)$", "", name)
        for name in list_shown_metrics()
        if "refdesk" in name
    }

    for stem in stems:
        assert any(stem in query for query in OF_WORKERS), stem
        assert f"`{stem}`" in DEPLOYMENT, stem


@pytest.mark.parametrize("dashboard", [DASHBOARD, OF_THE_DESK])
def test_panels_have_ids_titles_and_places_of_their_own(dashboard: dict[str, Any]) -> None:
    panels = dashboard["panels"]

    for key in (
        lambda item: item["id"],
        lambda item: item["title"],
        lambda item: str(item["gridPos"]),
    ):
        assert len({key(panel) for panel in panels}) == len(panels)
