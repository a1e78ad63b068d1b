"""The content of the questions: 4 kB of text, 60 kB of passages, or a recorded question.

`python -m benchmarks.speed.payload` ingests the example documents into a separate folder, asks the
English example questions in one conversation, then the first of them again, and stores for that
last question the writes of each role and the history from the manager.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.roster import SPECS
from broker.embedded_redis import run_embedded_redis
from config.settings import load_settings
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.knowledge import open_knowledge
from deploy.assembly.runtime import ROLES as WORKER_ROLES
from deploy.assembly.runtime import connect_runtime, desk, run_workers
from envelope.role import Role
from gateway.desk import Message
from knowledge.ingestion_report import PlainReport
from manager.flows.search_flow import SEARCH_FLOW
from memory.conversation import RedisMemory

CONVERSATION = Path(__file__).parent / "conversation.json"
"""The recorded question, which `python -m benchmarks.speed.payload` writes."""
Fields = dict[str, Any]

OUTCOME_WRITES: dict[str, Fields] = {
    Role.LANG.value: {"language": "en", "confidence": 1.0},
    Role.TRANSLATION.value: {"text_eng": "How do I configure routing rules?"},
    Role.ESSENCE.value: {"canonical_question": "How do I configure routing rules?"},
    Role.GUARDRAILS.value: {"within_scope": True},
    Role.SEARCH.value: {"search_quality": "good"},
    Role.RESPONSE.value: {"response": "Open Routing and choose New rule [1]."},
    Role.QUALITY.value: {"quality_score": 0.9, "quality_decision": "approve"},
}
"""The writes with which a question passes a stage whose outcome depends on them."""
ROLES = tuple(stage.name for stage in SEARCH_FLOW.main_path[1:])


def _plain_writes(role: str) -> Fields:
    """Return the writes for a stage that a question passes whatever is written."""
    return {min(SPECS[role].writes): "-"}


IDLE_WRITES = {
    role: OUTCOME_WRITES[role] if role in OUTCOME_WRITES else _plain_writes(role) for role in ROLES
}
"""The minimal writes with which a question passes each stage."""
FOUND_WRITES = {
    **IDLE_WRITES,
    Role.SEARCH.value: {**IDLE_WRITES[Role.SEARCH.value], "search_context": "A passage. " * 5_500},
}
"""Like `IDLE_WRITES`, with the passages of a search, so that later frames have 60 kB."""
HOPS = 2 * len(ROLES) + 1
"""Number of hops: the manager first, and again after every role."""


@dataclass(frozen=True, slots=True)
class Payload:
    """The user's text, the preceding turns, and the writes of each role."""

    name: str
    text: str
    history: tuple[Fields, ...]
    writes: Mapping[str, Fields]

    def opening(self, name: str) -> Fields:
        """Return the message that the client of another system submits."""
        return {"name": name, "step": 0, "text": self.text, "history": list(self.history)}

    def size(self) -> int:
        """Return the size of the message in bytes after every role has written."""
        message = self.opening("name")
        for writes in self.writes.values():
            message |= writes
        return len(json.dumps(message, ensure_ascii=False).encode())


def payloads() -> dict[str, Payload]:
    """Return the payloads by name."""
    recorded = json.loads(CONVERSATION.read_text("utf-8"))
    return {
        "4 kB": Payload("4 kB", "How do I configure routing rules? " + "x" * 4000, (), IDLE_WRITES),
        "60 kB": Payload("60 kB", "How do I configure routing rules?", (), FOUND_WRITES),
        "conversation": Payload(
            "conversation",
            recorded["text"],
            tuple(recorded["history"]),
            {role: recorded["writes"].get(role, IDLE_WRITES[role]) for role in ROLES},
        ),
    }


EXAMPLES = Path(__file__).parents[2] / "examples"
DOCUMENTS = EXAMPLES / "sms_platform"
QUESTIONS = EXAMPLES / "sms_platform_questions.jsonl"


async def record(folder: Path) -> Fields:
    """Return the text, history and writes of the last question in the conversation."""
    settings = load_settings(_env_file=None, refdesk_data=folder)
    await run_ingestion(settings, [DOCUMENTS], PlainReport(lambda _line: None))
    async with (
        run_embedded_redis(folder) as endpoint,
        connect_runtime(settings, endpoint=endpoint) as post,
        open_knowledge(settings) as knowledge,
        run_workers(post, WORKER_ROLES, knowledge),
    ):
        asked_desk = desk(post, "bench")
        texts = _questions()
        for number, text in enumerate(texts):
            await asked_desk.ask(Message(text, "long", f"m{number}"))
        memory = RedisMemory(endpoint.client(), shards=1)
        last = Message(texts[0], "long", "last")
        before = await memory.recall(asked_desk.question(last))
        reply = await asked_desk.ask(last)
        if reply["outcome"] != "answered":
            raise SystemExit(f"expected an answer, found {reply}")
        journal = await post.broker.replies.read_journal(asked_desk.question(last))
    return {
        "text": last.text,
        "history": [turn.model_dump(mode="json") for turn in before.history],
        "history_summary": before.summary,
        "writes": {
            str(entry.fields["role"]): entry.fields["writes"]
            for entry in journal
            if entry.kind == "agent_run" and entry.fields["role"] in ROLES
        },
    }


def _questions() -> list[str]:
    lines = [json.loads(line) for line in QUESTIONS.read_text("utf-8").splitlines()]
    return [
        line["question"]
        for line in lines
        if line["language"] == "en" and line["expected"] == "answered"
    ]


def main() -> int:
    """Write the file."""
    with tempfile.TemporaryDirectory(prefix="refdesk-recording-") as folder:
        recorded = asyncio.run(record(Path(folder)))
    CONVERSATION.write_text(json.dumps(recorded, ensure_ascii=False, indent=1) + "\n", "utf-8")
    print(f"{CONVERSATION.name}: {CONVERSATION.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
