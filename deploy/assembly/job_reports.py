"""Publishes the states of the background jobs, so that `doctor` and the console show them."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from socket import gethostname

import structlog

from broker.background_jobs import BackgroundJobs
from broker.embedded_redis import Endpoint
from memory.errors import MemoryUnavailableError
from memory.job_reports import JobReport, RedisJobReports
from memory.presence import ANNOUNCE_SECONDS, LEAVE_SECONDS

log = structlog.get_logger("jobs")


@asynccontextmanager
async def publishing_jobs(endpoint: Endpoint, jobs: BackgroundJobs) -> AsyncIterator[None]:
    """Publish the failures and notices of the background jobs inside the context."""
    client = endpoint.client()
    try:
        stored = RedisJobReports(client)
        publish = partial(_publish, jobs, stored)
        async with jobs.running("job_reports", publish):
            yield
        await _withdraw(stored)
    finally:
        await client.aclose()


def list_reports(jobs: BackgroundJobs, process: str) -> list[JobReport]:
    """Return the reports of the jobs that failed or have a notice."""
    return [
        JobReport(
            process=process,
            name=state.name,
            failures=state.failures,
            error=state.error,
            failed_at=state.failed_at,
            is_paused=state.is_paused,
            notice=state.notice,
        )
        for state in jobs.states
        if state.failures or state.notice
    ]


async def _publish(jobs: BackgroundJobs, stored: RedisJobReports) -> None:
    process = f"{gethostname()}:{os.getpid()}"
    while True:
        try:
            if reports := list_reports(jobs, process):
                await stored.put(reports)
            else:
                await stored.leave()
        except MemoryUnavailableError as error:
            log.debug("job_reports_not_stored", error=str(error))
        await asyncio.sleep(ANNOUNCE_SECONDS)


async def _withdraw(stored: RedisJobReports) -> None:
    try:
        async with asyncio.timeout(LEAVE_SECONDS):
            await stored.leave()
    except (MemoryUnavailableError, TimeoutError) as error:
        # The reports expire.
        log.debug("job_reports_not_stored", error=str(error))
