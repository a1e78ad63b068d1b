"""Assembles what measures ended questions, where a process has metrics or sends telemetry."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from broker.ports import Broker

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


@asynccontextmanager
async def observing(broker: Broker, registry: "CollectorRegistry | None") -> AsyncIterator[None]:
    """Measure the questions that end; nothing where `registry` is None."""
    if registry is None:
        yield
        return
    from telemetry.observer import QuestionObserver
    from telemetry.question_metrics import QuestionMetrics

    metrics = QuestionMetrics()
    registry.register(metrics)
    observer = QuestionObserver(broker.observed, broker.replies, [metrics], wanted=metrics.wanted)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(observer.run())
        try:
            yield
        finally:
            running.cancel()
