"""Shows outcomes in Telegram: first a typing action and a placeholder, then the text of the answer.

Telegram turns every URL in a text into a link. Therefore, a URL that is not a source of the answer
is rendered as code.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import structlog
from pydantic import JsonValue
from telegram import MessageEntity

from broker.values import Fields
from envelope.question import Question
from envelope.texts import Texts
from gateway.answer import Source, list_source_lines, split_off_passages
from gateway.chat.marked_text import (
    Mark,
    Marked,
    keep_source_links,
    parse_marked,
    plain_title,
    split,
    utf16_units,
    with_addresses_as_code,
)
from gateway.chat.ports import Button, Shown
from gateway.telegram.bot_api import FormError, Rows, TelegramCalls

LONGEST_UNITS = 4096
MOST_ENTITIES = 100
MOST_BUTTONS = 24
LABEL_CHARACTERS = 60
RATING_LABELS = {"up": "👍", "down": "👎"}
KINDS = {
    "bold": "bold",
    "italic": "italic",
    "strike": "strikethrough",
    "code": "code",
    "pre": "pre",
    "quote": "blockquote",
    "more": "expandable_blockquote",
    "link": "text_link",
}
ALONE = frozenset({"code", "pre"})
"""Marks that cannot be combined with other styles inside or around them."""
SPLIT = frozenset({"bold", "italic", "strike"})
"""Marks that may be split into several entities."""
WEB = ("https://", "http://")
RANK = ("more", "pre", "code", "link", "quote", "bold", "italic", "strike")
"""The order in which entities are kept if there are too many."""
log = structlog.get_logger("gateway")

TYPING_SECONDS = 4.0
"""Telegram shows an action for at most five seconds."""
HELP = ("language", "help_set_language"), ("clear", "help_clear_history"), ("help", "help_help")


class TelegramChannel:
    """Implements `gateway.chat.ports.Channel` for Telegram."""

    name = "telegram"

    def __init__(
        self, calls: TelegramCalls, texts: Texts, *, typing_seconds: float = TYPING_SECONDS
    ) -> None:
        self._calls = calls
        self._texts = texts
        self.activity_seconds: float | None = typing_seconds

    async def show_activity(self, question: Question, post: Mapping[str, str]) -> None:
        await self._calls.typing(post["chat"], _number(post, "thread"))

    async def hide_activity(self, question: Question, post: Mapping[str, str]) -> None:
        """Do nothing, because the typing action ends by itself."""

    def render(self, shown: Shown) -> Sequence[Fields]:
        text, more = split_off_passages(shown.answer)
        if fixed := self._render_fixed(shown):
            text, more = fixed, ""
        sources = () if shown.fixed else shown.answer.sources
        title = self._texts.text("push_sources", shown.language)
        made = messages(text, sources, title=title, more=more)
        rows = keyboard(shown.buttons)
        if rows:
            made[-1]["keyboard"] = rows  # type: ignore[assignment] # rows of JSON objects are JSON
        return made

    async def post_placeholder(
        self, post: Mapping[str, str], text: str, *, soon: bool = False
    ) -> str:
        thread, reply_to = _number(post, "thread"), _number(post, "reply_to")
        return await self._calls.send(post["chat"], thread, text, reply_to=reply_to, soon=soon)

    async def edit(
        self, post: Mapping[str, str], id_: str, part: Fields, *, is_draft: bool = False
    ) -> None:
        rows: Any = part.get("keyboard", ())
        entities = MessageEntity.de_list(part["entities"])  # type: ignore[arg-type] # JSON
        chat, text = post["chat"], str(part["text"])
        try:
            await self._calls.edit(chat, id_, text, entities, rows, is_draft=is_draft)
        except FormError as error:
            log.warning("formatting_rejected", channel=self.name, error=str(error))
            plain = _without_links(rows)
            await self._calls.edit(chat, id_, text, (), plain, is_draft=is_draft)

    async def delete(self, post: Mapping[str, str], id_: str) -> None:
        await self._calls.delete(post["chat"], id_)

    def _render_fixed(self, shown: Shown) -> str:
        def text(key: str) -> str:
            return self._texts.text(key, shown.language)

        match shown.fixed:
            case "start" | "help":
                lines = [f"/{command} – {text(key)}" for command, key in HELP]
                first = text("push_start") if shown.fixed == "start" else text("help_title")
                return "\n".join((first, "", *lines))
            case "language":
                return text("push_language")
            case _:
                return ""


def messages(
    markdown: str, sources: Sequence[Source], *, title: str, more: str = ""
) -> list[Fields]:
    """Return the messages for an answer, each with `text` and `entities`.

    `more` is text that a reader can expand.
    """
    text = parse_marked(markdown)
    if more:
        text = _add_folded(text, parse_marked(more))
    whole = with_sources(keep_source_links(text, sources), sources, title=title)
    whole = with_addresses_as_code(whole)
    pieces = split(whole, longest=LONGEST_UNITS, measure=lambda piece: utf16_units(piece.text))
    return [_message(piece) for piece in pieces]


def with_sources(answer: Marked, sources: Sequence[Source], *, title: str) -> Marked:
    """Return an answer followed by its numbered sources; sources with a URL are links."""
    if not sources:
        return answer
    text, marks = f"{answer.text}\n\n{title}", list(answer.marks)
    for line in list_source_lines(sources):
        name, place = plain_title(line.name), line.source.place
        if not line.numbers:
            text += f"\n{name}"
            continue
        text += f"\n{'  ' if line.is_nested else ''}{line.numbers} "
        if place.startswith(WEB):
            marks.append(Mark(len(text), len(text) + len(name), "link", place))
        is_linked = line.source.link or line.source.url
        text += name if is_linked or not place else f"{name} ({place})"
    return Marked(text, tuple(marks))


def keyboard(buttons: Sequence[Button]) -> list[list[Fields]]:
    """Return rows of buttons, with one option per row, and both feedback buttons in one row."""
    rows: list[list[Fields]] = []
    ratings: list[Fields] = []
    for button in buttons[:MOST_BUTTONS]:
        if button.kind in RATING_LABELS:
            ratings.append({"text": RATING_LABELS[button.kind], "callback_data": button.token})
            continue
        label = _shorten(button.label)
        if button.url is None:
            rows.append([{"text": label, "callback_data": button.token}])
        elif button.url.startswith(WEB):
            rows.append([{"text": label, "url": button.url}])
    return [*rows, ratings] if ratings else rows


def _add_folded(text: Marked, more: Marked) -> Marked:
    """Return a text followed by a collapsed text, which contains no nested quotations."""
    start = len(text.text) + 2
    marks = (
        replace(mark, start=start + mark.start, end=start + mark.end)
        for mark in more.marks
        if mark.kind != "quote"
    )
    folded = Mark(start, start + len(more.text), "more")
    return Marked(f"{text.text}\n\n{more.text}", (*text.marks, folded, *marks))


def _message(piece: Marked) -> Fields:
    entities: list[JsonValue] = [*_entities(piece)]
    return {"text": piece.text, "entities": entities}


def _entities(piece: Marked) -> list[Fields]:
    marks = sorted(_order_marks(piece.marks), key=lambda mark: (mark.start, -mark.end))
    if len(marks) > MOST_ENTITIES:
        best = set(sorted(marks, key=lambda mark: RANK.index(mark.kind))[:MOST_ENTITIES])
        marks = [mark for mark in marks if mark in best]
    return [_entity(mark, piece.text) for mark in marks]


def _order_marks(marks: Sequence[Mark]) -> Iterator[Mark]:
    """Yield marks in a format that Telegram accepts, with outer marks first.

    Code is not nested; a style around it is split into a part before and a part after it. A link
    that is also code becomes a link. No mark contains a mark of the same type.
    """
    kept: list[Mark] = []
    around: list[Mark] = []
    for mark in marks:
        if mark.kind == "link" and not mark.detail.startswith(WEB):
            continue
        around = [outer for outer in around if mark.end <= outer.end]
        kinds = {outer.kind for outer in around}
        if mark.kind not in kinds and not (mark.kind == "code" and "link" in kinds):
            kept.append(mark)
            around.append(mark)
    code = [mark for mark in kept if mark.kind in ALONE]
    for mark in kept:
        yield from _split_around_code(mark, code) if mark.kind in SPLIT else (mark,)


def _split_around_code(mark: Mark, code: Sequence[Mark]) -> Iterator[Mark]:
    start = mark.start
    first = bisect_right(code, mark.start, key=lambda other: other.end)
    for other in islice(code, first, None):
        if other.start >= mark.end:
            break
        if mark.start < other.end:
            if start < other.start:
                yield replace(mark, start=start, end=other.start)
            start = max(start, other.end)
    if start < mark.end:
        yield replace(mark, start=start)


def _entity(mark: Mark, text: str) -> Fields:
    entity: Fields = {
        "type": KINDS[mark.kind],
        "offset": utf16_units(text[: mark.start]),
        "length": utf16_units(text[mark.start : mark.end]),
    }
    if mark.kind == "link":
        entity["url"] = mark.detail
    if mark.kind == "pre" and mark.detail:
        entity["language"] = mark.detail
    return entity


def _shorten(label: str) -> str:
    return label if len(label) <= LABEL_CHARACTERS else f"{label[: LABEL_CHARACTERS - 1]}…"


def _without_links(rows: Rows) -> Rows:
    """Return the buttons that have a token, without link buttons, whose URL Telegram may reject."""
    kept = [[button for button in row if "url" not in button] for row in rows]
    return [row for row in kept if row]


def _number(post: Mapping[str, str], name: str) -> int | None:
    return int(post[name]) if name in post else None
