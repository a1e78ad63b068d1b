"""Puts replies into words for a terminal of 80 columns, or into JSON for a machine."""

import json
import sys
import textwrap
from collections.abc import Mapping

from pydantic import JsonValue

WIDTH = 80
Fields = Mapping[str, JsonValue]


def say(text: str = "") -> None:
    """Write one line to standard output."""
    sys.stdout.write(f"{text}\n")


def say_json(value: object) -> None:
    """Write a value as one JSON document."""
    say(json.dumps(value, ensure_ascii=False, indent=2))


def reply_lines(reply: Fields) -> list[str]:
    """Return a reply as a person reads it: text, options, numbered sources, language."""
    lines = wrapped(str(reply.get("text") or ""))
    lines += _options(reply)
    lines += _sources(reply)
    lines += ["", _foot(reply)]
    return lines


def wrapped(text: str, width: int = WIDTH) -> list[str]:
    """Wrap prose at `width` columns; code fences, tables and lists keep their lines."""
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if fenced or len(line) <= width or line.lstrip().startswith(("|", "```")):
            lines.append(line)
            continue
        indent = " " * (len(line) - len(line.lstrip()) + 2 * line.lstrip().startswith(("-", "*")))
        lines += textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False)
    return lines


def place(source: Fields) -> str:
    """Return where a source stands: URL, or path, with its anchor."""
    where = source.get("url") or source.get("path") or source.get("chunk_id")
    anchor = source.get("anchor")
    fragment = f"#{anchor}" if anchor and "#" not in str(where) else ""
    return f"{where}{fragment}"


def heading(source: Fields) -> str:
    """Return the title of a source's page and the headings above the cited place."""
    path = source.get("heading_path")
    headings = [str(part) for part in path] if isinstance(path, list) else []
    title = str(source.get("title") or "")
    return " > ".join([title, *(part for part in headings if part != title)])


def _options(reply: Fields) -> list[str]:
    actions = reply.get("suggested_actions")
    shown = [action for action in actions if isinstance(action, dict)] if actions else []  # type: ignore[union-attr] # a list whenever it is not empty
    if not shown:
        return []
    lines = [""]
    number = 0
    for action in shown:
        if action.get("kind") == "option":
            number += 1
            lines.append(f"  {number}. {action.get('label')}")
        elif action.get("kind") == "source":
            lines.append(f"  -> {action.get('label')}  {action.get('url') or ''}".rstrip())
        else:
            lines.append(f"  ({action.get('label')})")
    return lines


def _sources(reply: Fields) -> list[str]:
    sources = reply.get("sources")
    if not isinstance(sources, list) or not sources:
        return []
    lines = ["", "Sources"]
    for source in sources:
        if isinstance(source, dict):
            lines += [f"  [{source.get('number')}] {heading(source)}", f"      {place(source)}"]
    return lines


def _foot(reply: Fields) -> str:
    model = reply.get("model")
    parts = [str(reply.get("outcome")), f"language {reply.get('language')}"]
    if model:
        parts.append("offline rules" if model == "offline" else str(model))
    if reply.get("termination_reason"):
        parts.append(f"ended early: {reply['termination_reason']}")
    return f"({', '.join(parts)}; message {reply.get('message_id')})"
