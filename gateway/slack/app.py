"""The Slack app: every event is answered once what it says is safe, in less than three seconds."""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import structlog
from slack_bolt import BoltResponse
from slack_bolt.async_app import AsyncApp
from slack_bolt.error import BoltUnhandledRequestError
from slack_sdk.web.async_client import AsyncWebClient

from gateway.chat.connector import ChatChannel
from gateway.chat.errors import PushError, UnreadableError, reads_foreign_form
from gateway.chat.retry import retry
from gateway.errors import GatewayError, MessageError
from gateway.slack.audience import SlackAudience
from gateway.slack.blocks import CHOOSE, OPEN
from gateway.slack.channel import show_choice
from gateway.slack.events import (
    DIRECT,
    HEARD,
    Deleted,
    InboundMessage,
    SlackIdentity,
    conversation_of,
    read,
)
from gateway.slack.forms import check_press
from gateway.slack.web_api import SlackCalls, translate_errors

log = structlog.get_logger("gateway")

ACKNOWLEDGE_SECONDS = 2.5
"""Slack waits three."""
LOCALE_SECONDS = 0.8
KEPT_LOCALES = 10_000
JOINED = "joined"
NO_EVENT = "expected an event of Slack, found another form"
NOT_SUBSCRIBED = "expected an event that the desk asks for"


class SlackTokenError(GatewayError):
    """Slack does not know this app."""


class Locales:
    """The languages of people, as Slack shows itself to them."""

    def __init__(self, calls: SlackCalls) -> None:
        self._calls = calls
        self._known: OrderedDict[str, str | None] = OrderedDict()

    async def of(self, user: str) -> str | None:
        """Return ISO 639-1, or None when Slack does not tell in time."""
        if user in self._known:
            return self._known[user]
        try:
            async with asyncio.timeout(LOCALE_SECONDS):
                locale = await self._calls.locale(user)
        except (PushError, TimeoutError) as error:
            log.info("locale_unavailable", channel="slack", error=str(error))
            return None
        language = locale[:2].lower() or None
        self._known[user] = language
        if len(self._known) > KEPT_LOCALES:
            self._known.popitem(last=False)
        return language


class SlackEvents:
    """Takes events; when a method returns, Slack may forget the event."""

    def __init__(
        self,
        calls: SlackCalls,
        me: SlackIdentity,
        door: ChatChannel,
        audience: SlackAudience | None = None,
    ) -> None:
        self._calls = calls
        self._me = me
        self._audience = SlackAudience() if audience is None else audience
        self._door = door
        self._locales = Locales(calls)

    async def message(self, event: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        """Take in what a person wrote, changed or took back."""
        with reads_foreign_form("an event of Slack"):
            found = read(event, self._me, self._door.name_question)
        async with asyncio.timeout(ACKNOWLEDGE_SECONDS):
            match found:
                case InboundMessage() as heard:
                    await self._take_message(heard, self._is_allowed(heard, event, body))
                case Deleted(question, message_id):
                    await self._door.intake.withdraw(question, message_id)
                case None:
                    pass

    @property
    def unavailable(self) -> tuple[type[Exception], ...]:
        """Errors after which Slack shall send an event again."""
        return (*self._door.unavailable, TimeoutError)

    async def take_press(self, body: Mapping[str, Any]) -> None:
        """Take in a pressed button."""
        check_press(body)
        async with asyncio.timeout(ACKNOWLEDGE_SECONDS):
            action, message = body["actions"][0], body.get("message") or {}
            channel = str(body["channel"]["id"])
            choice = await self._door.buttons.choice(str(action.get("value", "")))
            thread = str(message.get("thread_ts") or DIRECT)
            place = self._door.name_question(conversation_of(self._me, channel, thread), "-")
            language = await self._locales.of(str(body["user"]["id"]))
            post = {"channel": channel}
            if thread != DIRECT:
                post["thread"] = thread
            user = str(body["user"]["id"])
            if not self._audience.admits(
                channel=channel,
                user=user,
                direct=channel.startswith("D"),
                is_own_team=self._audience.is_own(self._me.team, body["user"], body),
            ):
                await self._door.declining.decline("not_allowed", user, None, "")
                return
            if choice is None or choice.question.conversation != place.conversation:
                self._door.spawn(self._show_to_person(post, user, "push_expired", language))
                return
            order = float(action["action_ts"])
            await self._door.submit_choice(
                choice, post=post, order=order, language=language, person=user
            )
            if choice.thumb:
                self._door.spawn(self._show_to_person(post, user, "push_thanks", language))
            else:
                self._door.spawn(self._show_choice(post, message, choice.label))

    def _is_allowed(
        self, heard: InboundMessage, event: Mapping[str, Any], body: Mapping[str, Any]
    ) -> bool:
        message = event.get("message") if event.get("subtype") == "message_changed" else event
        return self._audience.admits(
            channel=heard.incoming.post["channel"],
            user=heard.user,
            direct=heard.direct,
            is_own_team=self._audience.is_own(self._me.team, message or event, body),
        )

    async def _decline(self, heard: InboundMessage) -> None:
        """Say so in a direct message; in a channel nobody is told who is not to be answered."""
        language = await self._locales.of(heard.user) if heard.direct else None
        spoken = self._door.manners.default_language if language is None else language
        post = heard.incoming.post if heard.direct else None
        await self._door.declining.decline("not_allowed", heard.user, post, spoken)

    async def _take_message(self, heard: InboundMessage, is_allowed: bool) -> None:
        incoming = heard.incoming
        about = await self._door.memory.about(incoming.question)
        is_joined = heard.in_thread and JOINED in about and not heard.elsewhere
        if not heard.addressed and not is_joined:
            return
        if not is_allowed:
            await self._decline(heard)
            return
        if JOINED not in about:
            await self._door.memory.note_about(incoming.question, **{JOINED: "1"})
        if not about.get("language"):
            language = await self._locales.of(heard.user)
            incoming = replace(incoming, language=language)
        await self._door.intake.accept(incoming)

    async def _show_to_person(
        self, post: Mapping[str, str], user: str, key: str, language: str | None
    ) -> None:
        """Say something that only the person sees who pressed."""
        spoken = self._door.manners.default_language if language is None else language
        text = self._door.texts.text(key, spoken)
        channel, thread = post["channel"], post.get("thread")
        await retry(
            lambda: self._calls.whisper(channel, thread, user, text), call_name="post_ephemeral"
        )

    async def _show_choice(
        self, post: Mapping[str, str], message: Mapping[str, Any], chosen: str
    ) -> None:
        """Show what was chosen in the place of the options."""
        channel = post["channel"]
        await retry(
            lambda: show_choice(self._calls, channel, message, chosen), call_name="show_choice"
        )


async def identify(client: AsyncWebClient, channels: frozenset[str]) -> SlackIdentity:
    """Return who the app is; raises `SlackTokenError` when Slack does not know its token."""
    try:
        async with translate_errors():
            told = await client.auth_test()
    except PushError as error:
        raise SlackTokenError(f"expected the bot token of a Slack app: {error}") from error
    return SlackIdentity(str(told["team_id"]), str(told["user_id"]), channels)


def make_app(client: AsyncWebClient, events: SlackEvents, *, signing_secret: str) -> AsyncApp:
    """Return the app; an event whose listener fails is not acknowledged, and comes again."""
    app = AsyncApp(
        client=client,
        signing_secret=signing_secret,
        process_before_response=True,
        raise_error_for_unhandled_request=True,
    )
    for name in sorted(HEARD):
        app.event(name)(_listener(events))

    async def handle_press(ack: Callable[[], Awaitable[Any]], body: dict[str, Any]) -> None:
        await events.take_press(body)
        await ack()

    async def handle_open(ack: Callable[[], Awaitable[Any]]) -> None:
        await ack()

    async def handle_error(error: Exception) -> BoltResponse:
        return _answer_to(error, events.unavailable)

    app.action(re.compile(f"^{CHOOSE}"))(handle_press)
    app.action(re.compile(f"^{OPEN}"))(handle_open)
    app.error(handle_error)
    return app


def _answer_to(error: Exception, unavailable: tuple[type[Exception], ...]) -> BoltResponse:
    """Log in one line why an event is not acknowledged; nothing of it is repeated."""
    if isinstance(error, (UnreadableError, MessageError)):
        log.info("webhook_rejected", channel="slack", status=400, reason="unreadable_event")
        return BoltResponse(status=400, body=NO_EVENT)
    if isinstance(error, BoltUnhandledRequestError):
        log.info("webhook_rejected", channel="slack", status=404, reason="event_not_subscribed")
        return BoltResponse(status=404, body=NOT_SUBSCRIBED)
    if isinstance(error, unavailable):
        log.warning("webhook_deferred", channel="slack", error=str(error))
        return BoltResponse(status=503, body="try again", headers={"Retry-After": "1"})
    log.error("webhook_failed", channel="slack", exc_info=error)
    return BoltResponse(status=500, body="something went wrong on our side")


def _listener(events: SlackEvents) -> Callable[..., Awaitable[None]]:
    async def handle_message(event: dict[str, Any], body: dict[str, Any]) -> None:
        await events.message(event, body)

    return handle_message
