"""A question that was asked before is not searched for again, whoever asks it."""

import pytest

from tests.deploy.conftest import OpenApp

pytestmark = pytest.mark.slow

CLEAR = "How do I configure SMS routing rules?"


@pytest.mark.parametrize(("seconds", "from_cache"), [(600, True), (0, False)])
async def test_the_journal_tells_whether_a_search_was_found_in_the_cache(
    open_app: OpenApp, seconds: int, from_cache: bool
) -> None:
    async with open_app(search_cache_seconds=seconds) as harness:
        first, second = harness.driver(), harness.driver()
        answered = await first.say(CLEAR)
        again = await second.say(CLEAR)
        [searched] = await first.read_writes(answered, "search")
        [repeated] = await second.read_writes(again, "search")

    assert searched["search_stats"]["from_cache"] is False
    assert repeated["search_stats"]["from_cache"] is from_cache
    assert again["text"] == answered["text"]
