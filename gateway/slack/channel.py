"""Shows outcomes in Slack: first an eyes reaction and a placeholder, then the blocks of the answer.

The limits are 3,000 characters per section, 75 per button label, 50 blocks per message, and about
13,200 characters in all blocks of one message, which Slack enforces without documenting it. The
`text` of `chat.update` has at most 4,000 bytes in UTF-8, counted after escaping. Each message
contains only as much as fits into `text`, because screen readers read it, and because people see
only `text` if Slack rejects the blocks.

An answer cannot mention people or channels, because `&`, `<` and `>` are always escaped, and only
URLs become links.
"""

import json
import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import structlog
from pydantic import JsonValue

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
)
from gateway.chat.ports import Button, Shown
from gateway.slack.web_api import BlocksError, SlackCalls

SECTION_CHARACTERS = 2_900
ALL_CHARACTERS = 12_500
"""The maximum total length of the blocks of a message, as encoded for the request."""
TEXT_BYTES = 3_900
"""The maximum length of the escaped text of one message."""
SOURCES = 20
"""Maximum number of lines in the list of sources, which ends with the number of omitted lines."""
SOURCES_CHARACTERS = 6_000
"""The maximum encoded length of all sources, and of all buttons, so that both fit one message."""
SOURCE_CHARACTERS = 150
INDENT = "\u2003"
"""The indentation of a section below its page, because Slack removes spaces."""
CONTEXT_ELEMENTS = 10
LABEL_CHARACTERS = 75
ROW = 5
MOST_BUTTONS = 20
LINK_CHARACTERS = 1_000
"""The maximum length of a source's URL; a longer one is omitted."""
RATING_LABELS = {"up": "👍", "down": "👎"}
CHOOSE = "choose:"
_Part = tuple[Marked, bool]
"""A piece of text, and whether Slack must show it in full."""
OPEN = "open:"
_JOINED = re.compile(r"[\w*~]")
_SIGNS = {"bold": "*", "italic": "_", "strike": "~", "code": "`", "pre": "```"}
_REFERENCE = re.compile(r"<([^<>|]*)(?:\|([^<>]*))?>")
_MENTION = re.compile(r"<@([A-Z0-9]+)(?:\|[^<>]*)?>")
_SPACES = re.compile(r"[ \t]{2,}")
_WORD = re.compile(r"\S+")
_READ_AS_FORMAT = re.compile(
    r"^>"  # a quotation
    r"|(?<![\w*_~])[*_~]*([*_~])[^\s*_~](?=[^\n]{0,500}\1(?!\w))"  # bold, italic or struck out
    r"|:(?:[a-z+-][\w+'-]*|100|1234):",  # an emoji
    re.MULTILINE,
)
_DEEPEST = 12
"""The maximum nesting of marks; deeper marks are not rendered."""
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
log = structlog.get_logger("gateway")


class SlackChannel:
    """Implements `gateway.chat.ports.Channel` for Slack."""

    name = "slack"
    activity_seconds: float | None = None

    def __init__(self, calls: SlackCalls, texts: Texts) -> None:
        self._calls = calls
        self._texts = texts

    async def show_activity(self, question: Question, post: Mapping[str, str]) -> None:
        if "ts" in post:
            await self._calls.sign(post["channel"], post["ts"])

    async def hide_activity(self, question: Question, post: Mapping[str, str]) -> None:
        if "ts" in post:
            await self._calls.unsign(post["channel"], post["ts"])

    def render(self, shown: Shown) -> Sequence[Fields]:
        text, more = split_off_passages(shown.answer)
        if shown.fixed == "start":
            text, more = self._texts.text("push_start", shown.language), ""
        title = self._texts.text("push_sources", shown.language)
        return messages(text, shown.answer.sources, shown.buttons, title=title, more=more)

    async def post_placeholder(
        self, post: Mapping[str, str], text: str, *, soon: bool = False
    ) -> str:
        return await self._calls.post(post["channel"], post.get("thread"), text, soon=soon)

    async def edit(
        self, post: Mapping[str, str], id_: str, part: Fields, *, is_draft: bool = False
    ) -> None:
        blocks: Any = part["blocks"]
        channel, text = post["channel"], str(part["text"])
        try:
            await self._calls.update(channel, id_, text, blocks, is_draft=is_draft)
        except BlocksError as error:
            log.warning("blocks_rejected", channel=self.name, error=str(error))
            # A message that has only sources and buttons has its title as text.
            plain = _plain(blocks) or text
            await self._calls.update(channel, id_, plain, [], is_draft=is_draft)

    async def delete(self, post: Mapping[str, str], id_: str) -> None:
        await self._calls.delete(post["channel"], id_)


def messages(
    markdown: str,
    sources: Sequence[Source],
    buttons: Sequence[Button],
    *,
    title: str,
    more: str = "",
) -> list[Fields]:
    """Return the messages for an answer, each with `text` and `blocks`.

    `more` is text that Slack collapses if it is long; the text before it is then never collapsed.
    """
    parts = [(piece, bool(more)) for piece in _split(markdown, sources)]
    parts += [(piece, False) for piece in _split(more, sources)] if more else []
    groups: list[list[_Part]] = []
    for part in parts:
        if groups and _fits([*groups[-1], part]):
            groups[-1].append(part)
        else:
            groups.append([part])
    below: list[Fields] = [*_sources(sources, title), *_actions(buttons)]
    if below and _measure_json([*map(_section, groups[-1]), *below]) > ALL_CHARACTERS:
        groups.append([])
    return [
        _message(group, below if number == len(groups) else [], title)
        for number, group in enumerate(groups, 1)
    ]


def without_actions(blocks: Sequence[Fields], chosen: str) -> list[Fields]:
    """Return the blocks with the buttons replaced by the chosen option."""
    kept = [block for block in blocks if block.get("type") != "actions"]
    return [*kept, _context([f"➜ {escape(chosen)[:SOURCE_CHARACTERS]}"])]


def mrkdwn(piece: Marked) -> str:
    """Return a marked text as mrkdwn."""
    marks = list(_shallow([mark for mark in piece.marks if _is_shown(piece.text, mark)]))
    written, _ = _write_stretch(piece, (0, len(piece.text)), marks, 0)
    return written


def escape(text: str) -> str:
    """Return a text escaped so that Slack shows it unchanged."""
    return text.translate(_ESCAPES)


def mentions(text: str, user_id: str) -> bool:
    """Return whether a message mentions this user."""
    return user_id in _MENTION.findall(text)


def speaks_to_another(text: str, user_id: str) -> bool:
    """Return whether a message begins with a mention of another user and does not mention this
    user.
    """
    return bool(_MENTION.match(text.lstrip())) and not mentions(text, user_id)


def parse_text(text: str, *, without: str) -> str:
    """Return a message as plain text, without mentions of the user `without`."""
    own = re.compile(rf"<@{re.escape(without)}(?:\|[^<>]*)?>[,:]?")
    plain = _REFERENCE.sub(_name_target, own.sub("", text))
    unescaped = plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return _SPACES.sub(" ", unescaped).strip()


async def show_choice(
    calls: SlackCalls, channel: str, message: Mapping[str, Any], chosen: str
) -> None:
    """Replace the options of a message with the chosen one."""
    blocks = without_actions(message.get("blocks") or [], chosen)
    await calls.update(channel, str(message["ts"]), str(message.get("text") or ""), blocks)


def _fits(group: Sequence[_Part]) -> bool:
    """Return whether these parts fit into one message, as blocks and as text."""
    blocks = list(map(_section, group))
    return _measure_json(blocks) <= ALL_CHARACTERS and len(_plain(blocks).encode()) <= TEXT_BYTES


def _split(markdown: str, sources: Sequence[Source]) -> list[Marked]:
    return split(
        _with_signs_as_code(keep_source_links(parse_marked(markdown), sources)),
        longest=SECTION_CHARACTERS,
        measure=lambda piece: _measure_section(mrkdwn(piece)),
    )


def _with_signs_as_code(text: Marked) -> Marked:
    """Return a text in which words that Slack would read as formatting or emojis are code, because
    Slack has no escapes.
    """
    signs = [sign.start() for sign in _READ_AS_FORMAT.finditer(text.text)]
    borders = sorted({place for mark in text.marks for place in (mark.start, mark.end)})
    settled: list[Mark] = []
    for mark in text.marks:
        if mark.kind in {"code", "pre", "link"} and (not settled or settled[-1].end <= mark.start):
            settled.append(mark)
    ends = [mark.end for mark in settled]
    marks = list(text.marks)
    for word in _WORD.finditer(text.text):
        first, last = bisect_right(borders, word.start()), bisect_left(borders, word.end())
        for start, end in pairwise((word.start(), *borders[first:last], word.end())):
            place = bisect_right(ends, start)
            is_settled = place < len(settled) and settled[place].start <= start
            if not is_settled and bisect_left(signs, start) < bisect_left(signs, end):
                marks.append(Mark(start, end, "code"))
    return Marked(text.text, tuple(sorted(marks, key=lambda mark: (mark.start, -mark.end))))


def _measure_section(text: str) -> int:
    """Return the length in characters or, if the text is closer to the limit in bytes, the
    equivalent number of characters.
    """
    return max(len(text), math.ceil(len(text.encode()) * SECTION_CHARACTERS / TEXT_BYTES))


def _message(group: Sequence[_Part], below: Sequence[Fields], title: str) -> Fields:
    blocks: list[JsonValue] = [*map(_section, group), *below]
    text = "\n".join(piece.text for piece, _ in group) if group else title
    return {"text": escape(text), "blocks": blocks}


def _section(part: _Part) -> Fields:
    piece, is_expanded = part
    section: Fields = {"type": "section", "text": _mrkdwn(mrkdwn(piece))}
    return {**section, "expand": True} if is_expanded else section


def _mrkdwn(text: str) -> Fields:
    """Return a text object in which Slack does not turn plain URLs into links."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _sources(sources: Sequence[Source], title: str) -> list[Fields]:
    if not sources:
        return []
    lines = [f"*{escape(title)}*"]
    places = [
        f"{INDENT if line.is_nested else ''}{line.numbers} {_place(line.source, line.name)}"
        if line.numbers
        else _write_plain(plain_title(line.name)[:SOURCE_CHARACTERS])
        for line in list_source_lines(sources)
    ]
    shown = 0
    for line in places[:SOURCES]:
        if _measure_json([_context([*lines, line])]) > SOURCES_CHARACTERS:
            break
        lines.append(line)
        shown += 1
    if shown < len(places):
        lines.append(f"… (+{len(places) - shown})")
    return [
        _context(lines[first : first + CONTEXT_ELEMENTS])
        for first in range(0, len(lines), CONTEXT_ELEMENTS)
    ]


def _measure_json(blocks: Sequence[Fields]) -> int:
    return len(json.dumps(blocks, ensure_ascii=False))


def _place(source: Source, name: str) -> str:
    """Return a link to a source, labelled with a name; without a URL, the name and the location."""
    name = plain_title(name)
    shown = escape(name[:SOURCE_CHARACTERS]).replace("|", "¦")
    place = source.place
    if place.startswith(("https://", "http://")) and len(place) <= LINK_CHARACTERS:
        address = place.replace("|", "%7C").replace(">", "%3E").replace("&", "&amp;")
        return f"<{address}|{shown}>"
    where = f" ({place[:SOURCE_CHARACTERS]})" if place else ""
    return _write_plain(f"{name[:SOURCE_CHARACTERS]}{where}")


def _write_plain(text: str) -> str:
    """Return a plain text as mrkdwn, with words that Slack would format as code."""
    return mrkdwn(_with_signs_as_code(Marked(text)))


def _context(lines: Sequence[str]) -> Fields:
    elements: list[JsonValue] = [_mrkdwn(line) for line in lines]
    return {"type": "context", "elements": elements}


def _actions(buttons: Sequence[Button]) -> list[Fields]:
    made: list[Fields] = []
    for number, button in enumerate(buttons[:MOST_BUTTONS]):
        one = _button(number, button)
        if (
            len(button.url or "") <= LINK_CHARACTERS
            and _measure_json([*made, one]) <= SOURCES_CHARACTERS
        ):
            made.append(one)
    return [
        {"type": "actions", "elements": [*made[first : first + ROW]]}
        for first in range(0, len(made), ROW)
    ]


def _button(number: int, button: Button) -> Fields:
    label = RATING_LABELS.get(button.kind, button.label)
    if len(label) > LABEL_CHARACTERS:
        label = f"{label[: LABEL_CHARACTERS - 1]}…"
    text: Fields = {"type": "plain_text", "text": label, "emoji": True}
    if button.url is not None:
        return {
            "type": "button",
            "text": text,
            "action_id": f"{OPEN}{number}",
            "url": button.url,
        }
    made: Fields = {
        "type": "button",
        "text": text,
        "action_id": f"{CHOOSE}{button.token}",
        "value": button.token,
    }
    if button.kind in RATING_LABELS:
        made["accessibility_label"] = button.kind
    return made


def _shallow(marks: Sequence[Mark]) -> Iterator[Mark]:
    ends: list[int] = []
    for mark in marks:
        while ends and ends[-1] <= mark.start:
            ends.pop()
        if len(ends) < _DEEPEST:
            ends.append(mark.end)
            yield mark


def _write_stretch(
    piece: Marked, stretch: tuple[int, int], marks: Sequence[Mark], at: int
) -> tuple[str, int]:
    """Render a range: text without marks unchanged, and each outermost mark around its text.

    Returns the result, and the index in `marks` of the first mark after the range; `at` is the
    index of the first mark in it.
    """
    place, end = stretch
    written: list[str] = []
    while at < len(marks) and marks[at].start < end:
        outer = marks[at]
        written.append(escape(piece.text[place : outer.start]))
        inner, at = _write_stretch(piece, (outer.start, outer.end), marks, at + 1)
        if outer.kind in {"code", "pre"}:
            inner = escape(piece.text[outer.start : outer.end])
        written.append(_around(outer)(inner))
        place = outer.end
    return "".join((*written, escape(piece.text[place:end]))), at


def _around(mark: Mark) -> Callable[[str], str]:
    match mark.kind:
        case "link":
            address = mark.detail.translate({ord("|"): "%7C", ord("<"): "%3C", ord(">"): "%3E"})
            return lambda text: f"<{address.replace('&', '&amp;')}|{text.replace(chr(10), ' ')}>"
        case "quote":
            return lambda text: "\n".join(f"> {line}" for line in text.split("\n"))
        case "pre":
            return lambda text: f"```\n{text.replace('```', '` ` `')}\n```"
        case kind:
            return lambda text: _wrap_lines(text, _SIGNS[kind])


def _wrap_lines(text: str, sign: str) -> str:
    """Put formatting characters around the text of each line; Slack requires that they are adjacent
    to the text.
    """
    lines = []
    for line in text.split("\n"):
        words = line.strip()
        before, after = line[: len(line) - len(line.lstrip())], line[len(line.rstrip()) :]
        lines.append(f"{before}{sign}{words}{sign}{after}" if words and line.strip() else line)
    return "\n".join(lines)


def _is_shown(text: str, mark: Mark) -> bool:
    if mark.kind == "link":
        return mark.detail.startswith(("https://", "http://"))
    if mark.kind in {"bold", "italic"}:
        # Slack shows the signs themselves inside words.
        sides = text[max(0, mark.start - 1) : mark.start] + text[mark.end : mark.end + 1]
        return mark.end > mark.start and not any(map(_JOINED.match, sides))
    return mark.end > mark.start


def _name_target(match: re.Match[str]) -> str:
    target, label = match[1], match[2]
    if target.startswith("!"):
        return label or ""
    if label:
        return f"#{label}" if target.startswith("#") else label
    return target.removeprefix("mailto:")


def _plain(blocks: Sequence[Mapping[str, Any]]) -> str:
    return "\n\n".join(block["text"]["text"] for block in blocks if block["type"] == "section")
