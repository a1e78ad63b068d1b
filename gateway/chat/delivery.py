"""Shows each outcome of a channel once, in the place where the question was asked, and then
acknowledges it.

The token of a button is a keyed hash of the question and the button's position. An answer that is
rendered again has the same tokens, and nobody can guess a token.

| metric                        | labels          | meaning                                      |
|-------------------------------|-----------------|----------------------------------------------|
| refdesk_chat_deliveries_total | channel, result | replies that were shown, by their outcome;   |
|                               |                 | `delivery_failed`: it will be retried;       |
|                               |                 | `delivery_abandoned`: it is never shown;     |
|                               |                 | `background_task_failed`: another task of    |
|                               |                 | the channel failed                           |
| refdesk_chat_declined_total   | channel, reason | messages that were not accepted:             |
|                               |                 | `limited_minute`, `limited_day`: a limit per |
|                               |                 | person; `not_allowed`: not on the lists      |
| refdesk_chat_feedback_total   | channel, rating | ratings of answers: `up`, `down`             |
"""

import asyncio
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector
from pydantic import AliasChoices, BaseModel, Field

from broker.errors import BrokerUnavailableError
from broker.result_list import Result, ResultList
from broker.transport.connect import Outage
from broker.values import Fields
from envelope.outcome import Outcome
from envelope.question import Question
from envelope.texts import Texts
from gateway.answer import DEADLINE, Answer, answer_of, opens_in
from gateway.chat.coalescing import PostEraser
from gateway.chat.marked_text import plain_title
from gateway.chat.placeholder import TypingIndicator
from gateway.chat.platform_calls import raise_if_cancelled, retry
from gateway.chat.ports import (
    Button,
    Channel,
    ChatPolicy,
    PermanentError,
    PostNotFoundError,
    PushError,
    RetryableError,
    Shown,
    Tally,
)
from memory.chat_state import RedisPushMemory

TOKEN_BYTES = 15
RATINGS = ("up", "down")
log = structlog.get_logger("gateway")

SLOTS = 32
"""The number of outcomes that are shown concurrently, for each shard."""
BLOCK_SECONDS = 1.0
AWAY_SECONDS = 0.5
MOST_DELIVERIES = 20
"""The number of failed deliveries after which an outcome is abandoned, unless the platform asked to
wait.
"""
DRAFT_LOOK_SECONDS = 0.05
"""How often to check whether the edit of a draft has ended."""
ELLIPSIS = "…"
"""The text of the additional posts of a long answer until they show their part of it."""


class Choice(BaseModel, frozen=True, extra="ignore"):
    """The action of a button: a text to ask, a rating, or a language to answer in.

    `answers_pause` is true if it approves, denies, or enters a value that only the person who asked
    may provide. Buttons that were stored before version 0.2 call the rating `thumb`.
    """

    question: Question
    number: str
    label: str
    ask: str = ""
    rating: str = Field(default="", validation_alias=AliasChoices("rating", "thumb"))
    language: str = ""
    answers_pause: bool = False


class Buttons:
    """Creates and resolves the buttons of a channel."""

    def __init__(self, memory: RedisPushMemory, *, secret: str) -> None:
        self._memory = memory
        self._secret = hashlib.sha256(secret.encode()).digest()

    async def of(self, question: Question, answer: Answer, *, ratings: bool) -> list[Button]:
        """Return the buttons below an answer."""
        made = []
        for number, action in enumerate(answer.suggested_actions):
            label = plain_title(action.label)
            if action.kind == "source":
                if action.link is not None:
                    made.append(Button(label, "", action.kind, action.link))
                continue
            choice = Choice(
                question=question,
                number=str(number),
                label=label,
                ask=action.value,
                answers_pause=answer.pause is not None,
            )
            made.append(Button(label, await self.store(choice), action.kind))
        if ratings and answer.outcome.value == "answered":
            for rating in RATINGS:
                choice = Choice(question=question, number=rating, label=rating, rating=rating)
                made.append(Button("", await self.store(choice), rating))
        return made

    async def of_languages(self, question: Question, texts: Texts) -> list[Button]:
        """Return a button for each supported language, labelled in that language."""
        made = []
        for language in texts.languages:
            label = texts.text(f"language_{language}", language)
            choice = Choice(question=question, number=language, label=label, language=language)
            made.append(Button(label, await self.store(choice), "language"))
        return made

    async def store(self, choice: Choice) -> str:
        """Store the action of a button and return the token that identifies it."""
        name = "\x1f".join((*choice.question.conversation, choice.question.message_id))
        token = hashlib.blake2b(
            f"{name}\x1f{choice.number}".encode(), key=self._secret, digest_size=TOKEN_BYTES
        ).hexdigest()
        await self._memory.put_token(token, choice.model_dump_json(), choice.question)
        return token

    async def choice(self, token: str) -> Choice | None:
        """Return the action for a token, or None if it is no longer stored."""
        stored = await self._memory.token(token)
        return None if stored is None else Choice.model_validate_json(stored)


class ReplyDelivery:
    """Takes replies from the result list until cancelled."""

    def __init__(
        self,
        results: ResultList,
        memory: RedisPushMemory,
        channel: Channel,
        buttons: Buttons,
        texts: Texts,
        *,
        policy: ChatPolicy,
        signs: TypingIndicator,
        forgetting: PostEraser,
        tally: Tally,
    ) -> None:
        self._results = results
        self._memory = memory
        self._channel = channel
        self._buttons = buttons
        self._texts = texts
        self._policy = policy
        self._signs = signs
        self._forgetting = forgetting
        self._tally = tally
        self._running: dict[tuple[int, str], Result] = {}
        self._outage = Outage()
        self._ended = asyncio.Event()

    async def run(self) -> None:
        """Deliver until cancelled. Replies that were not shown are taken over by another
        process.
        """
        # After a failure, the replies that were being shown are taken again after their leases.
        self._running.clear()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._renew_waiting())
            while True:
                for result in await self._take():
                    key = result.shard, result.entry_id
                    is_new = key not in self._running
                    self._running[key] = result
                    if is_new:
                        tasks.create_task(self._one(result))

    async def _take(self) -> Sequence[Result]:
        while len(self._running) >= SLOTS:
            self._ended.clear()
            await self._ended.wait()
        slots = SLOTS - len(self._running)
        try:
            results = await self._results.take(slots=slots, block_seconds=BLOCK_SECONDS)
        except BrokerUnavailableError as error:
            self._outage.record_failure("take_results", error)
            await asyncio.sleep(AWAY_SECONDS)
            return ()
        self._outage.record_success()
        return results

    async def _renew_waiting(self) -> None:
        """Renew the leases of replies that wait because of the platform's rate limit."""
        while True:
            raise_if_cancelled()
            await asyncio.sleep(self._results.renew_seconds)
            try:
                await self._results.renew(list(self._running.values()))
            except BrokerUnavailableError as error:
                self._outage.record_failure("renew_results", error)

    async def _one(self, result: Result) -> None:
        try:
            if await self._is_done(result):
                await self._results.mark_delivered([result])
        except BrokerUnavailableError as error:
            # It stays on the list; its next delivery shows the same.
            self._outage.record_failure("mark_delivered", error)
        finally:
            del self._running[result.shard, result.entry_id]
            self._ended.set()

    async def _is_done(self, result: Result) -> bool:
        """Show an outcome; return whether it was shown or abandoned."""
        try:
            await self.show(result)
        except Exception as error:  # noqa: BLE001 - one failed outcome must not block others
            return self._record_failure(result, error)
        return True

    def _record_failure(self, result: Result, error: Exception) -> bool:
        """Log and count a failure; return whether to give up."""
        is_requested = isinstance(error, RetryableError) and error.by_platform
        tried_enough = result.count >= MOST_DELIVERIES and not is_requested
        hopeless = isinstance(error, PermanentError) or tried_enough
        log.error(
            "delivery_abandoned" if hopeless else "delivery_failed",
            channel=self._channel.name,
            conversation_id=result.question.conversation_id,
            message_id=result.question.message_id,
            delivery=result.count,
            error=str(error) if isinstance(error, PushError) else type(error).__name__,
            exc_info=None if isinstance(error, PushError) else error,
        )
        self._tally.add("delivery_abandoned" if hopeless else "delivery_failed")
        return hopeless

    async def show(self, result: Result) -> None:
        """Show an outcome, unless it was already shown; raises `PushError`."""
        question = result.question
        known = await self._memory.fields(question)
        post: Mapping[str, str] = json.loads(known.get("post", "{}"))
        if not post:
            await self._forget(result)
            raise PermanentError("the destination of this outcome is no longer stored")
        is_merged = bool(result.reply.get("merged_into"))
        is_withdrawn = "withdrawn" in known and result.outcome == Outcome.SUPERSEDED
        if not (is_withdrawn or is_merged or "shown" in known):
            try:
                await self._post(result, known, post)
            except PermanentError:
                # The answer cannot be shown, so the typing indicator must end.
                await self._forget(result)
                await self._memory.close(question)
                await self._show_refusal(result, post)
                raise
            await self._forget(result)
            await self._memory.note(question, shown="1")
        await self._memory.close(question)
        # From now on, other tasks see that the question is closed.
        if is_withdrawn:
            await self._remove(await self._memory.fields(question), post)
        if not is_merged:
            await self._signs.rest(question, post)
        self._tally.add(result.outcome)

    async def _forget(self, result: Result) -> None:
        """Delete the channel's copies of text that a command erased, even if the reply to the
        command cannot be shown.
        """
        forgot = result.reply.get("forgot")
        if not forgot:
            return
        for end in await self._forgetting.find_undelivered(result.question):
            with suppress(PermanentError):
                await self.show(end)
        await self._forgetting.forget(result.question, str(forgot))

    async def _post(
        self, result: Result, known: Mapping[str, str], post: Mapping[str, str]
    ) -> None:
        await self._stop_drafts(result)
        shown = await self._make_shown(result, known, post)
        # In a thread: a very long answer must not block the event loop.
        parts = await asyncio.to_thread(self._channel.render, shown)
        ids = [await self._id(result, known, post, number) for number in range(len(parts))]
        for number, (id_, part) in enumerate(zip(ids, parts, strict=True)):
            await self._edit(result, post, number, id_, part)

    async def _show_refusal(self, result: Result, post: Mapping[str, str]) -> None:
        """Replace the placeholder with a notice that the platform rejected the answer.

        Most rejections concern the whole conversation, such as an archived channel. In that case,
        the notice is rejected as well, and the operator's log contains both reasons.
        """
        known = await self._memory.fields(result.question)
        shown = await self._make_shown(result, known, post)
        text = self._texts.text("push_refused", shown.language)
        answer = Answer(
            conversation_id=result.question.conversation_id,
            message_id=result.question.message_id,
            outcome=Outcome.FAILED,
            text=text,
        )
        notice = replace(shown, answer=answer, fixed="", buttons=())
        first, *others = sorted((name for name in known if name.isdecimal()), key=int) or ["0"]
        try:
            id_ = await self._id(result, known, post, int(first))
            (part, *_) = self._channel.render(notice)
            await retry(lambda: self._channel.edit(post, id_, part), call_name="edit_post")
            for name in others:
                await retry(
                    partial(self._channel.delete, post, known[name]), call_name="delete_post"
                )
            await self._signs.rest(result.question, post)
        except PushError as error:
            log.warning("refusal_not_shown", channel=self._channel.name, error=str(error))

    async def _stop_drafts(self, result: Result) -> None:
        """Wait until no draft can replace the outcome any longer."""
        if self._policy.draft_seconds is None:
            return
        seconds = await self._memory.stop_drafts(result.question)
        while seconds > 0:
            await asyncio.sleep(min(seconds, DRAFT_LOOK_SECONDS))
            seconds = await self._memory.stop_drafts(result.question)

    async def _make_shown(
        self, result: Result, known: Mapping[str, str], post: Mapping[str, str]
    ) -> Shown:
        language = known.get("language", self._policy.default_language)
        opens = opens_in(self._policy.documentation)
        answer = answer_of(
            result.reply,
            words=self._texts.text,
            language=language,
            opens=opens,
            link_hosts=self._policy.link_hosts,
        )
        fixed = known.get("fixed", "")
        if not fixed and _has_own_language(answer):
            language = answer.language
            await self._memory.note_about(result.question, language=language)
        if fixed == "language":
            buttons = await self._buttons.of_languages(result.question, self._texts)
        else:
            buttons = await self._buttons.of(result.question, answer, ratings=not fixed)
        return Shown(result.question, answer, post, language, fixed, buttons)

    async def _id(
        self, result: Result, known: Mapping[str, str], post: Mapping[str, str], number: int
    ) -> str:
        """Return the id of a post to edit; create the post if it does not exist."""
        if (id_ := known.get(str(number))) is not None:
            return id_
        made = await retry(
            lambda: self._channel.post_placeholder(post, ELLIPSIS), call_name="post_placeholder"
        )
        if made is None:
            raise PermanentError("the platform returned no id for a new post")
        stands = await self._memory.first(result.question, str(number), made)
        if stands != made:
            await retry(lambda: self._channel.delete(post, made), call_name="delete_post")
        return stands

    async def _edit(
        self, result: Result, post: Mapping[str, str], number: int, id_: str, part: Fields
    ) -> None:
        try:
            await retry(lambda: self._channel.edit(post, id_, part), call_name="edit_post")
        except PostNotFoundError:
            # Somebody deleted the post; the outcome must be shown nevertheless.
            again = await retry(
                lambda: self._channel.post_placeholder(post, ELLIPSIS), call_name="post_placeholder"
            )
            if again is None:
                raise
            await self._memory.note(result.question, **{str(number): again})
            await retry(lambda: self._channel.edit(post, again, part), call_name="edit_post")

    async def _remove(self, known: Mapping[str, str], post: Mapping[str, str]) -> None:
        for id_ in [value for name, value in known.items() if name.isdecimal()]:
            await retry(partial(self._channel.delete, post, id_), call_name="delete_post")


class _Counts(Collector):
    def __init__(self, channel: str, tally: Tally, *, name: str, what: str, label: str) -> None:
        self._channel = channel
        self._tally = tally
        self._name = name
        self._what = what
        self._label = label

    def collect(self) -> Iterator[CounterMetricFamily]:
        family = CounterMetricFamily(
            self._name,
            self._what,
            labels=["channel", self._label],
        )
        for result, count in sorted(self._tally.counts.items()):
            family.add_metric([self._channel, result], count)
        yield family


def push_metrics(
    channel: str,
    tally: Tally,
    refusals: Tally,
    ratings: Tally,
    *,
    registry: CollectorRegistry | None = None,
) -> CollectorRegistry:
    """Return a registry, by default a new one, that reads the counts of a channel when scraped."""
    registry = CollectorRegistry() if registry is None else registry
    what = "Deliveries of replies, by result."
    name = "refdesk_chat_deliveries"
    registry.register(_Counts(channel, tally, name=name, what=what, label="result"))
    what, name = "Messages that were not accepted.", "refdesk_chat_declined"
    registry.register(_Counts(channel, refusals, name=name, what=what, label="reason"))
    what, name = "Ratings of answers.", "refdesk_chat_feedback"
    registry.register(_Counts(channel, ratings, name=name, what=what, label="rating"))
    return registry


def _has_own_language(answer: Answer) -> bool:
    written = {Outcome.ANSWERED, Outcome.CLARIFICATION, Outcome.REFUSED}
    return answer.outcome in written and answer.termination_reason != DEADLINE
