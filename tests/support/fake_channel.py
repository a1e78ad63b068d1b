"""A channel that posts on a wall in the test, and does what a script says instead."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from broker.values import Fields
from envelope.question import Question
from gateway.chat.ports import Incoming, PostNotFoundError, Shown


@dataclass
class FakeChannel:
    """A `gateway.chat.ports.Channel`; `refusals` are raised in order, one by each call.

    `versions` are the texts of all edits; the edit of a draft waits for `draft_gate`.
    """

    name: str = "wall"
    activity_seconds: float | None = None
    posts: dict[str, str] = field(default_factory=dict)
    places: dict[str, Mapping[str, str]] = field(default_factory=dict)
    signs: list[str] = field(default_factory=list)
    refusals: dict[str, list[Exception]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    signed: asyncio.Event = field(default_factory=asyncio.Event)
    versions: list[str] = field(default_factory=list)
    drafted: asyncio.Event = field(default_factory=asyncio.Event)
    draft_gate: asyncio.Event | None = None

    async def show_activity(self, question: Question, post: Mapping[str, str]) -> None:
        self._call("working")
        self.signs.append(question.message_id)
        self.signed.set()

    async def hide_activity(self, question: Question, post: Mapping[str, str]) -> None:
        self._call("rested")

    def render(self, shown: Shown) -> Sequence[Fields]:
        return [{"text": shown.answer.text}]

    async def post_placeholder(
        self, post: Mapping[str, str], text: str, *, soon: bool = False
    ) -> str:
        self._call("placeholder")
        id_ = str(len(self.places))
        self.posts[id_], self.places[id_] = text, post
        return id_

    async def edit(
        self, post: Mapping[str, str], id_: str, part: Fields, *, is_draft: bool = False
    ) -> None:
        self._call("draft" if is_draft else "edit")
        if is_draft and self.draft_gate is not None:
            self.drafted.set()
            await self.draft_gate.wait()
        self.versions.append(str(part["text"]))
        if id_ not in self.posts:
            raise PostNotFoundError("it is no more")
        self.posts[id_] = str(part["text"])

    async def delete(self, post: Mapping[str, str], id_: str) -> None:
        self._call("remove")
        self.posts.pop(id_, None)

    def _call(self, call: str) -> None:
        self.calls.append(call)
        if self.refusals.get(call):
            raise self.refusals[call].pop(0)


def make_incoming(
    question: Question, text: str, order: float, *, edits: str | None = None, **fields: str
) -> Incoming:
    """Return a message of a person, or an edit of one."""
    post = {"place": question.message_id if edits is None else edits}
    return Incoming(question, text, post, order, language="en", edits=edits, **fields)  # type: ignore[arg-type] # by name
