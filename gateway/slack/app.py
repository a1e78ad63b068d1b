"""The Slack app, which acknowledges an event within three seconds, after its content is stored."""

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

from broker.values import Fields
from envelope.texts import read_tag
from gateway.chat.connector import ChatChannel
from gateway.chat.platform_calls import retry
from gateway.chat.ports import PushError, UnreadableError, reads_foreign_form
from gateway.errors import GatewayError, MessageError
from gateway.slack.audience import SlackAudience
from gateway.slack.channel import CHOOSE, OPEN, show_choice
from gateway.slack.events import (
    DIRECT,
    EVENT_NAMES,
    EVENTS,
    Deleted,
    InboundMessage,
    SlackIdentity,
    conversation_of,
    read,
)
from gateway.slack.transport import PATH, check_press
from gateway.slack.web_api import SCOPES, SlackCalls, translate_errors

log = structlog.get_logger("gateway")

ACKNOWLEDGE_SECONDS = 2.5
"""Slack waits three seconds for an acknowledgement."""
LOCALE_SECONDS = 0.8
KEPT_LOCALES = 10_000
JOINED = "joined"
SENT = "white_check_mark"
_TICKET = re.compile(r"/v1/handover/([A-Za-z0-9_=.-]{1,2000})", re.ASCII)
NO_EVENT = "the event of Slack has an unexpected form"
NOT_SUBSCRIBED = "the app is not subscribed to this event"
NAME = "Refdesk"


class SlackTokenError(GatewayError):
    """Slack rejects the token of this app."""


class Locales:
    """Looks up the languages of Slack users in their Slack settings."""

    def __init__(self, calls: SlackCalls) -> None:
        self._calls = calls
        self._known: OrderedDict[str, str | None] = OrderedDict()

    async def of(self, user: str) -> str | None:
        """Return the language of texts for a person, or None if Slack does not respond in time."""
        if user in self._known:
            return self._known[user]
        try:
            async with asyncio.timeout(LOCALE_SECONDS):
                locale = await self._calls.locale(user)
        except (PushError, TimeoutError) as error:
            log.info("locale_unavailable", channel="slack", error=str(error))
            return None
        language = read_tag(locale) or None
        self._known[user] = language
        if len(self._known) > KEPT_LOCALES:
            self._known.popitem(last=False)
        return language


class SlackEvents:
    """Handles events. After a method returns, the event is stored and can be acknowledged."""

    def __init__(
        self,
        calls: SlackCalls,
        me: SlackIdentity,
        chat: ChatChannel,
        audience: SlackAudience | None = None,
        *,
        handover_channel: str = "",
    ) -> None:
        self._calls = calls
        self._me = me
        self._audience = SlackAudience() if audience is None else audience
        self._chat = chat
        self._locales = Locales(calls)
        self._handover_channel = handover_channel

    async def message(self, event: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        """Handle a message that a person wrote, edited or deleted."""
        with reads_foreign_form("an event of Slack"):
            parsed = read(event, self._me, self._chat.name_question)
        async with asyncio.timeout(ACKNOWLEDGE_SECONDS):
            match parsed:
                case InboundMessage() as inbound:
                    is_allowed = self._is_allowed(inbound, event, body)
                    if not await self._take_reply(inbound, is_allowed):
                        await self._take_message(inbound, is_allowed)
                case Deleted(question, message_id):
                    await self._chat.intake.withdraw(question, message_id)
                case None:
                    pass

    @property
    def unavailable(self) -> tuple[type[Exception], ...]:
        """The errors after which an event is not acknowledged, so that Slack sends it again."""
        return (*self._chat.unavailable, TimeoutError)

    async def take_press(self, body: Mapping[str, Any]) -> None:
        """Handle a click on a button."""
        check_press(body)
        async with asyncio.timeout(ACKNOWLEDGE_SECONDS):
            action, message = body["actions"][0], body.get("message") or {}
            channel = str(body["channel"]["id"])
            choice = await self._chat.buttons.choice(str(action.get("value", "")))
            thread = str(message.get("thread_ts") or DIRECT)
            place = self._chat.name_question(conversation_of(self._me, channel, thread), "-")
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
                await self._chat.declining.decline("not_allowed", user, None, "")
                return
            if choice is None or choice.question.conversation != place.conversation:
                self._chat.spawn(self._show_to_person(post, user, "push_expired", language))
                return
            order = float(action["action_ts"])
            is_made = await self._chat.submit_choice(
                choice, post=post, order=order, language=language, person=user
            )
            if choice.rating:
                self._chat.spawn(self._show_to_person(post, user, "push_thanks", language))
            elif is_made:
                self._chat.spawn(self._show_choice(post, message, choice.label))

    def _is_allowed(
        self, inbound: InboundMessage, event: Mapping[str, Any], body: Mapping[str, Any]
    ) -> bool:
        message = event.get("message") if event.get("subtype") == "message_changed" else event
        return self._audience.admits(
            channel=inbound.incoming.post["channel"],
            user=inbound.user,
            direct=inbound.direct,
            is_own_team=self._audience.is_own(self._me.team, message or event, body),
        )

    async def _decline(self, inbound: InboundMessage) -> None:
        """Decline the message of a person who is not allowed. A notice is posted only in direct
        messages.
        """
        language = await self._locales.of(inbound.user) if inbound.direct else None
        spoken = self._chat.policy.default_language if language is None else language
        post = inbound.incoming.post if inbound.direct else None
        await self._chat.declining.decline("not_allowed", inbound.user, post, spoken)

    async def _take_reply(self, inbound: InboundMessage, is_allowed: bool) -> bool:
        """Add a person's reply to a hand-over to the conversation; return False if it is not such a
        reply.

        The ticket is in the parent message, which must have been posted by the app itself.
        """
        handover, incoming = self._chat.handover, inbound.incoming
        channel, thread = incoming.post["channel"], incoming.post.get("thread")
        is_inside = inbound.in_thread and channel == self._handover_channel
        if handover is None or thread is None or not is_inside:
            return False
        text = await self._calls.read_own_message(channel, thread, self._me.user)
        match = _TICKET.search(text)
        if match is None or not handover.is_ticket(match[1]):
            return False
        if not is_allowed or incoming.edits is not None:
            return True
        ts = incoming.post["ts"]
        if await handover.reply(match[1], incoming.text, reply_id=f"slack {channel} {ts}"):
            self._chat.spawn(self._mark_sent(channel, ts))
        else:
            key, language = "handover_reply_failed", await self._locales.of(inbound.user)
            self._chat.spawn(self._show_to_person(incoming.post, inbound.user, key, language))
        return True

    async def _mark_sent(self, channel: str, ts: str) -> None:
        await retry(lambda: self._calls.sign(channel, ts, name=SENT), call_name="mark_sent")

    async def _take_message(self, inbound: InboundMessage, is_allowed: bool) -> None:
        incoming = inbound.incoming
        about = await self._chat.memory.about(incoming.question)
        is_joined = inbound.in_thread and JOINED in about and not inbound.elsewhere
        if not inbound.addressed and not is_joined:
            return
        if not is_allowed:
            await self._decline(inbound)
            return
        if JOINED not in about:
            await self._chat.memory.note_about(incoming.question, **{JOINED: "1"})
        if not about.get("language"):
            language = await self._locales.of(inbound.user)
            incoming = replace(incoming, language=language)
        await self._chat.intake.accept(incoming)

    async def _show_to_person(
        self, post: Mapping[str, str], user: str, key: str, language: str | None
    ) -> None:
        """Post a text that only the person who clicked the button can see."""
        spoken = self._chat.policy.default_language if language is None else language
        text = self._chat.texts.text(key, spoken)
        channel, thread = post["channel"], post.get("thread")
        await retry(
            lambda: self._calls.whisper(channel, thread, user, text), call_name="post_ephemeral"
        )

    async def _show_choice(
        self, post: Mapping[str, str], message: Mapping[str, Any], chosen: str
    ) -> None:
        """Replace the options of a message with the chosen one."""
        channel = post["channel"]
        await retry(
            lambda: show_choice(self._calls, channel, message, chosen), call_name="show_choice"
        )


async def identify(client: AsyncWebClient, channels: frozenset[str]) -> SlackIdentity:
    """Return the identity of the app; raises `SlackTokenError` if Slack does not confirm it."""
    try:
        async with translate_errors():
            reply = await client.auth_test()
    except PushError as error:
        raise SlackTokenError(
            f"Slack did not accept the token in SLACK_BOT_TOKEN, or cannot be reached: {error}"
        ) from error
    return SlackIdentity(str(reply["team_id"]), str(reply["user_id"]), channels)


def make_app(client: AsyncWebClient, events: SlackEvents, *, signing_secret: str) -> AsyncApp:
    """Return the app, which does not acknowledge an event if its handler fails."""
    app = AsyncApp(
        client=client,
        signing_secret=signing_secret,
        process_before_response=True,
        raise_error_for_unhandled_request=True,
    )
    for name in sorted(EVENT_NAMES):
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


def manifest(url: str | None) -> Fields:
    """Return the manifest; `url` is the public URL for events, or None for Socket Mode."""
    address: Fields = {} if url is None else {"request_url": f"{url.rstrip('/')}{PATH}"}
    return {
        "display_information": {"name": NAME},
        "features": {
            "app_home": {
                "home_tab_enabled": False,
                "messages_tab_enabled": True,
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": NAME, "always_online": True},
        },
        "oauth_config": {"scopes": {"bot": [*sorted({*SCOPES.values(), *EVENTS.values()})]}},
        "settings": {
            "event_subscriptions": {**address, "bot_events": [*sorted(EVENTS)]},
            "interactivity": {"is_enabled": True, **address},
            "org_deploy_enabled": False,
            "socket_mode_enabled": url is None,
            "token_rotation_enabled": False,
        },
    }


def _answer_to(error: Exception, unavailable: tuple[type[Exception], ...]) -> BoltResponse:
    """Log, in one line and without its content, why an event is not acknowledged."""
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
