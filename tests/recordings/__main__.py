"""Lists the recordings that are older than their prompt, and plays what has no output yet.

`python -m tests.recordings stale` prints each recording with the stages to play again.
`python -m tests.recordings play FOLDER [ID ...]` replays recordings, and writes to the folder what
the person saw, and each prompt that no output answers. Whoever plays the model reads these prompts,
and adds to the recording what an honest model writes that knows nothing else.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.recordings.plain_way import Conversation, find_stale, load_conversations
from tests.recordings.replaying import Played, ingest_documents, open_documents, play


def main(words: Sequence[str]) -> int:
    """Run a command; return 2 for one that does not exist."""
    match words:
        case ["stale"]:
            lines = list(find_stale(load_conversations())) or ["No recording is stale."]
            sys.stdout.write("\n".join(lines) + "\n")
        case ["play", folder, *ids]:
            wanted = [one for one in load_conversations() if not ids or one.id in ids]
            asyncio.run(_play_all(Path(folder), wanted))
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
    calls = " ".join(f"{one.stage}:{len(one.text) // 4}" for one in played.prompts)
    reply = played.reply
    lines = [
        f"{reply['outcome']}: {calls}, unused: {', '.join(played.unused) or 'none'}",
        str(reply["text"]),
        *(f"({one['label']})" for one in reply.get("suggested_actions", ())),
        *(f"[{number}] {place}" for number, place in enumerate(played.places, start=1)),
    ]
    (folder / f"{name}.shown").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
