"""An agent that drafts its answer as a test says, at a desk of scripted agents."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from envelope.draft import AnswerDraft
from envelope.role import Role
from envelope.sources import SourceUsed
from tests.support.worker_harness import WRITES, WorkerHarness
from worker.drafts import RunDrafts

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
    """An answer of two sentences; `first` and `whole` let the agent go on behind each draft."""

    harness: WorkerHarness
    first: asyncio.Event = field(default_factory=asyncio.Event)
    whole: asyncio.Event = field(default_factory=asyncio.Event)

    def script(self, approved: str = f"{FIRST} {SECOND}") -> None:
        """Let the next answer be drafted, and the judge leave `approved` of it."""
        self.harness.script.next(Role.RESPONSE, lambda _reads: self._write())
        self.harness.script.next(Role.QUALITY, self._judge(approved))

    def script_rejection(self) -> None:
        """Let the next answer be drafted and rejected, and the one after it be approved."""
        again = {"quality_score": 0.1, "quality_decision": "regenerate", "quality_analysis": "no"}
        self.harness.script.next(Role.RESPONSE, lambda _reads: self._write())
        self.harness.script.next(Role.QUALITY, again)

    def _judge(self, approved: str) -> dict[str, Any]:
        return {
            **WRITES[Role.QUALITY],
            "response": approved,
            "sources_used": [SOURCE.model_dump()],
        }

    async def _write(self) -> dict[str, Any]:
        drafts = RunDrafts(self.harness.broker.drafts, lambda _role, _reason: None)
        await drafts.publish(make_draft(FIRST))
        await self.first.wait()
        await drafts.publish(make_draft(f"{FIRST} {SECOND}"))
        await self.whole.wait()
        return {"response": f"{FIRST} {SECOND}", "sources_used": [SOURCE.model_dump()]}


def make_draft(text: str, *, attempt: int = 0) -> AnswerDraft:
    """Return a draft that cites the source."""
    return AnswerDraft(text=text, language="en", attempt=attempt, writing=1, sources=(SOURCE,))
