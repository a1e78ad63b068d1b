"""Whose file is read next, where several people give documents to their conversations."""

import asyncio
import io
import threading
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import PurePosixPath

import fakeredis
import pytest

from envelope.question import Question
from gateway.errors import BusyError
from gateway.http.reading_turns import ReadingTurns
from gateway.http.review_documents import StoredAttachments
from knowledge.documents.errors import TooLargeError
from knowledge.documents.formats import Item
from knowledge.documents.location import Location, locate
from knowledge.isolation import preparation
from knowledge.isolation.preparation import Preparation, prepare
from memory.work_store import RedisAttachments
from tests.support.waiting import wait_until

QUESTION = Question(tenant="acme", assistant="docs", conversation_id="c1", message_id="-")


class Readings:
    """Files that are read until the test lets them end."""

    def __init__(self, turns: ReadingTurns, group: asyncio.TaskGroup) -> None:
        self.begun: list[str] = []
        self._asked: set[str] = set()
        self._turns = turns
        self._group = group
        self._gates: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def give(self, *names: str, tenant: str = "acme") -> None:
        """Give files, the first letter of whose names is their key."""
        for name in names:
            self._gates[name] = asyncio.Event()
            self._tasks[name] = self._group.create_task(self._read(name, tenant))
        await wait_until(lambda: self._asked.issuperset(names))

    async def end(self, name: str) -> None:
        self._gates[name].set()
        await self._tasks[name]

    async def expect(self, *names: str) -> None:
        """Wait until these files have begun, in this order, and no other has."""
        await wait_until(lambda: self.begun[-1:] == [*names[-1:]])
        assert self.begun == [*names]

    async def cancel(self, *names: str) -> None:
        for name in names:
            self._tasks[name].cancel()
        await asyncio.gather(*(self._tasks[name] for name in names), return_exceptions=True)

    async def close(self) -> None:
        await self.cancel(*self._tasks)

    async def _read(self, name: str, tenant: str) -> None:
        self._asked.add(name)
        async with self._turns.take(tenant, name[0]):
            self.begun.append(name)
            await self._gates[name].wait()


@asynccontextmanager
async def reading(turns: ReadingTurns) -> AsyncIterator[Readings]:
    async with asyncio.TaskGroup() as group:
        readings = Readings(turns, group)
        try:
            yield readings
        finally:
            await readings.close()


async def test_many_files_of_one_key_keep_nobody_else_waiting() -> None:
    async with reading(ReadingTurns(at_once=2)) as readings:
        await readings.give("a1", "a2", "a3", "b1")
        await readings.expect("a1", "b1")

        await readings.give("c1")
        await readings.end("b1")
        await readings.expect("a1", "b1", "c1")
        await readings.end("a1")
        await readings.expect("a1", "b1", "c1", "a2")


async def test_tenants_have_turns_before_their_keys_have() -> None:
    async with reading(ReadingTurns(at_once=1)) as readings:
        await readings.give("a1", "b1", "c1", "d1")
        await readings.give("x1", "x2", tenant="other")
        order = ("a1", "x1", "b1", "x2", "c1")
        for number, name in enumerate(order, 1):
            await readings.expect(*order[:number])
            await readings.end(name)


async def test_one_key_may_not_fill_the_room_in_which_files_wait() -> None:
    turns = ReadingTurns(at_once=1, most_waiting=8)
    async with reading(turns) as readings:
        await readings.give("a1", "a2", "a3")

        with pytest.raises(BusyError, match="try again"):
            async with turns.take("acme", "a"):
                pass
        await readings.give("b1")
        await readings.give("x1", tenant="other")
        await readings.end("a1")
        await readings.expect("a1", "x1")


async def test_a_client_that_gives_up_leaves_its_turn_to_others() -> None:
    async with reading(ReadingTurns(at_once=1)) as readings:
        await readings.give("a1", "b1", "c1")
        await readings.cancel("b1", "a1")

        await readings.expect("a1", "c1")


class HeldReader:
    """Reads in this process; a file named `slow.md` when the test says so."""

    def __init__(self, begun: threading.Event, gate: threading.Event) -> None:
        self._begun = begun
        self._gate = gate

    def prepare(
        self, item: Item, path: PurePosixPath, location: Location, *, most_characters: int | None
    ) -> Preparation:
        if item.source == "slow.md":
            self._begun.set()
            assert self._gate.wait()
        return preparation.prepare(item, path, location, most_characters)


async def test_a_document_is_read_while_slow_ones_of_another_key_are() -> None:
    begun, gate = threading.Event(), threading.Event()
    client = fakeredis.FakeAsyncRedis()
    attachments = StoredAttachments(
        RedisAttachments(client, shards=1, ttl_of=lambda _question: 60),
        lambda _stack: HeldReader(begun, gate),
        lambda: lambda _text: "en",
    )
    text = b"# Contract\n\nThe provider keeps records of all transfers.\n"
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(attachments.attach(QUESTION, "slow.md", text, (), "key-a"))
        await wait_until(begun.is_set)
        other = QUESTION.model_copy(update={"conversation_id": "c2"})

        entry = await attachments.attach(other, "quick.md", text, (), "key-b")

        assert entry.name == "quick.md"
        gate.set()
    assert len(await attachments.list_attached(QUESTION, ())) == 1
    await attachments.close()


def test_a_document_with_too_much_text_is_refused_before_it_is_cut_and_described(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paragraph = "<w:p><w:r><w:t>The carrier pays a fee of 150 euros a year.</w:t></w:r></w:p>"
    namespace = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    body = f'<w:document xmlns:w="{namespace}"><w:body>{paragraph * 2_000}</w:body></w:document>'
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", body)
    path = PurePosixPath("a.docx")
    item = Item("a.docx", packed.getvalue(), "a.docx")
    monkeypatch.setattr("knowledge.isolation.preparation.chunking", None)

    with pytest.raises(TooLargeError, match="expected at most 50,000 characters, found 86,000"):
        prepare(item, path, locate(path, ()), 50_000)
