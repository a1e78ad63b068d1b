from collections.abc import AsyncIterator

import pytest

from tests.gateway.http.conftest import any_harness, harness
from tests.support.fake_slack import SlackApi, slack_api
from tests.support.slack_harness import SlackHarness, slack_desk
from tests.support.worker_harness import WorkerHarness

__all__ = ["any_harness", "harness"]


@pytest.fixture
async def api() -> AsyncIterator[SlackApi]:
    async with slack_api() as opened:
        yield opened


@pytest.fixture
async def desk(harness: WorkerHarness, api: SlackApi) -> AsyncIterator[SlackHarness]:
    """An open Slack channel before a desk that works."""
    async with harness.open(), slack_desk(harness, api) as opened:
        yield opened
