"""Shows that a message is being processed, and a draft of its answer, until the outcome is shown.

Both are optional. Calls that the platform rejects are logged, and the outcome is shown anyway.

Each edit with a draft is recorded before it is made, and the outcome is shown only after the edit
has ended. Therefore, a draft never replaces an outcome, whichever processes make the two edits. If
a process is killed, its last draft remains until the outcome replaces it.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import structlog

from broker.values import Fields, JournalEntry
from envelope.json_values import read_list
from envelope.outcome import Outcome
from envelope.question import Question
from envelope.texts import Texts
from gateway.answer import Answer, Source, answer_of, opens_in
from gateway.chat.platform_calls import retry
from gateway.chat.ports import (
    CallSkippedError,
    Channel,
    ChatPolicy,
    Incoming,
    NoOpError,
    PermanentError,
    PushError,
    RetryableError,
    Shown,
)
from gateway.desk import Desk
from gateway.events import DraftFollower, Event
from memory.chat_state import RedisPushMemory

log = structlog.get_logger("gateway")
T = TypeVar("T")
Post = Mapping[str, str]
UNSIGNED = "unsigned"
"""Marks a question for whose message no typing indicator was set."""
LEFT = "sign"
"""Marks a question that must remove the typing indicator that another question set."""
EDIT_SECONDS = 4.0
"""The time limit for an edit that shows a draft."""
UNKNOWN_SECONDS = 8.0
"""An edit whose result is unknown counts as ended after this time since its start."""


class TypingIndicator:
    """The typing indicators of a channel; one that fades is renewed for at most
    `deadline_seconds`.
    """

    def __init__(
        self, memory: RedisPushMemory, channel: Channel, *, deadline_seconds: float
    ) -> None:
        self._memory = memory
        self._channel = channel
        self._deadline_seconds = deadline_seconds

    async def begin(self, question: Question, post: Post, text: str) -> str | None:
        """Show a typing indicator and post a placeholder; return its id, or None if there is
        none.
        """
        await self._set_sign(question, post)
        known = await self._memory.fields(question)
        posted = known.get("0")
        if posted is None and "done" not in known:
            posted = await self._try_call(
                "post_placeholder", lambda: self._channel.post_placeholder(post, text, soon=True)
            )
            if posted is not None and await self._is_of_no_use(question, posted):
                await self._try_call("delete_post", lambda: self._channel.delete(post, str(posted)))
                posted = None
        return posted

    async def keep(self, question: Question, post: Post) -> None:
        """Renew a fading typing indicator until the outcome is shown, by this or another
        process.
        """
        until = time.monotonic() + self._deadline_seconds
        while "done" not in await self._memory.fields(question):
            if self._channel.activity_seconds is None or time.monotonic() > until:
                return
            await asyncio.sleep(self._channel.activity_seconds)
            if "done" not in await self._memory.fields(question):
                await self._try_call(
                    "set_typing_sign", lambda: self._channel.show_activity(question, post)
                )
        else:
            await self._try_call(
                "remove_typing_sign", lambda: self._channel.hide_activity(question, post)
            )

    async def rest(self, question: Question, post: Post, *, was_set: bool = True) -> None:
        """Remove the typing indicator of a closed question, unless another question concerns the
        same message.

        Raises `RetryableError`, after which the caller calls it again.
        """
        known = await self._memory.fields(question)
        is_there = LEFT in known or (was_set and UNSIGNED not in known)
        if not is_there or await self._is_left(question, post):
            return
        try:
            await retry(
                lambda: self._channel.hide_activity(question, post), call_name="remove_typing_sign"
            )
        except PermanentError as error:
            self.log_refusal("remove_typing_sign", error)

    async def _is_left(self, question: Question, post: Post) -> bool:
        """Leave the indicator to an open question about the same message, which removes it later;
        return whether there is such a question.
        """
        for id_ in await self._memory.open_messages(question):
            if id_ == question.message_id:
                # Its event was just repeated; the question stays closed.
                continue
            other = question.model_copy(update={"message_id": id_})
            kept = (await self._memory.fields(other)).get("post", "{}")
            if json.loads(kept) == dict(post):
                await self._memory.note(other, **{LEFT: "1"})
                # If that question is closed from now on, its delivery finds this note.
                if id_ in await self._memory.open_messages(question):
                    return True
        return False

    def log_refusal(self, call_name: str, error: PushError, **fields: str) -> None:
        """Log that the platform rejected an optional call; the outcome is shown anyway."""
        log.warning(
            "platform_call_rejected",
            call=call_name,
            channel=self._channel.name,
            error=str(error),
            **fields,
        )

    async def _is_of_no_use(self, question: Question, posted: str) -> bool:
        """Store the id of a placeholder; return whether it is no longer needed."""
        if await self._memory.first(question, "0", posted) != posted:
            return True
        known = await self._memory.fields(question)
        return "withdrawn" in known and "done" in known

    async def _set_sign(self, question: Question, post: Post) -> None:
        """Show the typing indicator, or record that there is none to remove."""
        try:
            await retry(
                lambda: self._channel.show_activity(question, post), call_name="set_typing_sign"
            )
        except CallSkippedError:
            await self._memory.note(question, **{UNSIGNED: "1"})
        except PushError as error:
            self.log_refusal("set_typing_sign", error)

    async def _try_call(self, call_name: str, call: Callable[[], Awaitable[T]]) -> T | None:
        try:
            return await retry(call, call_name=call_name)
        except CallSkippedError:
            return None
        except PushError as error:
            self.log_refusal(call_name, error)
            return None


class DraftPosts:
    """Shows drafts of answers to questions that this process has accepted."""

    def __init__(
        self,
        desk: Desk,
        memory: RedisPushMemory,
        channel: Channel,
        texts: Texts,
        policy: ChatPolicy,
    ) -> None:
        self._desk = desk
        self._memory = memory
        self._channel = channel
        self._texts = texts
        self._policy = policy

    async def follow(self, incoming: Incoming, language: str, id_: str) -> None:
        """Edit the post `id_` while the answer is written, until the outcome is decided."""
        if self._policy.draft_seconds is None:
            return
        question = incoming.question
        opens = opens_in(self._policy.documentation)
        follower = DraftFollower(
            question,
            shows=lambda reply, tongue: answer_of(
                reply,
                words=self._texts.text,
                language=tongue,
                opens=opens,
                link_hosts=self._policy.link_hosts,
            ),
            language=language,
        )
        draft, shown, due = _Draft(question), "", 0.0
        async for entries in self._desk.watch(question):
            if any(_is_decision(entry) for entry in entries):
                return
            for entry in entries:
                for event in follower.read(entry):
                    draft.read(event)
            if draft.text == shown or time.monotonic() < due:
                continue
            due = time.monotonic() + self._policy.draft_seconds
            wanted = draft.text
            is_shown = await self._show(incoming.post, id_, self._render(incoming, draft, language))
            if is_shown is None:
                return
            shown = wanted if is_shown else shown

    def _render(self, incoming: Incoming, draft: "_Draft", language: str) -> Shown:
        """Return the draft, with a line below it that marks it as a draft."""
        key = "push_draft" if draft.text else "push_working"
        notice = self._texts.text(key, language)
        answer = draft.make_answer(f"{draft.text}\n\n_{notice}_" if draft.text else notice)
        return Shown(incoming.question, answer, incoming.post, language)

    async def _show(self, post: Mapping[str, str], id_: str, shown: Shown) -> bool | None:
        """Return whether a draft was shown, or None if no further drafts can be shown."""
        part: Fields = (await asyncio.to_thread(self._channel.render, shown))[0]
        if not await self._memory.begin_draft(shown.question, seconds=UNKNOWN_SECONDS):
            return None
        is_shown: bool | None = True
        try:
            async with asyncio.timeout(EDIT_SECONDS):
                await self._channel.edit(post, id_, part, is_draft=True)
        except NoOpError:
            pass
        except CallSkippedError:
            is_shown = False
        except PermanentError as error:
            self._log(shown.question, str(error))
            is_shown = None
        except (RetryableError, TimeoutError) as error:
            self._log(shown.question, str(error) or type(error).__name__)
            if not (isinstance(error, RetryableError) and error.by_platform):
                # The platform may still make this edit: the outcome waits until it cannot.
                return False
            is_shown = False
        await self._memory.end_draft(shown.question)
        return is_shown

    def _log(self, question: Question, error: str) -> None:
        log.warning(
            "draft_not_shown",
            channel=self._channel.name,
            message_id=question.message_id,
            error=error,
        )


class _Draft:
    """The sentences that are shown, and their sources."""

    def __init__(self, question: Question) -> None:
        self.text = ""
        self._question = question
        self._language = "en"
        self._sources: tuple[Source, ...] = ()

    def read(self, event: Event) -> None:
        """Read the next event; a retraction removes the whole draft."""
        if event.name != "draft":
            self.text, self._sources = "", ()
            return
        kept = self.text[: int(str(event.data["offset"]))]
        self.text = f"{kept}{event.data['text']}"
        self._language = str(event.data["language"])
        sources = read_list(event.data["sources"])
        self._sources = tuple(Source.model_validate(source) for source in sources)

    def make_answer(self, text: str) -> Answer:
        """Return `text` with the sources of the draft."""
        return Answer(
            conversation_id=self._question.conversation_id,
            message_id=self._question.message_id,
            outcome=Outcome.ANSWERED,
            text=text,
            language=self._language,
            sources=self._sources,
        )


def _is_decision(entry: JournalEntry) -> bool:
    """Return whether the outcome follows immediately."""
    return entry.kind == "finished" or (
        entry.kind == "routed" and entry.fields.get("target") == "final"
    )
