"""Traces and metrics arrive at a receiver of OTLP, without text unless a setting says so."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import structlog
from prometheus_client import CollectorRegistry, Counter, Histogram

from broker.background_jobs import BackgroundJobs
from broker.values import Delivery, EndedMessage, Fields, Finish, JournalEntry
from deploy.assembly.observing import connect_telemetry, observing
from deploy.logging_setup import configure_logging
from envelope.outcome import Outcome
from envelope.question import Question
from telemetry.observer import QuestionObserver, find_root_id, find_trace_id
from tests.support.app_harness import settings_of
from tests.support.broker_harness import BrokerHarness, question
from tests.telemetry.receiver import Receiver, attributes_of, open_receiver
from worker.log_context import PRESENT

TEXT = "Is Ann Smith ill?"
ANSWER = "Ann Smith is on leave."
TOKEN = "a-token-of-the-collector"  # noqa: S105 - of nothing
CALL: Fields = {
    "task": "respond", "model": "gpt-5-mini@openai", "input_tokens": 100, "output_tokens": 20,
    "cost_usd": "0.25", "milliseconds": 300.0,
}  # fmt: skip
TOOL: Fields = {
    "tool_name": "search", "call_id": "c1", "duration_ms": 50.0, "success": False,
    "error_type": "timeout", "result_summary": ANSWER,
}  # fmt: skip
JOURNAL = (
    JournalEntry("model_call", CALL),
    JournalEntry("model_call", {**CALL, "milliseconds": 100.0, "error": f"refused: {TEXT}"}),
    JournalEntry("agent_run", {"role": "response", "status": "completed", "milliseconds": 1000.0,
                               "writes": {"tool_executions": [TOOL], "answer": ANSWER}}),
    JournalEntry("model_call", {**CALL, "branch": "b1"}),
    JournalEntry("agent_run", {"role": "work", "status": "gave_up", "milliseconds": 400.0,
                               "writes": {}, "branch": "b1", "reason": TEXT}),
    JournalEntry("retried", {"role": "work", "reason": TEXT}),
)  # fmt: skip


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with open_receiver() as opened:
        yield opened


async def answer(harness: BrokerHarness) -> None:
    """A question with two calls of models, a tool and a branch is answered."""
    await harness.submit(question("m1"))
    reply: Fields = {"outcome": "answered", "text": ANSWER, "language": "en"}
    finish = Finish(Outcome.ANSWERED, reply, journal=JOURNAL)
    assert await harness.settle(await harness.take(), finish)


async def observe(
    harness: BrokerHarness, receiver: Receiver, folder: Path, *, content: bool = False
) -> None:
    """A process with the setting measures what has ended, and ends."""
    settings = settings_of(
        folder, otel_exporter_otlp_endpoint=receiver.address, telemetry_content=content,
        otel_exporter_otlp_headers=f"authorization={TOKEN}",
    )  # fmt: skip
    registry = CollectorRegistry()
    Counter("refdesk_handled", "Hops.", ["role"], registry=registry).labels("lang").inc(3)
    seconds = Histogram("refdesk_wait", "Waiting.", registry=registry, buckets=(1.0, 2.0))
    seconds.observe(0.5)
    seconds.observe(5.0)
    async with observing(harness.broker, settings, registry, BackgroundJobs()):
        pass


async def test_a_question_is_one_trace_with_its_runs_calls_tools_and_branches(
    harness: BrokerHarness, receiver: Receiver, tmp_path: Path
) -> None:
    await answer(harness)

    await observe(harness, receiver, tmp_path)

    spans = {span.name: span for span in receiver.spans() if not span.status.code}
    failed = {span.name: span for span in receiver.spans() if span.status.code}
    root = spans["invoke_workflow refdesk"]
    trace_id = find_trace_id(question("m1"))
    assert {span.trace_id for span in receiver.spans()} == {trace_id.to_bytes(16, "big")}
    assert root.span_id == find_root_id(trace_id).to_bytes(8, "big")
    assert not root.parent_span_id
    run = spans["invoke_agent response"]
    assert run.parent_span_id == root.span_id
    assert run.end_time_unix_nano - run.start_time_unix_nano == pytest.approx(1e9, abs=1e6)
    call = attributes_of(spans["chat gpt-5-mini"])
    assert call["gen_ai.provider.name"] == "openai"
    assert call["gen_ai.usage.input_tokens"] == 100
    assert {span.parent_span_id for span in (failed["chat gpt-5-mini"],)} == {run.span_id}
    tool = failed["execute_tool search"]
    assert (tool.parent_span_id, attributes_of(tool)["error.type"]) == (run.span_id, "timeout")
    branch = spans["branch b1"]
    assert branch.parent_span_id == root.span_id
    assert failed["invoke_agent work"].parent_span_id == branch.span_id
    assert [event.name for event in root.events] == ["retried"]


@pytest.mark.parametrize("content", [False, True])
async def test_questions_and_answers_leave_the_installation_only_by_a_setting(
    harness: BrokerHarness, receiver: Receiver, tmp_path: Path, content: bool
) -> None:
    await answer(harness)

    await observe(harness, receiver, tmp_path, content=content)

    sent = b"".join(body for _, body, _ in receiver.bodies)
    assert (ANSWER.encode() in sent) is content
    assert TEXT.encode() not in sent
    assert {headers["authorization"] for _, _, headers in receiver.bodies} == {TOKEN}


async def test_langsmith_gets_traces_alone_at_the_address_and_with_the_headers_of_its_documentation(
    harness: BrokerHarness, receiver: Receiver, tmp_path: Path
) -> None:
    # https://docs.langchain.com/langsmith/trace-with-opentelemetry
    settings = settings_of(
        tmp_path,
        otel_exporter_otlp_endpoint=f"{receiver.address}/otel",
        otel_exporter_otlp_headers="x-api-key=a-key,Langsmith-Project=desk",
        otel_metrics_exporter="none",
    )
    await answer(harness)

    async with observing(harness.broker, settings, CollectorRegistry(), BackgroundJobs()):
        pass

    ((path, _, headers),) = receiver.bodies
    sent = {name.lower(): value for name, value in headers.items()}
    assert (path, sent["content-type"]) == ("/otel/v1/traces", "application/x-protobuf")
    assert (sent["x-api-key"], sent["langsmith-project"]) == ("a-key", "desk")
    spans = map(attributes_of, receiver.spans(path))
    assert {"invoke_workflow", "invoke_agent", "chat", "execute_tool"} <= {
        span.get("gen_ai.operation.name") for span in spans
    }


async def test_the_metrics_of_the_process_are_sent_beside_those_of_its_model_calls(
    harness: BrokerHarness, receiver: Receiver, tmp_path: Path
) -> None:
    await answer(harness)

    await observe(harness, receiver, tmp_path)

    metrics = receiver.metrics()
    assert metrics["refdesk_handled"].sum.data_points[0].as_double == 3
    waits = metrics["refdesk_wait"].histogram.data_points[0]
    assert (list(waits.bucket_counts), list(waits.explicit_bounds)) == ([1, 0, 1], [1.0, 2.0])
    assert (waits.count, waits.sum, waits.HasField("max")) == (2, 5.5, False)
    tokens = metrics["gen_ai.client.token.usage"].histogram.data_points
    assert sum(point.sum for point in tokens) == 360
    durations = metrics["gen_ai.client.operation.duration"].histogram.data_points
    assert sum(point.count for point in durations) == 3
    questions = metrics["refdesk_questions"].sum.data_points[0]
    assert attributes_of(questions)["outcome"] == "answered"


async def test_the_metrics_are_sent_also_where_no_model_was_asked(
    harness: BrokerHarness, receiver: Receiver, tmp_path: Path
) -> None:
    await observe(harness, receiver, tmp_path)

    assert {"process.uptime", "refdesk_handled"} <= receiver.metrics().keys()


async def test_a_log_line_names_the_trace_of_its_question_while_traces_are_sent(
    harness: BrokerHarness, receiver: Receiver, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("warning")
    log = structlog.get_logger("worker")
    settings = settings_of(tmp_path, otel_exporter_otlp_endpoint=receiver.address)
    await harness.submit(question("m1"))
    delivery: Delivery = await harness.take()
    async with observing(harness.broker, settings, None, BackgroundJobs()):
        PRESENT.set(delivery)
        log.warning("hop_failed")
        PRESENT.set(None)
        log.warning("outside_of_a_question")
    PRESENT.set(delivery)
    log.warning("after_the_end")
    PRESENT.set(None)

    first, *others = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    trace_id = find_trace_id(question("m1"))
    assert first["trace_id"] == f"{trace_id:032x}"
    assert first["span_id"] == f"{find_root_id(trace_id):016x}"
    assert [other["event"] for other in others] == ["outside_of_a_question", "after_the_end"]
    assert not any("trace_id" in other for other in others)


async def test_a_question_that_is_sent_again_after_a_crash_has_the_same_spans(
    harness: BrokerHarness, receiver: Receiver
) -> None:
    await answer(harness)
    sender = connect_telemetry(receiver.address, None, headers={}, service="refdesk", content=False)
    assert sender is not None
    taken = await harness.broker.observed.take(count=1, block_seconds=0.0)
    wanted = asyncio.Event()
    for _ in range(2):
        observer = QuestionObserver(_Given(taken), harness.broker.replies, [sender], wanted=wanted)
        await observer.observe_next()
    await asyncio.to_thread(sender.close)

    ids = [(span.name, span.span_id) for span in receiver.spans()]
    assert ids[: len(ids) // 2] == ids[len(ids) // 2 :]


class _Given:
    """Gives the same messages each time, as to a process that takes over."""

    def __init__(self, messages: Sequence[EndedMessage]) -> None:
        self._messages = messages

    async def take(self, *, count: int, block_seconds: float) -> Sequence[EndedMessage]:
        return self._messages

    async def acknowledge(self, messages: Sequence[EndedMessage]) -> None:
        pass

    async def list_forgotten(self, messages: Sequence[EndedMessage]) -> Sequence[EndedMessage]:
        return ()

    async def announce(self, question: Question, event: str) -> None:
        pass


async def test_without_the_setting_nothing_is_connected(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)

    assert settings.otel_exporter_otlp_endpoint is None
    assert connect_telemetry(None, None, headers={}, service="refdesk", content=False) is None
    assert not settings.telemetry_content
