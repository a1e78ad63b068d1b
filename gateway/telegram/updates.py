"""Parses updates to determine which ones are addressed to the bot, and what they contain.

A conversation consists of a chat and its topic; in a group, it also includes the person, so that
one person's question does not replace another's.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from telegram import CallbackQuery, Chat, Message, MessageEntity, Update, User

from envelope.question import Question
from envelope.texts import read_tag
from gateway.chat.coalescing import VERSION
from gateway.chat.ports import Incoming

ALLOWED = ["message", "edited_message", "callback_query"]
"""The types of updates that the bot requests."""
GROUPS = frozenset({"group", "supergroup"})
COMMANDS = {"start": "help", "help": "help", "clear": "clear_history", "language": "set_language"}
"""The commands in Telegram, with their internal names."""

Named = Callable[[str, str], Question]


@dataclass(frozen=True, slots=True)
class BotIdentity:
    """The identity of the bot."""

    id: int
    username: str


@dataclass(frozen=True, slots=True)
class Pressed:
    """A button click."""

    query_id: str
    token: str
    conversation_id: str
    post: dict[str, str]
    message_id: str
    order: float
    language: str | None
    person: int = 0


@dataclass(frozen=True, slots=True)
class TelegramAudience:
    """The allowed chats and users; an empty list allows everybody.

    The id of a private chat is the id of the person in it.
    """

    chats: frozenset[int] = frozenset()
    users: frozenset[int] = frozenset()

    def admits(self, *, chat: int, user: int) -> bool:
        """Return whether Refdesk answers this person in this chat."""
        return (not self.chats or chat in self.chats) and (not self.users or user in self.users)


def read(update: Update, me: BotIdentity, named: Named) -> Incoming | Pressed | None:
    """Return the message or button click in an update, or None if it is not for the bot."""
    if update.callback_query is not None:
        return _parse_press(update.callback_query, update.update_id)
    message = update.message or update.edited_message
    if message is None or message.from_user is None or message.from_user.is_bot:
        return None
    text = message.text if message.text is not None else message.caption
    if not isinstance(text, str):
        return None
    return _incoming(message, message.from_user, text, update, (me, named))


def _incoming(
    message: Message, user: User, text: str, update: Update, desk: tuple[BotIdentity, Named]
) -> Incoming | None:
    me, named = desk
    command, rest, addressed = _command(message, text, me)
    if not _is_addressed(message, me, addressed=addressed):
        return None
    edits = None if update.edited_message is None else str(message.message_id)
    id_ = str(message.message_id)
    if edits is not None:
        # The time of the edit is not unique: there may be two edits in a second.
        id_ = f"{id_}{VERSION}{update.update_id}"
    text_after = rest if command is not None else _remove_mention(text, me)
    fixed = _find_fixed(command, text_after) if command is not None or text_after else "start"
    return Incoming(
        question=named(_conversation(message.chat, _thread(message), user), id_),
        text=text if command is not None or not text_after else text_after,
        post=_post(message),
        order=float(update.update_id),
        language=_language(user),
        command=_desk_command(command, text_after),
        arguments=tuple(text_after.split()) if command is not None else (),
        edits=edits,
        fixed=fixed,
        person=str(user.id),
    )


def _conversation(chat: Chat, thread: int, user: User) -> str:
    place = f"{chat.id}{VERSION}{thread}"
    return f"{place}{VERSION}{user.id}" if chat.type in GROUPS else place


def _desk_command(command: str | None, text_after: str) -> str | None:
    if command is None:
        return None if text_after else "help"
    return "help" if command == "language" and not text_after else COMMANDS.get(command, command)


def _find_fixed(command: str | None, text_after: str) -> str:
    match command:
        case "start" | "help":
            return command
        case "language" if not text_after:
            return "language"
        case _:
            return ""


def _command(message: Message, text: str, me: BotIdentity) -> tuple[str | None, str, bool]:
    """Return the command, its arguments, and whether it is addressed to this bot."""
    first = next(iter(message.entities), None)
    if first is None or first.type != MessageEntity.BOT_COMMAND or first.offset != 0:
        return None, "", False
    name, _, bot = text[1 : first.length].partition("@")
    rest = text[first.length :].strip()
    if bot and bot.casefold() != me.username.casefold():
        return None, "", False
    return name.casefold(), rest, bool(bot)


def _is_addressed(message: Message, me: BotIdentity, *, addressed: bool) -> bool:
    if message.chat.type not in GROUPS:
        return message.chat.type == "private"
    replied = message.reply_to_message
    to_me = (
        replied is not None
        and replied.from_user is not None
        and replied.from_user.id == me.id
        and replied.forum_topic_created is None
    )
    return addressed or to_me or _mentions(message, me)


def _mentions(message: Message, me: BotIdentity) -> bool:
    mentions = {
        **message.parse_entities([MessageEntity.MENTION, MessageEntity.TEXT_MENTION]),
        **message.parse_caption_entities([MessageEntity.MENTION, MessageEntity.TEXT_MENTION]),
    }
    return any(
        mentioned.casefold() == f"@{me.username}".casefold()
        or (entity.user is not None and entity.user.id == me.id)
        for entity, mentioned in mentions.items()
    )


def _remove_mention(text: str, me: BotIdentity) -> str:
    mine = rf"(?<!\w)@{re.escape(me.username)}(?!\w)[,:.!]*[ \t]*"
    return re.sub(mine, "", text, flags=re.IGNORECASE).strip()


def _post(message: Message) -> dict[str, str]:
    post = {"chat": str(message.chat.id)}
    if _thread(message):
        post["thread"] = str(_thread(message))
    if message.chat.type in GROUPS:
        post["reply_to"] = str(message.message_id)
    return post


def _thread(message: Message) -> int:
    thread = message.message_thread_id
    return thread if message.is_topic_message and thread is not None else 0


def _parse_press(query: CallbackQuery, update_id: int) -> Pressed | None:
    message = query.message
    if message is None or not isinstance(query.data, str):
        return None
    # A message that Telegram can no longer show has no topic.
    thread = _thread(message) if isinstance(message, Message) else 0
    post = {"chat": str(message.chat.id), **({"thread": str(thread)} if thread else {})}
    return Pressed(
        query_id=str(query.id),
        token=query.data,
        conversation_id=_conversation(message.chat, thread, query.from_user),
        post=post,
        message_id=str(message.message_id),
        order=float(update_id),
        language=_language(query.from_user),
        person=query.from_user.id,
    )


def _language(user: User) -> str | None:
    return read_tag(str(user.language_code or "")) or None
