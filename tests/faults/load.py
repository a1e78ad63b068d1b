"""The people of a run: seeded conversations, in which everything that a desk knows happens."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.faults.deployment import Deployment
from tests.faults.desk_client import APPROVALS, DeskClient

KINDS = {
    "ask": 56,
    "again": 8,
    "unclear": 8,
    "outside": 5,
    "flaky": 6,
    "wait": 6,
    "note": 6,
    "forget": 2,
    "slow": 1,
}
"""What a message says, and how often of a hundred."""
POISON_SHARE = 0.001
CANCEL_SHARE = 0.05
MERGE_SHARE = 0.05
"""Of conversations; all messages of such a one come at once and start late."""
LONGEST_CONVERSATION = 4
LONGEST_CANCEL_SECONDS = 0.1
DELAY_SECONDS = 0.3
HURRY_SECONDS = 1.5


@dataclass
class DeskClients:
    """An ordinary client, one that waits for more before it starts, one that is in a hurry."""

    plain: DeskClient
    patient: DeskClient
    hurried: DeskClient

    async def close(self) -> None:
        """Close them."""
        for client in (self.plain, self.patient, self.hurried):
            await client.close()


@asynccontextmanager
async def open_clients(harness: Deployment, deadline_seconds: float) -> AsyncIterator[DeskClients]:
    """Open the clients of an app while inside."""
    clients = DeskClients(
        harness.make_client(fronts=True, deadline_seconds=deadline_seconds),
        harness.make_client(deadline_seconds=deadline_seconds, not_before_seconds=DELAY_SECONDS),
        harness.make_client(fronts=True, deadline_seconds=HURRY_SECONDS),
    )
    try:
        yield clients
    finally:
        await clients.close()


class Load:
    """Asks `questions` messages in conversations, `at_once` of these side by side."""

    def __init__(
        self,
        clients: DeskClients,
        seed: int,
        *,
        questions: int,
        at_once: int,
        poison: bool = True,
        merge_share: float = MERGE_SHARE,
        kinds: Mapping[str, int] = KINDS,
        longest_conversation: int = LONGEST_CONVERSATION,
    ) -> None:
        self._clients = clients
        self._random = random.Random(seed)
        self._left = questions
        self._at_once = at_once
        self._poison_share = POISON_SHARE if poison else 0.0
        self._merge_share = merge_share
        self._kinds = kinds
        self._longest = longest_conversation
        self._number = 0
        self.reported = 0

    async def live(
        self, on_reply: Callable[[], None], more: Callable[[], bool] = lambda: False
    ) -> None:
        """Have every conversation; `on_reply` is called for each answered message.

        Afterwards they go on as long as `more` says so.
        """
        await self._live(on_reply)
        while more():
            self._left = self._at_once
            await self._live(on_reply)

    async def _live(self, on_reply: Callable[[], None]) -> None:
        conversations = self._conversations()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._at_once):
                tasks.create_task(self._talk(conversations, on_reply))

    async def _talk(
        self, conversations: Iterator[tuple[str, list[str]]], on_reply: Callable[[], None]
    ) -> None:
        for conversation, texts in conversations:
            if texts[0].startswith("merge") or self._random.random() < 0.5:
                await self._all_at_once(conversation, texts, on_reply)
            else:
                for text in texts:
                    await self._say(conversation, text, on_reply)

    async def _all_at_once(
        self, conversation: str, texts: list[str], on_reply: Callable[[], None]
    ) -> None:
        async with asyncio.TaskGroup() as tasks:
            for text in texts:
                tasks.create_task(self._say(conversation, text, on_reply))

    async def _say(self, conversation: str, text: str, on_reply: Callable[[], None]) -> None:
        what = text.split()[0]
        client = {"merge": self._clients.patient, "slow": self._clients.hurried}.get(
            what, self._clients.plain
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._ask(client, conversation, text))
            if what == "cancel":
                tasks.create_task(self._regret(conversation, text))
        self.reported += 1
        on_reply()

    async def _ask(self, client: DeskClient, conversation: str, text: str) -> None:
        """Ask, and approve twice at once what waits for an approval."""
        reply = await client.ask(text, conversation=conversation)
        if not reply.get("pause"):
            return
        async with asyncio.TaskGroup() as tasks:
            for approve in APPROVALS:
                said = f"{approve} {text.replace(' ', '-')}"
                tasks.create_task(client.ask(said, conversation=conversation))

    async def _regret(self, conversation: str, text: str) -> None:
        """Cancel a moment later; sometimes every word of it is to be forgotten."""
        await asyncio.sleep(self._random.uniform(0.0, LONGEST_CANCEL_SECONDS))  # noqa: TID251 - a person cancels after a random time
        forget = self._random.random() < 0.3
        await self._clients.plain.cancel(text, conversation=conversation, forget=forget)

    def _conversations(self) -> Iterator[tuple[str, list[str]]]:
        while self._left > 0:
            length = min(self._left, self._random.randint(1, self._longest))
            self._left -= length
            yield (
                f"c{self._number}",
                [self._text() for _ in range(length)]
                if (self._random.random() >= self._merge_share)
                else [self._name("merge") for _ in range(length)],
            )

    def _text(self) -> str:
        if self._random.random() < self._poison_share:
            return self._name("poison")
        if self._random.random() < CANCEL_SHARE:
            return self._name("cancel")
        [kind] = self._random.choices(list(self._kinds), list(self._kinds.values()))
        return self._name(kind)

    def _name(self, what: str) -> str:
        self._number += 1
        return f"{what} {self._number}"
