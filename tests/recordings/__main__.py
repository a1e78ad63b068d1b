"""Plays recordings, and writes the prompts that have no output yet.

`python -m tests.recordings play FOLDER [ID ...]` replays recordings, and writes to the folder what
the person saw, and each prompt that no output answers. Whoever plays the model reads these prompts,
and adds to the recording what an honest model writes that knows nothing else.
`python -m tests.recordings measure FOLDER` prints what the recordings cost, how long they take and
what a person would see wrongly, with the judge asked always, in doubt, or never.
`python -m tests.recordings local URL FOLDER [ID ...]` asks the same questions of a real model, on a
server that speaks OpenAI's chat completions (docs/local-models.md), checks what no model may break,
and writes to the folder what the person saw. The exit status is 1 if a check fails.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.recordings.local_model import HEAD, ask_all, choose_conversations
from tests.recordings.measuring import PRICED, measure_all
from tests.recordings.plain_way import Conversation, load_conversations
from tests.recordings.replaying import Played, ingest_documents, open_documents, play


def main(words: Sequence[str]) -> int:
    """Run a command; return 2 for one that does not exist."""
    match words:
        case ["play", folder, *ids]:
            wanted = [
                conversation
                for conversation in load_conversations()
                if not ids or conversation.id in ids
            ]
            asyncio.run(_play_all(Path(folder), wanted))
        case ["measure", folder]:
            Path(folder).mkdir(parents=True, exist_ok=True)
            asyncio.run(_measure(Path(folder)))
        case ["local", url, folder, *ids]:
            return asyncio.run(_ask_all(url, Path(folder), ids))
        case _:
            sys.stdout.write(__doc__ or "")
            return 2
    return 0


async def _play_all(folder: Path, conversations: Sequence[Conversation]) -> None:
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    await ingest_documents(data)
    async with open_documents(data) as knowledge:
        for conversation in conversations:
            # Each has a desk of its own: a missing output is an outage, which a desk remembers.
            async for turn in play([conversation], data, knowledge):
                _write(folder, turn)


def _write(folder: Path, played: Played) -> None:
    name = f"{played.conversation.id}.{played.number}"
    for old in folder.glob(f"{name}.*.prompt"):
        old.unlink()
    for prompt in played.missing[:1]:
        (folder / f"{name}.{prompt.stage}.prompt").write_text(prompt.text, "utf-8")
    calls = " ".join(f"{prompt.stage}:{len(prompt.text) // 4}" for prompt in played.prompts)
    reply = played.reply
    lines = [
        f"{reply['outcome']}: {calls}, unused: {', '.join(played.unused) or 'none'}",
        str(reply["text"]),
        *(f"({action['label']})" for action in reply.get("suggested_actions", ())),
        *(f"[{number}] {place}" for number, place in enumerate(played.places, start=1)),
    ]
    (folder / f"{name}.shown").write_text("\n".join(lines) + "\n", "utf-8")


async def _measure(folder: Path) -> None:
    await ingest_documents(folder)
    sys.stdout.write(
        f"Averages of a turn; prices of {PRICED}.\n\n| JUDGE | turns | calls | prompt tokens "
        "| answer tokens | seconds | USD | wrong |\n|---|---|---|---|---|---|---|---|\n"
    )
    async with open_documents(folder) as knowledge:
        for name, effort in (await measure_all(folder, knowledge)).items():
            sys.stdout.write(
                f"| {name} | {effort.turns} | {effort.calls:.2f} | {effort.prompt_tokens:,.0f} "
                f"| {effort.answer_tokens:,.0f} | {effort.seconds:.1f} | {effort.usd:.5f} "
                f"| {len(effort.wrong)}: {', '.join(effort.wrong)} |\n"
            )


async def _ask_all(url: str, folder: Path, ids: Sequence[str]) -> int:
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    await ingest_documents(data)
    count = wrong = 0
    sys.stdout.write(f"{HEAD}\n")
    async with open_documents(data) as knowledge:
        async for asked in ask_all(url, data, knowledge, choose_conversations(ids)):
            sys.stdout.write(f"{asked.row}\n")
            sys.stdout.flush()
            shown = [asked.says, *(f"(draft) {draft}" for draft in asked.drafts), asked.answer.text]
            (folder / f"{asked.name}.shown").write_text("\n\n".join(shown) + "\n", "utf-8")
            count, wrong = count + 1, wrong + bool(asked.faults)
    sys.stdout.write(f"\n{count} turns, {wrong} with a fault.\n")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
