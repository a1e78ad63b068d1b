"""The dashboard asks only for what a worker exports, and shows all of it."""

import json
import re
from decimal import Decimal
from typing import Any

from tests.support.app_harness import ROOT
from worker.metrics import SHOWN, PrometheusMeter

DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy/dashboards/workers.json").read_text())
DEPLOYMENT = (ROOT / "docs" / "deployment.md").read_text()
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
METRIC = re.compile(r"\b(?:refdesk|process)_[a-z_]+\b")


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
    found = {
        sample.name: set(sample.labels)
        for family in meter.registry.collect()
        for sample in family.samples
        if not sample.name.endswith("_created")
    }
    depths = {metric: {"role"} for metric, _ in SHOWN.values()}
    return {**found, **depths, "refdesk_broker_up": set()}


def test_every_metric_of_a_worker_is_in_the_list_of_these_tests() -> None:
    families = {family.name for family in PrometheusMeter().registry.collect()}
    shown = list_shown_metrics()

    for family in families:
        assert any(name.startswith(family) for name in shown), family


def test_every_query_asks_for_metrics_that_a_worker_shows() -> None:
    known = list_shown_metrics()

    for query in QUERIES:
        asked = METRIC.findall(query)
        assert asked, query
        assert set(asked) <= set(known), query


def test_every_query_groups_by_labels_that_its_metrics_have() -> None:
    known = list_shown_metrics()

    for query in QUERIES:
        labels = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", query))))
        for metric in METRIC.findall(query):
            assert labels <= known[metric], query


def test_whatever_a_worker_exports_of_its_work_is_on_the_dashboard_and_in_the_docs() -> None:
    stems = {
        re.sub(r"_(sum|count|bucket)$", "", name)
        for name in list_shown_metrics()
        if "refdesk" in name
    }

    for stem in stems:
        assert any(stem in query for query in QUERIES), stem
        assert f"`{stem}`" in DEPLOYMENT, stem


def test_panels_have_ids_titles_and_places_of_their_own() -> None:
    panels = DASHBOARD["panels"]

    for key in (lambda one: one["id"], lambda one: one["title"], lambda one: str(one["gridPos"])):
        assert len({key(panel) for panel in panels}) == len(panels)
