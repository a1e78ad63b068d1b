"""What background jobs report reaches other processes, such as `refdesk doctor`."""

from pathlib import Path

from deploy.assembly.job_reports import publishing_jobs
from deploy.assembly.runtime import connect_runtime
from memory.job_reports import JobReport, RedisJobReports
from tests.support.app_harness import settings_of
from tests.support.empty_redis import play_redis
from tests.support.waiting import wait_until


async def test_failures_and_notices_are_listed_until_their_process_ends(tmp_path: Path) -> None:
    endpoint = play_redis()
    async with connect_runtime(settings_of(tmp_path), endpoint=endpoint) as runtime:
        client = endpoint.client()
        stored = RedisJobReports(client)

        async def fail() -> None:
            raise ValueError("an odd source")

        async def list_all() -> list[JobReport]:
            return await stored.list_reports()

        await runtime.jobs.attempt("source_refresh", fail)
        await runtime.jobs.attempt("quiet", _do_nothing)
        runtime.jobs.report("mail_replies", "2 e-mails could not be read.")
        async with publishing_jobs(endpoint, runtime.jobs):
            listed = await wait_until(list_all)
        left = await stored.list_reports()
        await client.aclose()

    assert [(item.name, item.error, item.notice) for item in listed] == [
        ("mail_replies", "", "2 e-mails could not be read."),
        ("source_refresh", "ValueError: an odd source", ""),
    ]
    assert left == []


async def _do_nothing() -> None:
    """Succeed."""
