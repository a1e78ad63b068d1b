"""Records the `conversation` payload: the real assistant, offline, late in a long conversation.

`python -m benchmarks.speed.recording` ingests the example documents into a separate folder, asks
the English example questions in one conversation, then the first of them again, and keeps of that
last one what each role wrote and the history that the manager gave it.
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.speed.payload import CONVERSATION, ROLES, Fields
from broker.embedded_redis import run_embedded_redis
from config.settings import load_settings
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.knowledge import open_knowledge
from deploy.assembly.runtime import ROLES as WORKER_ROLES
from deploy.assembly.runtime import connect_runtime, desk, run_workers
from gateway.desk import Message
from knowledge.ingestion_report import PlainReport
from memory.conversation import RedisMemory

EXAMPLES = Path(__file__).parents[2] / "examples"
DOCUMENTS = EXAMPLES / "sms_platform"
QUESTIONS = EXAMPLES / "sms_platform_questions.jsonl"


async def record(folder: Path) -> Fields:
    """Return text, history and writes of the conversation's last question."""
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
        found = asyncio.run(record(Path(folder)))
    CONVERSATION.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", "utf-8")
    print(f"{CONVERSATION.name}: {CONVERSATION.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
