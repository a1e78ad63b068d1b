"""Creates the language detector, and the reader and publisher of the document languages."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from broker.background_jobs import BackgroundJobs
from broker.embedded_redis import Endpoint
from config.settings import Settings
from knowledge.errors import KnowledgeError
from knowledge.language.corpus_languages import FRESH_SECONDS, CorpusLanguages, ReadLanguages
from knowledge.language.detector import ScriptAndNgramDetector
from knowledge.language.langdetect import FencedLangdetect, SecondOpinion
from knowledge.language.port import Detector
from knowledge.language.scripts import CANDIDATES
from memory.document_languages import RedisDocumentLanguages
from memory.errors import MemoryUnavailableError

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from deploy.assembly.knowledge import Knowledge
    from knowledge.index.port import Index
    from knowledge.open_index import OpenIndex

log = structlog.get_logger("knowledge")


def make_detector(data_folder: Path) -> Detector:
    """Return the detector of this process; storing the unpacked model saves half a second."""
    first = ScriptAndNgramDetector(kept_in=data_folder / "language")
    return SecondOpinion(first, FencedLangdetect(candidates=CANDIDATES))


def language_of(detector: Detector, default: str) -> Callable[[str], str]:
    """Return a function that returns a text's language, or the default if it is unclear."""
    return lambda text: detector.detect(text).language or default


def read_corpus_languages(
    settings: Settings, knowledge: "OpenIndex | None", client: "Redis"
) -> ReadLanguages:
    """Return the counter of an assistant's documents by language. It reads the index or, in a
    process that has not opened the index, the numbers published by another process.
    """
    if knowledge is None:
        return RedisDocumentLanguages(client, settings.tenant, settings.assistant).read
    return CorpusLanguages(knowledge.index).read


@asynccontextmanager
async def publishing_languages(
    settings: Settings, knowledge: "Knowledge | None", endpoint: Endpoint, jobs: BackgroundJobs
) -> AsyncIterator[None]:
    """Publish the languages of the documents of every assistant inside the context.

    A process that has not opened the index publishes nothing.
    """
    if knowledge is None:
        yield
        return
    own, *_ = every = settings.of_assistants()
    opened = {
        (assistant.tenant, assistant.assistant): knowledge.of(
            assistant.tenant, assistant.assistant, own=(own.tenant, own.assistant)
        )
        for assistant in every
    }
    indexes = {assistant: index.index for assistant, index in opened.items() if index is not None}
    client = endpoint.client()
    try:
        async with jobs.running("document_languages", partial(_publish, indexes, client)):
            yield
    finally:
        await client.aclose()


async def _publish(indexes: "Mapping[tuple[str, str], Index]", client: "Redis") -> None:
    """Publish each assistant's languages whenever its documents change."""
    published: dict[tuple[str, str], str] = {}
    while True:
        for assistant, index in indexes.items():
            try:
                await _publish_changed(assistant, index, client, published)
            except (KnowledgeError, MemoryUnavailableError) as error:
                log.warning("corpus_languages_not_published", error=str(error))
        await asyncio.sleep(FRESH_SECONDS)


async def _publish_changed(
    assistant: tuple[str, str],
    index: "Index",
    client: "Redis",
    published: dict[tuple[str, str], str],
) -> None:
    revision = await index.revision()
    if published.get(assistant) != revision:
        counts = await CorpusLanguages(index).count_by_group()
        await RedisDocumentLanguages(client, *assistant).publish(counts)
        published[assistant] = revision
