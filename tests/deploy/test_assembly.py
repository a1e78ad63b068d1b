"""How the desk is assembled when another process owns the index."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from fakeredis import FakeAsyncRedis
from structlog.testing import capture_logs

from config.settings import Settings
from deploy.assembly.agent_factory import make_worker_specs
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.knowledge import open_knowledge
from deploy.assembly.runtime import INGESTION, KNOWING, ROLES, connect_runtime, open_desk, run_desk
from envelope.role import Role
from gateway.desk import Message
from knowledge.answerability import UNCALIBRATED_NOTE
from knowledge.calibration.calibrating import find_notes
from knowledge.embedding import DEFAULT
from knowledge.index.calibration import Calibration
from knowledge.ingestion_report import PlainReport
from tests.knowledge.searching.conftest import document
from tests.support.app_harness import settings_of
from tests.support.waiting import wait_until, within
from worker.lazy_handler import LazyHandler

pytestmark = pytest.mark.slow


VENDOR_EMBEDDING = "text-embedding-3-small@openai"


@pytest.mark.parametrize(("embedding", "is_named"), [(VENDOR_EMBEDDING, True), (DEFAULT, False)])
async def test_an_embedding_model_that_is_not_calibrated_is_named_at_the_start_and_in_the_status(
    tmp_path: Path, embedding: str, is_named: bool
) -> None:
    settings = settings_of(
        tmp_path / "data",
        embedding_model=embedding,
        openai_api_key="none",
        openai_base_url="http://127.0.0.1:9/v1",
    )

    async with open_knowledge(settings) as knowledge:
        vector = [1.0] + [0.0] * (knowledge.embedder.dimensions - 1)
        await knowledge.index.put(document("page", "text"), [vector], "root")
    with capture_logs() as logged:
        async with open_knowledge(settings) as knowledge:
            notes = list(await find_notes(knowledge.index))
            too_few = Calibration(0.0, 0.0, 0.0, chunks=1, compared=())
            await knowledge.index.put_calibrations({"en": too_few})
            assert await find_notes(knowledge.index) == (), "an ingestion could not mend it"

    named = [line for line in logged if line["event"] == "embedding_model_not_calibrated"]
    assert [(line["embedding"], line["log_level"]) for line in named] == (
        [(embedding, "warning")] if is_named else []
    )
    source = f"EMBEDDING_MODEL={embedding}, documents in en"
    assert notes == ([(source, UNCALIBRATED_NOTE)] if is_named else [])


async def test_settings_replace_the_instances_and_slots_of_a_role_and_no_others(
    tmp_path: Path,
) -> None:
    async def count(**changes: object) -> dict[str, tuple[int, int]]:
        settings = settings_of(tmp_path, **changes)
        async with AsyncExitStack() as stack:
            client = FakeAsyncRedis()
            stack.push_async_callback(client.aclose)
            specs = await make_worker_specs(
                settings, ["quality", "response"], client, None, stack, meter=None
            )
        return {spec.handler.role: (spec.instances, spec.slots) for spec in specs}

    usual = await count()
    changed = await count(instances={"quality": 5}, concurrency={"quality": 3})

    assert changed == {**usual, "quality": (5, 3)}
    assert usual["quality"] != (5, 3)


@pytest.mark.parametrize("lazily", [False, True])
async def test_a_long_running_process_loads_every_agent_at_its_start(
    tmp_path: Path, lazily: bool
) -> None:
    async with AsyncExitStack() as stack:
        client = FakeAsyncRedis()
        stack.push_async_callback(client.aclose)
        specs = await make_worker_specs(
            settings_of(tmp_path),
            list(set(ROLES) - KNOWING - {Role.MANAGER}),
            client,
            None,
            stack,
            meter=None,
            lazily=lazily,
        )

    delayed = {spec.handler.role for spec in specs if isinstance(spec.handler, LazyHandler)}
    assert (Role.SYNTHESIZE in delayed) is lazily
    assert bool(delayed) is lazily
    assert Role.RESPONSE not in delayed


@pytest.mark.redis
async def test_a_process_answers_its_own_question_when_the_owner_of_the_data_folder_leaves(
    library: Path, redis_url: str
) -> None:
    settings = settings_of(library, redis_url=redis_url)

    async with within(), AsyncExitStack() as owner:
        await owner.enter_async_context(open_knowledge(settings))  # owns it, and works for nobody
        async with open_desk(settings) as desk:
            message = Message("How do I configure SMS routing rules?", "c-left", "m-left")
            await desk.submit(message)
            await owner.aclose()
            reply = await desk.ask(message)

    assert reply["outcome"] == "answered"


@pytest.mark.redis
async def test_a_command_that_ends_drops_no_model_call_that_it_makes_for_others(
    tmp_path: Path, redis_url: str
) -> None:
    settings = settings_of(tmp_path / "data", redis_url=redis_url, tenant="ends")

    async with within(), run_desk(settings, empty=True) as runtime:
        grace = runtime.grace.left_for_runs()

    assert grace > settings.agent_timeout_seconds


@pytest.mark.redis
async def test_a_process_reads_its_own_documents_when_the_owner_of_the_data_folder_leaves(
    tmp_path: Path, redis_url: str
) -> None:
    settings = settings_of(tmp_path / "data", redis_url=redis_url, tenant="left")
    (tmp_path / "page.md").write_text("# Fax bridge\n\nThe fax bridge listens on port 77.\n")
    quiet = PlainReport(lambda _line: None)

    async with within(), AsyncExitStack() as owner, asyncio.TaskGroup() as tasks:
        await owner.enter_async_context(open_knowledge(settings))
        reading = tasks.create_task(run_ingestion(settings, [tmp_path / "page.md"], quiet))
        await _waiting(settings)
        await owner.aclose()

    assert reading.result().added == 1


async def _waiting(settings: Settings) -> None:
    """Wait until documents were handed over."""
    async with connect_runtime(settings) as runtime:
        broker = runtime.broker

        async def count_waiting() -> int:
            (role,) = await broker.admin.read_status([INGESTION])
            return role.depth

        await wait_until(count_waiting)
