"""Counts ended questions for Prometheus.

| metric                              | labels                                                 |
|-------------------------------------|--------------------------------------------------------|
| refdesk_questions_total             | tenant, assistant, channel, way, outcome, reason       |
| refdesk_question_seconds            | way, outcome                                           |
| refdesk_question_quality            | tenant, assistant, way                                 |
| refdesk_question_cost_usd_total     | tenant, assistant, way                                 |
| refdesk_question_unpriced_total     | tenant, assistant, way                                 |

Each question is counted by one process, so charts must sum over processes. Labels never contain
people, conversations or texts.
"""

import asyncio
import re
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, Metric
from prometheus_client.registry import Collector

from telemetry.observer import EndedQuestion

SECONDS = (0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
SCORES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
OTHER = "other"
_SLUG = re.compile(r"[a-z][a-z0-9_]{0,47}")
_OWNER = ("tenant", "assistant", "way")


class QuestionMetrics(Collector):
    """Metrics of ended questions; `wanted` is set at the first scrape, to start measuring."""

    def __init__(self, wanted: asyncio.Event) -> None:
        self.wanted = wanted
        self._loop = asyncio.get_running_loop()
        self._own = own = CollectorRegistry()
        self._questions = Counter(
            "refdesk_questions", "Ended questions.",
            ["tenant", "assistant", "channel", "way", "outcome", "reason"], registry=own,
        )  # fmt: skip
        self._seconds = Histogram(
            "refdesk_question_seconds", "Seconds from acceptance to the outcome.",
            ["way", "outcome"], registry=own, buckets=SECONDS,
        )  # fmt: skip
        self._quality = Histogram(
            "refdesk_question_quality", "Scores of judged answers.", _OWNER, registry=own,
            buckets=SCORES,
        )  # fmt: skip
        self._cost = Counter(
            "refdesk_question_cost_usd", "Cost of questions in USD.", _OWNER, registry=own
        )
        self._unpriced = Counter(
            "refdesk_question_unpriced", "Questions of unknown cost.", _OWNER, registry=own
        )

    def describe(self) -> list[Metric]:
        """Return the families without counting as a scrape."""
        return list(self._own.collect())

    def collect(self) -> Iterator[Metric]:
        """Yield the families; called for a scrape, in any thread."""
        if not self.wanted.is_set() and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.wanted.set)
        yield from self._own.collect()

    def measure(self, question: EndedQuestion) -> None:
        """Count one question."""
        record = question.record
        owner = (record.tenant, record.assistant, record.way)
        self._questions.labels(
            record.tenant, record.assistant, record.channel, record.way, record.outcome,
            name_reason(record.reason),
        ).inc()  # fmt: skip
        self._seconds.labels(record.way, record.outcome).observe(max(0.0, record.seconds))
        if record.quality is not None:
            self._quality.labels(*owner).observe(record.quality)
        if record.cost_usd is None:
            self._unpriced.labels(*owner).inc()
        else:
            self._cost.labels(*owner).inc(float(record.cost_usd))


def name_reason(reason: str) -> str:
    """Return a reason as a label, or "other" if it is not a slug, because it could be any text."""
    return reason if not reason or _SLUG.fullmatch(reason) else OTHER
