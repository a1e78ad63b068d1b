"""Shows that a message is being processed, until its outcome is shown: a sign and a placeholder.

Both are optional: calls that the platform rejects are logged, and the outcome is shown anyway.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import structlog

from envelope.question import Question
from gateway.chat.errors import CallSkippedError, PermanentError, PushError
from gateway.chat.ports import Channel, PushMemory
from gateway.chat.retry import retry

log = structlog.get_logger("gateway")
T = TypeVar("T")
Post = Mapping[str, str]
UNSIGNED = "unsigned"
"""No sign was set at this question's message."""
LEFT = "sign"
"""A sign was set there for another question, and left to this one."""


class TypingIndicator:
    """The signs of a channel; a fading sign is renewed for at most `deadline_seconds`."""

    def __init__(self, memory: PushMemory, channel: Channel, *, deadline_seconds: float) -> None:
        self._memory = memory
        self._channel = channel
        self._deadline_seconds = deadline_seconds

    async def begin(self, question: Question, post: Post, text: str) -> str | None:
        """Set the sign and post a placeholder; return its id, or None if there is none."""
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
        """Renew a fading sign until the outcome is shown, by this or another process."""
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
        """Remove the sign of a closed question, unless another question is about the same message.

        Raises `RetryableError`; the caller then calls it again.
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
        """Leave the sign to an open question about the same message, which removes it later."""
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
        """Log that the platform rejected a call without which the outcome is shown all the same."""
        log.warning(
            "platform_call_rejected",
            call=call_name,
            channel=self._channel.name,
            error=str(error),
            **fields,
        )

    async def _is_of_no_use(self, question: Question, posted: str) -> bool:
        """Store the id of a placeholder; return whether it is superfluous."""
        if await self._memory.first(question, "0", posted) != posted:
            return True
        known = await self._memory.fields(question)
        return "withdrawn" in known and "done" in known

    async def _set_sign(self, question: Question, post: Post) -> None:
        """Set the sign, or record that there is none to remove."""
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
