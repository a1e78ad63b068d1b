from dataclasses import replace
from decimal import Decimal

import pytest
from prometheus_client import generate_latest
from pydantic import JsonValue

from broker.values import Fields, Forward
from envelope.question import Question
from envelope.run import Run
from llm.port import ModelCall, Usage, record
from worker.call_recording import HopCalls, encode_model_call, fallbacks_of
from worker.metrics import PrometheusMeter

QUESTION = Question(tenant="acme", assistant="docs", conversation_id="c", message_id="m")


def make_run(stage: str) -> Run:
    return Run(QUESTION, stage)


def call(error: str | None = None, cost: Decimal | None = Decimal("0.01")) -> ModelCall:
    return ModelCall("respond", "gpt@openai", Usage(10, 5), cost, 12.0, error=error)


async def test_a_hops_calls_are_journaled_and_counted() -> None:
    meter = PrometheusMeter()

    with HopCalls(meter)(make_run("response")) as calls:
        record(call())
        entries = calls()

    assert b'"cost_usd":"0.01"' in entries[0].encode()
    shown = generate_latest(meter.registry).decode()
    labels = 'model="gpt@openai",outcome="answered",role="response"'
    assert f"refdesk_model_calls_total{{{labels}}} 1.0" in shown
    assert 'refdesk_model_cost_usd_total{model="gpt@openai",role="response"} 0.01' in shown


@pytest.mark.parametrize("kind", ["success", "hallucination", "validation", "execution", "timeout"])
def test_each_way_in_which_a_call_of_a_tool_ends_is_counted(kind: str) -> None:
    meter = PrometheusMeter()
    executions: list[JsonValue] = [{"tool_name": "graph_search", "error_type": kind}]

    HopCalls(meter).count_fallbacks("tool", {"tool_executions": executions})

    tool = "other" if kind == "hallucination" else "graph_search"
    labels = f'error_type="{kind}",role="tool",tool="{tool}"'
    shown = generate_latest(meter.registry).decode()
    assert f"refdesk_tool_calls_total{{{labels}}} 1.0" in shown


def test_errors_of_specialists_are_counted_by_severity() -> None:
    meter = PrometheusMeter()

    HopCalls(meter).count_fallbacks("compliance", {"errors": [{"severity": "medium"}]})

    labels = 'role="compliance",severity="medium"'
    shown = generate_latest(meter.registry).decode()
    assert f"refdesk_specialist_errors_total{{{labels}}} 1.0" in shown


async def test_calls_of_a_failed_hop_are_counted_too() -> None:
    meter = PrometheusMeter()
    recorder = HopCalls(meter)

    def hop() -> None:
        with recorder(make_run("response")):
            record(call(error="RateLimited: slow down"))
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        hop()

    shown = generate_latest(meter.registry).decode()
    assert 'refdesk_fallbacks_total{reason="model_failed",role="response"} 1.0' in shown
    labels = 'model="gpt@openai",outcome="failed",role="response"'
    assert f"refdesk_model_calls_total{{{labels}}} 1.0" in shown


async def test_a_call_of_unknown_price_is_counted_as_such() -> None:
    meter = PrometheusMeter()

    with HopCalls(meter)(make_run("response")):
        record(call(cost=None))

    shown = generate_latest(meter.registry).decode()
    assert 'refdesk_model_unpriced_total{model="gpt@openai",role="response"} 1.0' in shown
    assert "refdesk_model_cost_usd_total{" not in shown


def test_an_unknown_cost_stays_unknown() -> None:
    assert encode_model_call(call(cost=None)).fields["cost_usd"] is None


@pytest.mark.parametrize(
    ("writes", "fallbacks"),
    [
        ({"search_stats": {"fallbacks": ["semantic"]}}, ["semantic_level_missing"]),
        ({"search_stats": {"fallbacks": ["calibration"]}}, ["calibration_missing"]),
        ({"clarification_fallback": "the model failed"}, ["fixed_text"]),
        ({"search_stats": {"fallbacks": []}, "response": "x"}, []),
        ({"fallback_reason": "bad_key"}, ["bad_key"]),
    ],
)
def test_fallbacks_are_read_from_what_a_hop_wrote(writes: Fields, fallbacks: list[str]) -> None:
    assert fallbacks_of(writes) == fallbacks


async def test_calls_of_a_hop_that_ran_in_another_process_are_counted_from_its_journal() -> None:
    meter = PrometheusMeter()
    stored = encode_model_call(replace(call(), from_store=True))
    journal = (
        encode_model_call(call()),
        encode_model_call(call(error="RateLimited: slow down")),
        stored,
    )

    HopCalls(meter).count_isolated_calls("response", Forward(sends=(), journal=journal))

    shown = generate_latest(meter.registry).decode()
    for outcome in ("answered", "failed"):
        labels = f'model="gpt@openai",outcome="{outcome}",role="response"'
        assert f"refdesk_model_calls_total{{{labels}}} 1.0" in shown
    assert 'refdesk_model_cost_usd_total{model="gpt@openai",role="response"} 0.02' in shown


@pytest.mark.parametrize("saved", [Decimal("0.25"), None])
async def test_a_hit_of_the_cache_is_journaled_and_counted_with_the_money_it_saved(
    saved: Decimal | None,
) -> None:
    meter, beside = PrometheusMeter(), PrometheusMeter()
    hit = replace(call(cost=Decimal(0)), from_store=True, from_cache=True, saved_usd=saved)

    with HopCalls(meter)(make_run("response")) as calls:
        record(hit)
        [entry] = calls()
    journal = (encode_model_call(hit),)
    HopCalls(beside).count_isolated_calls("response", Forward(sends=(), journal=journal))

    saving = b'"saved_usd":null' if saved is None else b'"saved_usd":"0.25"'
    assert saving in entry.encode()
    for one in (meter, beside):
        shown = generate_latest(one.registry).decode()
        labels = 'model="gpt@openai",role="response"'
        assert f"refdesk_model_cache_hits_total{{{labels}}} 1.0" in shown
        assert (f"refdesk_model_saved_usd_total{{{labels}}} 0.25" in shown) is (saved is not None)
        assert "refdesk_model_calls_total{" not in shown


async def test_searches_are_counted_for_the_role_that_asked_and_by_where_they_were_found() -> None:
    meter = PrometheusMeter()
    recorder = HopCalls(meter)

    recorder.count_search(make_run("guardrails"), is_hit=False)
    recorder.count_search(make_run("search"), is_hit=True)

    shown = generate_latest(meter.registry).decode()
    assert 'refdesk_searches_total{role="guardrails",source="index"} 1.0' in shown
    assert 'refdesk_searches_total{role="search",source="cache"} 1.0' in shown


def test_the_score_of_a_judged_answer_is_counted() -> None:
    meter = PrometheusMeter()

    HopCalls(meter).count_fallbacks("quality", {"quality_score": 0.65})

    shown = generate_latest(meter.registry).decode()
    assert 'refdesk_quality_score_bucket{le="0.6",role="quality"} 0.0' in shown
    assert 'refdesk_quality_score_bucket{le="0.7",role="quality"} 1.0' in shown
