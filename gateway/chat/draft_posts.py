"""Shows how far an answer has come, in the placeholder of its question.

Each edit with a draft is recorded before it is made, and the outcome waits until it has ended. So a
draft never replaces an outcome, whichever processes make the two edits. After a process was killed,
its last draft remains until the outcome replaces it.
"""

import asyncio
import time
from collections.abc import Mapping

import structlog

from broker.values import Fields, JournalEntry
from envelope.outcome import Outcome
from envelope.question import Question
from gateway.answer import Answer, Source, answer_of
from gateway.chat.errors import CallSkippedError, NoOpError, PermanentError, RetryableError
from gateway.chat.ports import Channel, ChannelTexts, ChatPolicy, Incoming, PushMemory, Shown
from gateway.desk import Desk
from gateway.draft_events import DraftFollower
from gateway.events import Event
from gateway.source_urls import opens_in

log = structlog.get_logger("gateway")

EDIT_SECONDS = 4.0
"""The time limit of an edit that shows a draft."""
UNKNOWN_SECONDS = 8.0
"""An edit whose result nobody knows counts as ended after this time, from its beginning."""


class DraftPosts:
    """Shows the drafts of questions that this process has accepted."""

    def __init__(
        self,
        desk: Desk,
        memory: PushMemory,
        channel: Channel,
        texts: ChannelTexts,
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
                reply, words=self._texts.text, language=tongue, opens=opens
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
        """Return the draft above a line that says that it is one."""
        key = "push_draft" if draft.text else "push_working"
        notice = self._texts.text(key, language)
        answer = draft.make_answer(f"{draft.text}\n\n_{notice}_" if draft.text else notice)
        return Shown(incoming.question, answer, incoming.post, language)

    async def _show(self, post: Mapping[str, str], id_: str, shown: Shown) -> bool | None:
        """Return whether a draft was shown; None: no draft can be shown any more."""
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
        found = event.data["sources"]
        sources = found if isinstance(found, list) else []
        self._sources = tuple(Source.model_validate(one) for one in sources)

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
    """Return whether the outcome follows at once."""
    return entry.kind == "finished" or (
        entry.kind == "routed" and entry.fields.get("target") == "final"
    )
