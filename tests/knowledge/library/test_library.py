"""The names in documents are written at ingestion, and go with their documents."""

from typing import Any

import pytest
import structlog

from knowledge.index.port import Index
from knowledge.library.library import Library
from tests.knowledge.searching.conftest import document, index, opening, put

__all__ = ["index", "opening"]

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")

LICENCE = document("licence", "It was given by Lorenzo Costa.", title="The licence")
COSTA = document("costa", "Lorenzo Costa was born in Mantua.", title="The licensor")
SECRET = document("secret", "It was paid by Lorenzo Costa.", title="Fees", groups=("board",))


class EarlierIndex:
    """An index that an earlier version wrote: no document has its names."""

    def __init__(self, index: Any) -> None:
        self._index = index

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    def visible_to(self, groups: Any) -> "EarlierIndex":
        return EarlierIndex(self._index.visible_to(groups))

    async def find_documents(self, match: Any, fields: Any) -> Any:
        kept = [field for field in fields if field != "mentions"]
        return await self._index.find_documents(match, kept)


class UnreadableTexts(EarlierIndex):
    """An index whose texts nobody reads."""

    def visible_to(self, groups: Any) -> "UnreadableTexts":
        return UnreadableTexts(self._index.visible_to(groups))

    async def find_documents(self, match: Any, fields: Any) -> Any:
        return await self._index.find_documents(match, fields)

    async def passages(self, points: Any) -> Any:
        raise AssertionError("expected names that ingestion wrote, found a look into the texts")


async def find(library: Library, name: str, *groups: str) -> tuple[str, ...]:
    names = await library.names(groups)
    assert names.shared is not None
    return tuple(sorted(names.shared.find(name)))


async def test_names_that_documents_share_are_found_without_a_look_into_their_texts(
    index: Index,
) -> None:
    await put(index, LICENCE, COSTA)
    unread: Any = UnreadableTexts(index)

    assert await find(Library(unread), "lorenzo costa") == ("costa#0", "licence#0")


async def test_names_go_with_their_documents(index: Index) -> None:
    library = Library(index)
    await put(index, LICENCE, COSTA)
    changed = document("costa", "He was born in Mantua.", title="The licensor", content_hash="2")
    await put(index, changed)
    after_a_change = await find(library, "lorenzo costa")
    await put(index, COSTA)
    after_a_return = await find(library, "lorenzo costa")
    await index.remove(["licence"])

    assert after_a_change == ()
    assert after_a_return == ("costa#0", "licence#0")
    assert await find(library, "lorenzo costa") == ()


async def test_names_in_documents_of_other_groups_connect_nothing(index: Index) -> None:
    await put(index, COSTA, SECRET)

    assert await find(Library(index), "lorenzo costa") == ()
    assert await find(Library(index), "lorenzo costa", "board") == ("costa#0", "secret#0")


async def test_an_index_of_an_earlier_version_is_read_once_and_says_so(index: Index) -> None:
    await put(index, LICENCE, COSTA)
    earlier: Any = EarlierIndex(index)
    library = Library(earlier)

    with structlog.testing.capture_logs() as logs:
        found = [await find(library, "lorenzo costa") for _ in range(2)]

    assert found == [("costa#0", "licence#0")] * 2
    assert [one["documents"] for one in logs if one["event"] == "names_found_in_texts"] == [2]
