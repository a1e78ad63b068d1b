from collections.abc import AsyncIterator

import pytest

from tests.gateway.http.conftest import any_harness, harness
from tests.support.fake_telegram import BotApi, bot_api
from tests.support.telegram_harness import TelegramHarness, telegram_desk
from tests.support.worker_harness import WorkerHarness

__all__ = ["any_harness", "harness"]


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with bot_api() as opened:
        yield opened


@pytest.fixture
async def desk(harness: WorkerHarness, api: BotApi) -> AsyncIterator[TelegramHarness]:
    """An open Telegram channel before a desk that works."""
    async with harness.open(), telegram_desk(harness, api) as opened:
        yield opened
