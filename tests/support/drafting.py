"""An agent that drafts its answer as a test says, at a desk of scripted agents."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from envelope.role import Role
from envelope.sources import AnswerDraft, SourceUsed
from tests.support.worker_harness import WRITES, WorkerHarness

SOURCE = SourceUsed(
    number=1,
    chunk_id="c1",
    title="Routing rules",
    heading_path=("Routing rules", "Create a rule"),
    url="https://docs.acme.test/rules",
)
FIRST = "Open **Routing** and choose *New rule*. [1]"
SECOND = "Rules are tried by priority. [1]"


@dataclass
class DraftedAnswer:
    """An answer of two sentences; `first` and `whole` let the agent go on behind each draft.

    `went_on` is set when both drafts were published.
    """

    harness: WorkerHarness
    first: asyncio.Event = field(default_factory=asyncio.Event)
    whole: asyncio.Event = field(default_factory=asyncio.Event)
    went_on: asyncio.Event = field(default_factory=asyncio.Event)
    sentences: tuple[str, str] = (FIRST, SECOND)

    @property
    def text(self) -> str:
        """Both sentences."""
        return " ".join(self.sentences)

    def script(self, approved: str | None = None) -> None:
        """Let the next answer be drafted, and the judge leave `approved` of it; None: all."""
        approved = self.text if approved is None else approved
        self.harness.script.next(Role.RESPONSE, lambda _reads: self._write())
        self.harness.script.next(Role.QUALITY, self._judge(approved))

    def script_rejection(self) -> None:
        """Let the next answer be drafted and rejected, and the one after it be approved."""
        again = {"quality_score": 0.1, "quality_decision": "regenerate", "quality_analysis": "no"}
        self.harness.script.next(Role.RESPONSE, lambda _reads: self._write())
        self.harness.script.next(Role.QUALITY, again)

    def script_many(self, count: int) -> None:
        """Let the next answer be drafted in `count` sentences, as fast as Redis takes them."""
        self.harness.script.next(Role.RESPONSE, lambda _reads: self._write_many(count))
        self.harness.script.next(Role.QUALITY, self._judge(self.text))

    async def _write_many(self, count: int) -> dict[str, Any]:
        drafts = self.harness.script.runs[Role.RESPONSE].drafts
        assert drafts is not None
        await drafts.publish(make_draft(self.sentences[0]))
        await self.first.wait()
        for number in range(1, count):
            text = " ".join(f"Step {step} is next. [1]" for step in range(number))
            await drafts.publish(make_draft(text))
        self.went_on.set()
        await self.whole.wait()
        return {"response": self.text, "sources_used": [SOURCE.model_dump()]}

    def _judge(self, approved: str) -> dict[str, Any]:
        return {**WRITES[Role.QUALITY], "response": approved, "sources_used": [SOURCE.model_dump()]}

    async def _write(self) -> dict[str, Any]:
        drafts = self.harness.script.runs[Role.RESPONSE].drafts
        assert drafts is not None
        await drafts.publish(make_draft(self.sentences[0]))
        await self.first.wait()
        await drafts.publish(make_draft(self.text))
        self.went_on.set()
        await self.whole.wait()
        return {"response": self.text, "sources_used": [SOURCE.model_dump()]}


def make_draft(text: str, *, attempt: int = 0) -> AnswerDraft:
    """Return a draft that cites the source."""
    return AnswerDraft(text=text, language="en", attempt=attempt, writing=1, sources=(SOURCE,))
