"""Plays recordings through a whole desk in this process, over the wire of a vendor."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.knowledge import Knowledge, make_embedder
from knowledge.embedding import Embedder
from knowledge.ingestion_report import PlainReport
from tests.recordings.plain_way import DOCUMENTS, DOMAIN, Conversation, Turn
from tests.support.app_harness import AppHarness, Fields, open_knowledge_with, run_app, settings_of
from tests.support.empty_redis import play_redis
from tests.support.model_server import running_server
from tests.support.recorded_model import Prompt, RecordedModel


@dataclass(frozen=True)
class Played:
    """What became of a turn: the reply, what was asked of the model, and what did not fit."""

    conversation: Conversation
    number: int
    reply: Fields
    prompts: tuple[Prompt, ...]
    missing: tuple[Prompt, ...]
    unused: tuple[str, ...]

    @property
    def written(self) -> list[str]:
        """What the model wrote: the outputs that were asked for."""
        left = list(self.unused)
        asked = []
        for call in reversed(self.turn.calls):
            if call.stage in left:
                left.remove(call.stage)
            else:
                asked.append(call.text)
        return asked

    @property
    def turn(self) -> Turn:
        return self.conversation.turns[self.number - 1]

    @property
    def places(self) -> list[str]:
        """The places that the reply cites, each as one line."""
        return [
            " > ".join((*source["crumbs"], *source["heading_path"], source["version"] or ""))
            for source in self.reply["sources"]
        ]


async def ingest_documents(data: Path) -> None:
    """Read the documents of the recordings into a folder."""
    settings = settings_of(data, **DOMAIN)
    await run_ingestion(settings, DOCUMENTS, PlainReport(lambda _line: None))


def open_documents(
    data: Path, embedder: Embedder | None = None
) -> AbstractAsyncContextManager[Knowledge]:
    """Open a folder with the documents of the recordings."""
    settings = settings_of(data, **DOMAIN)
    return open_knowledge_with(settings, embedder or make_embedder(settings))


async def play(
    conversations: Iterable[Conversation],
    data: Path,
    knowledge: Knowledge,
    *,
    vendor: str = "openai",
    shows_drafts: bool = False,
    changes: Mapping[str, object] | None = None,
) -> AsyncIterator[Played]:
    """Yield each turn as it was played; a conversation ends where an output is missing.

    Conversations with the same settings are played one after another in the same desk; `changes`
    are further settings.
    """
    ordered = sorted(conversations, key=lambda item: item.separate_calls)
    for _, alike in groupby(ordered, key=lambda item: item.separate_calls):
        group = list(alike)
        async with running_server(RecordedModel(vendor)) as server:
            assert isinstance(server, RecordedModel)
            own = {**server.settings, **group[0].settings, **(changes or {})}
            async with run_app(settings_of(data, **own), play_redis(), knowledge) as harness:
                for conversation in group:
                    async for turn in _play(conversation, harness, server, shows_drafts):
                        yield turn


async def _play(
    conversation: Conversation, harness: AppHarness, server: RecordedModel, shows_drafts: bool
) -> AsyncIterator[Played]:
    driver = harness.driver()
    for number, turn in enumerate(conversation.turns, start=1):
        server.play(turn.calls)
        message = replace(driver.message(turn.says), shows_drafts=shows_drafts)
        reply = dict(await harness.desk.ask(message))
        made = tuple(server.prompts), tuple(server.missing), tuple(server.unused)
        yield Played(conversation, number, reply, *made)
        if server.missing:
            return
