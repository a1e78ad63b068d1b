"""Generates the descriptions of pages with a model during ingestion."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from decimal import Decimal

import structlog

from envelope.run import OUTSIDE
from knowledge.documents.page import Page
from knowledge.ingestion_report import DescriptionUsage, Report
from knowledge.kept_answers import KeptAnswers
from knowledge.rule_descriptions import Description, complete_description
from llm.errors import ModelError, ModelMisconfigured, ModelUnavailable
from llm.port import I, Model, ModelAnswer, ModelCall, O, Task, record_calls
from llm.prompts import Prompts
from llm.stored_model import decode, encode, fingerprint
from llm.tasks.descriptions import (
    DESCRIBE,
    DOCUMENT_SUMMARY,
    SECTION_SUMMARY,
    DescribeInputs,
    DescribeOutput,
    DocumentSummaryInputs,
    SectionSummaryInputs,
)

LONGEST_CONTENT = 12_000
"""Maximum number of characters of a page, or of a part of a longer page, in one prompt."""
MOST_PARTS = 24
"""Maximum number of parts of a page that are summarized; later content is ignored."""
VERSION = "1"
PAUSE_SECONDS = (2.0, 10.0, 30.0)
"""Delays before each retry of an unavailable model, unless the vendor states a delay."""
LONGEST_PAUSE_SECONDS = 60.0

log = structlog.get_logger("ingestion")


class ModelDescriber:
    """Describes pages with a model, up to `concurrency` pages concurrently.

    Answers are cached until the ingestion ends; see `KeptAnswers`. If the model is unavailable, the
    call is retried with a delay. If the retries fail, this page and the following ones use the
    rule-based description and make only one call each, until a call succeeds; the next ingestion
    tries these pages again. A page that the model fails to describe keeps its rule-based
    description.
    """

    def __init__(
        self,
        model: Model,
        prompts: Prompts,
        kept: KeptAnswers,
        *,
        concurrency: int = 1,
        report: Report | None = None,
        pauses: tuple[float, ...] = PAUSE_SECONDS,
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self.name = f"{model.name}-{VERSION}"
        self.concurrency = concurrency
        self.usage = DescriptionUsage()
        self._model = model
        self._prompts = prompts
        self._kept = kept
        self._report = report
        self._pauses = pauses
        self._close = close
        self._is_away = False

    async def describe(self, page: Page, language: str, by_rules: Description) -> Description:
        """Return the description in `language`, or `by_rules` with a problem if the model fails."""
        try:
            output = await self._find_description(page, language)
        except ModelError as error:
            self._advance(replace(self.usage, failed=self.usage.failed + 1))
            log.warning("description_fallback_used", page=page.title, error=str(error))
            later = isinstance(error, ModelUnavailable | ModelMisconfigured)
            again = "; the next ingestion asks it again" if later else ""
            problem = f"its description is by rules, because the model gave none: {error}{again}"
            return replace(by_rules, problem=problem, is_provisional=later)
        made = Description(output.description, output.summary, output.keypoints, output.keywords)
        return complete_description(page, made)

    async def finish(self) -> None:
        """Delete the cached answers once all pages are indexed."""
        await self._kept.clear()

    async def close(self) -> None:
        """Close the connections to the model provider."""
        await self._close()

    async def _find_description(self, page: Page, language: str) -> DescribeOutput:
        """Return the description of a page; a long page is summarized in parts first."""
        if len(page.content) <= LONGEST_CONTENT:
            whole = DescribeInputs(
                title=page.title, crumbs=page.crumbs, content=page.content, language=language
            )
            return await self._find_output(DESCRIBE, whole)
        parts = cut_page(page.content)
        summaries = []
        for number, content in enumerate(parts, 1):
            part = SectionSummaryInputs(
                title=page.title,
                place=f"{number} of {len(parts)}",
                content=content,
                language=language,
            )
            summaries.append((await self._find_output(SECTION_SUMMARY, part)).summary)
        joined = DocumentSummaryInputs(
            title=page.title, crumbs=page.crumbs, sections=tuple(summaries), language=language
        )
        return await self._find_output(DOCUMENT_SUMMARY, joined)

    async def _find_output(self, task: Task[I, O], inputs: I) -> O:
        key = fingerprint(task, inputs, asked=self._model.name, prompts=self._prompts)
        frame = (await self._kept.get([key])).get(key)
        known = None if frame is None else decode(frame, task.output)
        if known is not None:
            self._count((), kept=1)
            return known[0].output
        answer = await self._ask_patiently(task, inputs)
        await self._kept.put({key: encode(answer)})
        return answer.output

    async def _ask_patiently(self, task: Task[I, O], inputs: I) -> ModelAnswer[O]:
        for pause in self._pauses:
            try:
                return await self._ask(task, inputs)
            except ModelUnavailable as error:
                if self._is_away:
                    raise
                stated = error.retry_after_seconds
                await asyncio.sleep(pause if stated is None else min(stated, LONGEST_PAUSE_SECONDS))
        try:
            return await self._ask(task, inputs)
        except ModelUnavailable:
            self._is_away = True
            raise

    async def _ask(self, task: Task[I, O], inputs: I) -> ModelAnswer[O]:
        with record_calls() as calls:
            try:
                answer = await self._model.ask(task, inputs, OUTSIDE)
            finally:
                self._count(calls)
        self._is_away = False
        return answer

    def _count(self, calls: Iterable[ModelCall], *, kept: int = 0) -> None:
        usage = self.usage
        for call in calls:
            if not call.milliseconds:
                continue  # the circuit breaker was open, so no request was sent
            usage = DescriptionUsage(
                calls=usage.calls + 1,
                failed=usage.failed,
                kept=usage.kept,
                input_tokens=usage.input_tokens + call.usage.input_tokens,
                output_tokens=usage.output_tokens + call.usage.output_tokens,
                cost_usd=_add(usage.cost_usd, call.cost_usd),
            )
        self._advance(replace(usage, kept=usage.kept + kept))

    def _advance(self, usage: DescriptionUsage) -> None:
        self.usage = usage
        if self._report is not None:
            self._report.advance_descriptions(self.usage)


def cut_page(content: str) -> list[str]:
    """Split a long page into at most `MOST_PARTS`, if possible at a paragraph, line or space."""
    parts: list[str] = []
    rest = content
    while rest and len(parts) < MOST_PARTS:
        end = len(rest)
        if end > LONGEST_CONTENT:
            half = LONGEST_CONTENT // 2
            ends = (rest.rfind(mark, half, LONGEST_CONTENT) for mark in ("\n\n", "\n", " "))
            end = next((place for place in ends if place > 0), LONGEST_CONTENT)
        parts.append(rest[:end])
        rest = rest[end:].lstrip()
    return parts


def _add(total: Decimal | None, cost: Decimal | None) -> Decimal | None:
    return None if total is None or cost is None else total + cost
