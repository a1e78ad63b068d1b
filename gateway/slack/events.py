"""Parses events to determine which ones are addressed to the app, and what they contain.

A conversation is a thread, or a direct message without threads. The `ts` identifies a message, so
that `app_mention` and `message` events about the same message, and repeated events, result in one
question.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from envelope.question import Question
from gateway.chat.coalescing import VERSION
from gateway.chat.ports import Incoming
from gateway.slack.channel import mentions, parse_text, speaks_to_another
from gateway.text import parse_command

WRITTEN_SUBTYPES = frozenset({"", "thread_broadcast", "file_share", "me_message"})
"""Subtypes of messages that people wrote."""
DIRECT = "direct"
EVENTS = {
    "app_mention": "app_mentions:read",
    "message.channels": "channels:history",
    "message.groups": "groups:history",
    "message.im": "im:history",
}
"""The events that the app subscribes to, with the scope that each requires."""
EVENT_NAMES = frozenset(name.partition(".")[0] for name in EVENTS)
"""The types of these events in requests."""
COMMANDS = {
    "clear": "clear_history",
    "clear_history": "clear_history",
    "clear_all": "clear_all",
    "language": "set_language",
    "set_language": "set_language",
    "get_stats": "get_stats",
    "help": "help",
    "person": "person",
}
"""The commands that people type, with their internal names."""

Named = Callable[[str, str], Question]


@dataclass(frozen=True, slots=True)
class SlackIdentity:
    """The identity of the app, and the channels in which every message is a question."""

    team: str
    user: str
    channels: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class InboundMessage:
    """A message that a person wrote.

    `addressed` is true if it mentions the app, so that it is answered even in a thread that the app
    has not joined. `elsewhere` is true if it mentions another person.
    """

    incoming: Incoming
    user: str
    addressed: bool
    in_thread: bool
    elsewhere: bool = False
    direct: bool = False


@dataclass(frozen=True, slots=True)
class Deleted:
    """A deleted message."""

    question: Question
    message_id: str


def read(
    event: Mapping[str, Any], me: SlackIdentity, named: Named
) -> InboundMessage | Deleted | None:
    """Return the message or deletion in an event, or None if it does not come from a person."""
    subtype = str(event.get("subtype") or "")
    if subtype == "message_deleted":
        return _parse_deletion(event, event.get("previous_message"), me, named)
    if subtype == "message_changed":
        return _parse_change(event, me, named)
    if subtype not in WRITTEN_SUBTYPES or not _is_of_person(event, me):
        return None
    return _parse_message(event, event, me, named)


def conversation_of(me: SlackIdentity, channel: str, thread: str) -> str:
    """Return the conversation id of a thread."""
    return VERSION.join((me.team, channel, thread))


def _parse_change(
    event: Mapping[str, Any], me: SlackIdentity, named: Named
) -> InboundMessage | Deleted | None:
    message, before = event.get("message") or {}, event.get("previous_message") or {}
    if message.get("subtype") == "tombstone":
        return _parse_deletion(event, before or message, me, named)
    edited = message.get("edited") or {}
    same = message.get("text") == before.get("text")
    if same or "ts" not in edited or not _is_of_person(message, me):
        return None
    return _parse_message(event, message, me, named, edited=str(edited["ts"]))


def _parse_message(
    event: Mapping[str, Any],
    message: Mapping[str, Any],
    me: SlackIdentity,
    named: Named,
    *,
    edited: str = "",
) -> InboundMessage:
    channel, ts = str(event["channel"]), str(message["ts"])
    raw = str(message.get("text") or "")
    thread = _thread(event, message)
    text = parse_text(raw, without=me.user)
    post = {"channel": channel, "ts": ts}
    if thread != DIRECT:
        post["thread"] = thread
    addressed = (
        event.get("type") == "app_mention"
        or thread == DIRECT
        or _is_direct(event)
        or channel in me.channels
        or mentions(raw, me.user)
    )
    elsewhere = not _is_direct(event) and speaks_to_another(raw, me.user)
    message_id = f"{ts}{VERSION}{edited}" if edited else ts
    command, arguments = _command(text)
    incoming = Incoming(
        question=named(conversation_of(me, channel, thread), message_id),
        text=text or "help",
        post=post,
        order=float(edited or ts),
        command=command if text else "help",
        arguments=arguments,
        edits=ts if edited else None,
        fixed="" if text else "start",
        person=str(message["user"]),
    )
    return InboundMessage(
        incoming,
        str(message["user"]),
        addressed,
        "thread_ts" in message,
        elsewhere,
        _is_direct(event),
    )


def _command(text: str) -> tuple[str | None, tuple[str, ...]]:
    """Return the command in a text. Texts that begin with a slash are handled by Slack itself."""
    name, arguments = parse_command(text, ())
    return (COMMANDS[name], arguments) if name in COMMANDS else (None, ())


def _parse_deletion(
    event: Mapping[str, Any], gone: Any, me: SlackIdentity, named: Named
) -> Deleted | None:
    if not isinstance(gone, dict) or not _is_of_person(gone, me, tombstone=True):
        return None
    ts = str(gone.get("ts") or event.get("deleted_ts") or "")
    conversation = conversation_of(me, str(event["channel"]), _thread(event, gone))
    return Deleted(named(conversation, f"{ts}{VERSION}deleted"), ts) if ts else None


def _thread(event: Mapping[str, Any], message: Mapping[str, Any]) -> str:
    thread = message.get("thread_ts")
    if thread:
        return str(thread)
    return DIRECT if _is_direct(event) else str(message["ts"])


def _is_direct(event: Mapping[str, Any]) -> bool:
    return event.get("channel_type") == "im" or str(event.get("channel", "")).startswith("D")


def _is_of_person(
    message: Mapping[str, Any], me: SlackIdentity, *, tombstone: bool = False
) -> bool:
    if message.get("bot_id") or message.get("bot_profile"):
        return False
    user = message.get("user")
    return tombstone or (isinstance(user, str) and user != me.user and user != "USLACKBOT")
