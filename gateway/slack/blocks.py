"""Renders answers as Slack messages: blocks within the limits of the API.

The limits are 3,000 characters per section, 75 per button label, 50 blocks per message, and about
13,200 characters in all blocks of one message, which Slack enforces without documenting it.
"""

import json
from collections.abc import Sequence

from pydantic import JsonValue

from broker.values import Fields
from gateway.answer import Source
from gateway.chat.formatting.marked_text import Marked, keep_source_links, parse_marked, plain_title
from gateway.chat.formatting.splitting import split
from gateway.chat.ports import Button
from gateway.slack.mrkdwn import escape, mrkdwn

SECTION_CHARACTERS = 2_900
ALL_CHARACTERS = 12_500
"""The maximum length of all blocks of one message, as encoded for the request."""
FALLBACK_CHARACTERS = 3_000
"""The maximum length of the plain text for notifications."""
SOURCES = 20
SOURCES_CHARACTERS = 6_000
"""The maximum encoded length of all sources, and of all buttons, so that both fit one message."""
SOURCE_CHARACTERS = 150
CONTEXT_ELEMENTS = 10
LABEL_CHARACTERS = 75
ROW = 5
MOST_BUTTONS = 20
LINK_CHARACTERS = 1_000
"""A source's longer address is omitted."""
RATING_LABELS = {"up": "👍", "down": "👎"}
CHOOSE = "choose:"
_Part = tuple[Marked, bool]
"""A piece of a text, and whether Slack must show it whole."""
OPEN = "open:"


def messages(
    markdown: str,
    sources: Sequence[Source],
    buttons: Sequence[Button],
    *,
    title: str,
    more: str = "",
) -> list[Fields]:
    """Return the messages for an answer, each with `text` and `blocks`.

    `more` is a text that Slack folds where it is long; the text before it is then never folded.
    """
    parts = [(piece, bool(more)) for piece in _split(markdown, sources)]
    parts += [(piece, False) for piece in _split(more, sources)] if more else []
    groups: list[list[_Part]] = []
    for part in parts:
        if groups and _measure_json(list(map(_section, [*groups[-1], part]))) <= ALL_CHARACTERS:
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


def _split(markdown: str, sources: Sequence[Source]) -> list[Marked]:
    return split(
        keep_source_links(parse_marked(markdown), sources),
        longest=SECTION_CHARACTERS,
        measure=lambda piece: len(mrkdwn(piece)),
    )


def without_actions(blocks: Sequence[Fields], chosen: str) -> list[Fields]:
    """Return the blocks with the chosen option in place of the buttons."""
    kept = [block for block in blocks if block.get("type") != "actions"]
    return [*kept, _context([f"➜ {escape(chosen)[:SOURCE_CHARACTERS]}"])]


def _message(group: Sequence[_Part], below: Sequence[Fields], title: str) -> Fields:
    blocks: list[JsonValue] = [*map(_section, group), *below]
    text = "\n".join(piece.text for piece, _ in group)[:FALLBACK_CHARACTERS] if group else title
    return {"text": escape(text), "blocks": blocks}


def _section(part: _Part) -> Fields:
    piece, is_expanded = part
    section: Fields = {"type": "section", "text": _mrkdwn(mrkdwn(piece))}
    return {**section, "expand": True} if is_expanded else section


def _mrkdwn(text: str) -> Fields:
    """Return a text object in which Slack creates no links from plain addresses."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _sources(sources: Sequence[Source], title: str) -> list[Fields]:
    if not sources:
        return []
    lines = [f"*{escape(title)}*"]
    for source in sources[:SOURCES]:
        line = _source(source)
        if _measure_json([_context([*lines, line])]) > SOURCES_CHARACTERS:
            break
        lines.append(line)
    return [
        _context(lines[first : first + CONTEXT_ELEMENTS])
        for first in range(0, len(lines), CONTEXT_ELEMENTS)
    ]


def _measure_json(blocks: Sequence[Fields]) -> int:
    return len(json.dumps(blocks, ensure_ascii=False))


def _source(source: Source) -> str:
    name = plain_title(" › ".join(dict.fromkeys((source.title, *source.heading_path))))
    shown = escape(name[:SOURCE_CHARACTERS]).replace("|", "¦")
    place = source.place
    if place.startswith(("https://", "http://")) and len(place) <= LINK_CHARACTERS:
        address = place.replace("|", "%7C").replace(">", "%3E").replace("&", "&amp;")
        return f"[{source.number}] <{address}|{shown}>"
    where = f" ({escape(place[:SOURCE_CHARACTERS])})" if place else ""
    return f"[{source.number}] {shown}{where}"


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
