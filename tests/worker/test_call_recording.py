from dataclasses import replace
from decimal import Decimal

import pytest
from prometheus_client import generate_latest

from broker.values import Fields, Forward
from envelope.question import Question
from envelope.run import Run
from llm.port import ModelCall, Usage, record
from worker.call_recording import HopCalls, encode_model_call, fallbacks_of, is_same_model
from worker.metrics import PrometheusMeter

QUESTION = Question(tenant="acme", assistant="docs", conversation_id="c", message_id="m")


def make_run(stage: str) -> Run:
    return Run(QUESTION, stage)


def call(error: str | None = None, cost: Decimal | None = Decimal("0.01")) -> ModelCall:
    return ModelCall("respond", "gpt@openai", Usage(10, 5), cost, 12.0, error=error)


def show(meter: PrometheusMeter) -> str:
    return generate_latest(meter.registry).decode()


@pytest.fixture
def meter() -> PrometheusMeter:
    return PrometheusMeter()


def list_calls(outcome: str, count: float = 1.0) -> str:
    labels = f'model="gpt@openai",outcome="{outcome}",role="response"'
    return f"refdesk_model_calls_total{{{labels}}} {count}"


async def test_a_hops_calls_are_journaled_and_counted(meter: PrometheusMeter) -> None:
    with HopCalls(meter)(make_run("response")) as calls:
        record(call())
        entries = calls()

    assert b'"cost_usd":"0.01"' in entries[0].encode()
    assert list_calls("answered") in show(meter)
    assert 'refdesk_model_cost_usd_total{model="gpt@openai",role="response"} 0.01' in show(meter)


def call_tool(kind: str) -> Fields:
    return {"tool_executions": [{"tool_name": "graph_search", "error_type": kind}]}


@pytest.mark.parametrize(
    ("role", "writes", "counted"),
    [
        *(
            (
                "tool",
                call_tool(kind),
                f'tool_calls_total{{error_type="{kind}",role="tool",tool="{tool}"}}',
            )
            for kind, tool in {
                "success": "graph_search", "hallucination": "other", "validation": "graph_search",
                "execution": "graph_search", "timeout": "graph_search",
            }.items()
        ),
        ("compliance", {"errors": [{"severity": "medium"}]},
         'specialist_errors_total{role="compliance",severity="medium"}'),
        ("quality", {"quality_score": 0.65}, 'quality_score_bucket{le="0.7",role="quality"}'),
    ],
)  # fmt: skip
def test_the_writes_of_a_hop_are_counted(
    meter: PrometheusMeter, role: str, writes: Fields, counted: str
) -> None:
    HopCalls(meter).count_fallbacks(role, writes)

    assert f"refdesk_{counted} 1.0" in show(meter)
    assert 'le="0.6",role="quality"} 1.0' not in show(meter)


async def test_calls_of_a_failed_hop_are_counted_too(meter: PrometheusMeter) -> None:
    def hop() -> None:
        with HopCalls(meter)(make_run("response")):
            record(call(error="RateLimited: slow down"))
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        hop()

    assert 'refdesk_fallbacks_total{reason="model_failed",role="response"} 1.0' in show(meter)
    assert list_calls("failed") in show(meter)


async def test_a_call_of_unknown_price_is_journaled_and_counted_as_such(
    meter: PrometheusMeter,
) -> None:
    with HopCalls(meter)(make_run("response")):
        record(call(cost=None))

    unpriced = 'refdesk_model_unpriced_total{model="gpt@openai",role="response"} 1.0'
    assert encode_model_call(call(cost=None)).fields["cost_usd"] is None
    assert unpriced in show(meter)
    assert "refdesk_model_cost_usd_total{" not in show(meter)


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
def test_fallbacks_are_read_from_the_writes_of_a_hop(writes: Fields, fallbacks: list[str]) -> None:
    assert fallbacks_of(writes) == fallbacks


async def test_calls_of_a_hop_that_ran_in_another_process_are_counted_from_its_journal(
    meter: PrometheusMeter,
) -> None:
    stored = replace(call(), from_store=True)
    calls = (call(), call(error="RateLimited: slow down"), stored)
    journal = tuple(map(encode_model_call, calls))

    HopCalls(meter).count_isolated_calls("response", Forward(sends=(), journal=journal))

    assert list_calls("answered") in show(meter)
    assert list_calls("failed") in show(meter)
    assert 'refdesk_model_cost_usd_total{model="gpt@openai",role="response"} 0.02' in show(meter)


@pytest.mark.parametrize("saved", [Decimal("0.25"), None])
async def test_a_hit_of_the_cache_is_journaled_and_counted_with_the_money_it_saved(
    meter: PrometheusMeter, saved: Decimal | None
) -> None:
    beside = PrometheusMeter()
    hit = replace(call(cost=Decimal(0)), from_store=True, from_cache=True, saved_usd=saved)

    with HopCalls(meter)(make_run("response")) as calls:
        record(hit)
        [entry] = calls()
    journal = (encode_model_call(hit),)
    HopCalls(beside).count_isolated_calls("response", Forward(sends=(), journal=journal))

    saving = b'"saved_usd":null' if saved is None else b'"saved_usd":"0.25"'
    assert saving in entry.encode()
    for shown in (show(meter), show(beside)):
        labels = 'model="gpt@openai",role="response"'
        assert f"refdesk_model_cache_hits_total{{{labels}}} 1.0" in shown
        assert (f"refdesk_model_saved_usd_total{{{labels}}} 0.25" in shown) is (saved is not None)
        assert "refdesk_model_calls_total{" not in shown


async def test_searches_are_counted_for_the_role_that_asked_and_by_where_they_were_found(
    meter: PrometheusMeter,
) -> None:
    recorder = HopCalls(meter)

    recorder.count_search(make_run("guardrails"), is_hit=False)
    recorder.count_search(make_run("search"), is_hit=True)

    assert 'refdesk_searches_total{role="guardrails",source="index"} 1.0' in show(meter)
    assert 'refdesk_searches_total{role="search",source="cache"} 1.0' in show(meter)


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
