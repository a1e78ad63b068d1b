from collections.abc import AsyncIterator

import pytest

from tests.gateway.http.conftest import any_house, house
from tests.gateway.telegram.api import BotApi, bot_api
from tests.gateway.telegram.rig import TelegramDesk, telegram_desk
from tests.worker.cast import House

__all__ = ["any_house", "house"]


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with bot_api() as opened:
        yield opened


@pytest.fixture
async def desk(house: House, api: BotApi) -> AsyncIterator[TelegramDesk]:
    """An open Telegram door before a desk that works."""
    async with house.open(), telegram_desk(house, api) as opened:
        yield opened
