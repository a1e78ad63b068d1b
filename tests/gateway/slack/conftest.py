from collections.abc import AsyncIterator

import pytest

from tests.gateway.http.conftest import any_house, house
from tests.gateway.slack.api import SlackApi, slack_api
from tests.gateway.slack.rig import SlackDesk, slack_desk
from tests.worker.cast import House

__all__ = ["any_house", "house"]


@pytest.fixture
async def api() -> AsyncIterator[SlackApi]:
    async with slack_api() as opened:
        yield opened


@pytest.fixture
async def desk(house: House, api: SlackApi) -> AsyncIterator[SlackDesk]:
    """An open Slack door before a desk that works."""
    async with house.open(), slack_desk(house, api) as opened:
        yield opened
