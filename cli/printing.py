"""Formats replies as plain text of 80 columns, as Markdown, or as JSON.

The only control characters in the output are tabs and line breaks, so that no escape sequence or
hidden link reaches the terminal.
"""

import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby, zip_longest
from operator import itemgetter

from pydantic import JsonValue

from citations.blocks import split_row
from citations.links import clean_text
from citations.marking import hide_escapes, hide_signs, show_escapes
from citations.verbatim import as_markdown
from cli.workflow_commands import OLD_COMMAND
from config.texts import load_texts
from envelope.json_values import read_objects
from envelope.sources import TOOL_SOURCE
from gateway.answer import Source, SourceLine, list_source_lines, safe_reply

_RULE = re.compile(r"\|?[\s:|-]+\|?")
_LEAST_LINES = 3
"""The minimum number of lines of a table: a header, a separator, and one row."""
WIDTH = 80
_BOLD, _ITALIC, _PLAIN = "\x1b[1m", "\x1b[3m", "\x1b[0m"
ERASE_LINE = "\r\x1b[2K"
"""Erases the current line; only progress displays on a terminal use it."""
Fields = Mapping[str, JsonValue]
_LIST_ITEM = re.compile(r"\s*(?:[-*+]\s+|\d{1,3}[.)]\s+)?")
_INLINE_CODE = r"``[^\n]+?``|`[^`\n]+`"
_WORD = re.compile(rf"(?:{_INLINE_CODE}|\S)+")
# Numbers and Latin names stay on one line.
_SIGN = re.compile(rf"{_INLINE_CODE}|[!-~]+|[\uff10-\uff19][\uff0c\uff0e\uff10-\uff19]*|.")
_NO_WIDTH = frozenset({"Mn", "Me", "Cf"})
_EMPHASIS = re.compile(
    rf"{_INLINE_CODE}"
    r"|\*\*(?=\S)(?P<bold>(?:`[^`\n]{1,200}`|[^*`\n]|\n(?!\n)){1,300})(?<=\S)\*\*"
    # The signs in paths such as /_static_/ are no emphasis.
    r"|(?<![\w*/])\*(?=\S)(?P<star>(?:`[^`\n]{1,200}`|[^*`\n]|\n(?!\n)){1,300})(?<=\S)\*(?![\w*/])"
    r"|(?<![\w/.:-])_(?=\S)(?P<line>(?:`[^`\n]{1,200}`|[^_`\n]|\n(?!\n)){1,300})(?<=\S)_(?![\w/-])"
)
_BLOCK_MARKS = frozenset(">-+*")
_WIDE_SHARE = 1.3
_CLOSING = "。、，．！？）」』】"


def columns(text: str) -> int:
    """Return the number of terminal columns of the text, ignoring the marks of emphasis."""
    return sum(
        0
        if unicodedata.category(sign) in _NO_WIDTH
        else 1 + (unicodedata.east_asian_width(sign) in "WF")
        for sign in _EMPHASIS.sub(_remove_signs, text)
    )


def cut_line(line: str, width: int = WIDTH, end: str = "…") -> str:
    """Return a line of at most `width` columns, with `end` in place of what does not fit."""
    if columns(line) <= width:
        return line
    while columns(line) > width - len(end):
        line = line[:-1]
    return f"{line}{end}"


def lay_out_tables(lines: Sequence[str], width: int) -> Iterator[str]:
    """Yield the lines of a text, with each table that is wider than `width` converted to a list."""
    for is_row, part in groupby(lines, key=lambda line: line.lstrip().startswith("|")):
        own = list(part)
        yield from _lay_out(own, width) if is_row and _is_table(own) else own


def print_line(text: str = "") -> None:
    """Write one line to standard output."""
    sys.stdout.write(f"{clean_text(show_escapes(text))}\n")


def print_reply(reply: Fields, *, as_markdown: bool = False) -> None:
    """Write a reply as text for a person, or as Markdown for a program that renders it."""
    if as_markdown:
        for line in _markdown_lines(reply):
            print_line(line)
    else:
        write_lines(reply_lines(reply))


def write_lines(lines: Iterable[str]) -> None:
    """Write lines of Markdown as text. Emphasised words are shown in bold or italics on a terminal,
    and without marks elsewhere. The content of code fences is not changed.
    """

    def show(found: re.Match[str]) -> str:
        text = _remove_signs(found)
        if text == found[0] or not sys.stdout.isatty():
            return text
        # Our own escape sequences: `clean_text` removes those of documents.
        return f"{_BOLD if found['bold'] else _ITALIC}{text}{_PLAIN}"

    for is_fence, part in groupby(_mark_fences(map(clean_text, lines)), key=itemgetter(0)):
        text = "\n".join(line for _, line in part)
        sys.stdout.write(f"{show_escapes(text if is_fence else _EMPHASIS.sub(show, text))}\n")


def say_json(value: object) -> None:
    """Write a value as a JSON document."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    # Equivalent JSON without commands for a CI runner; see `cli.workflow_commands`.
    print_line(text.replace(OLD_COMMAND, "\\u0023#["))


def reply_lines(reply: Fields) -> list[str]:
    """Return a reply as human-readable lines: text, options, numbered sources, and language."""
    safe, _ = safe_reply(reply)
    lines = wrap(_add_places(safe))
    lines += map(hide_escapes, _options(safe))
    lines += map(hide_signs, _sources(safe))
    lines += ["", *_describe_end(safe), _foot(safe)]
    return lines


def list_operator_notes(reply: Fields, index_location: str) -> list[str]:
    """Return the notes below a reply that are intended only for the person at the terminal, not for
    a website visitor.
    """
    triage = reply.get("triage")
    is_planned = isinstance(triage, dict) and bool(triage.get("agent_sequence"))
    if is_planned and reply.get("answered_by") == "search" and reply.get("way") != "specialists":
        return [
            "refdesk: no model is in use, so the documents in the question were searched, not "
            "reviewed; see `refdesk review --help`"
        ]
    if reply.get("clarification_reason") != "no_documents":
        return []
    return [f"refdesk: there are no documents in {index_location} that this question may use"]


def wrap(text: str, width: int = WIDTH) -> list[str]:
    """Wrap prose at `width` columns. Code fences keep their lines, and tables are aligned or
    converted to lists. Escaped characters are hidden until they are printed; see
    `citations.marking.hide_escapes`.
    """
    lines: list[str] = []
    fenced = False
    for line in _list_tables(hide_escapes(text).splitlines(), width):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if fenced or columns(line) <= width or line.lstrip().startswith(("|", "```")):
            lines.append(line)
            continue
        lines += _fold_line(line, width)
    return lines


def choices(reply: Fields) -> list[Fields]:
    """Return the options in the order of their displayed numbers."""
    return [action for action in _actions(reply) if action.get("kind") != "source"]


def _remove_signs(found: re.Match[str]) -> str:
    return found["bold"] or found["star"] or found["line"] or found[0]


def _markdown_lines(reply: Fields) -> list[str]:
    """Return a reply as lines of Markdown, which are not wrapped."""
    safe, _ = safe_reply(reply)
    lines = [*_add_places(safe).split("\n"), *_options(safe)]
    lines += _title_of_sources(safe)
    for line, place in _list_lines(safe):
        name = as_markdown(line.name)
        if line.is_nested:
            lines.append(f"  - {line.numbers} {name}{_anchor(line.source)}")
        else:
            lines.append(f"- {f'{line.numbers} {name}'.lstrip()}: {place}")
    return [*lines, "", *_describe_end(safe), _foot(safe)]


def _is_table(lines: Sequence[str]) -> bool:
    return len(lines) >= _LEAST_LINES and bool(_RULE.fullmatch(lines[1].strip()))


def _lay_out(table: Sequence[str], width: int) -> Iterator[str]:
    aligned = [*_align_cells([_split(line) for line in table])]
    yield from _list_cells(table) if columns(aligned[0]) > width else aligned


def _align_cells(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows with each column as wide as its widest cell; the second row is the
    separator.
    """
    named = [row for number, row in enumerate(rows) if number != 1]
    widths = [max(map(columns, cells)) for cells in zip_longest(*named, fillvalue="")]
    for number, row in enumerate(rows):
        filled = [*row[: len(widths)], *[""] * (len(widths) - len(row))]
        cells = [
            "-" * wide if number == 1 else cell + " " * (wide - columns(cell))
            for cell, wide in zip(filled, widths, strict=True)
        ]
        yield f"| {' | '.join(cells)} |"


def _list_cells(table: Sequence[str]) -> Iterator[str]:
    first, *names = _split(table[0])
    for number, line in enumerate(table[2:]):
        name, *cells = _split(line)
        if number:
            yield ""
        yield f"{first}: {name}" if first and name else name
        for column, cell in zip_longest(names[: len(cells)], cells, fillvalue=""):
            if cell:
                yield f"- {column}: {cell}" if column else f"- {cell}"


def _split(line: str) -> list[str]:
    return [cell.replace("\\|", "|") for cell in split_row(line)]


def _list_tables(lines: Sequence[str], width: int) -> list[str]:
    """Return the lines of a text with tables laid out; code fences are unchanged."""
    listed: list[str] = []
    for is_fence, part in groupby(_mark_fences(lines), key=itemgetter(0)):
        own = [line for _, line in part]
        listed += own if is_fence else lay_out_tables(own, width)
    return listed


def _mark_fences(lines: Iterable[str]) -> Iterator[tuple[bool, str]]:
    fenced = False
    for line in lines:
        is_mark = line.lstrip().startswith("```")
        yield fenced or is_mark, line
        fenced = fenced != is_mark


def _fold_line(line: str, width: int) -> list[str]:
    """Break one line between words or, in scripts without spaces, whose characters are wide, at any
    character. Inline code stays on one line, even if it is wider than `width`, because people copy
    it. A mark such as the `>` of a menu path stays behind its word: at the beginning of a line, it
    would start a quotation or a list.
    """
    if columns(line) > len(line) * _WIDE_SHARE:
        return _cut(line, width)
    opening = _LIST_ITEM.match(line)
    start = opening[0] if opening else ""
    folded, taken = [start], columns(start)
    words: list[str] = []
    for word in _WORD.findall(line[len(start) :]):
        if words and word in _BLOCK_MARKS:
            words[-1] += f" {word}"
        else:
            words.append(word)
    for word in words:
        wide = columns(word)
        if taken + wide > width and taken > len(start):
            folded.append(" " * len(start))
            taken = len(start)
        folded[-1] += f"{word} "
        taken += wide + 1
    return [line.rstrip() for line in folded]


def _cut(line: str, width: int) -> list[str]:
    lines, taken = [""], 0
    for sign in _SIGN.findall(line):
        wide = columns(sign)
        # A closing mark may exceed the width by one character, so that it does not begin a line.
        if taken + wide > width and sign not in _CLOSING:
            lines.append("")
            taken = 0
        lines[-1] += sign
        taken += wide
    return [cut.strip() for cut in lines]


def _actions(reply: Fields) -> list[Fields]:
    return [*read_objects(reply.get("suggested_actions"))]


def _options(reply: Fields) -> list[str]:
    """Return the options with their numbers as Markdown, except those that the text itself
    lists.
    """
    listed = {line.strip() for line in str(reply.get("text") or "").splitlines()}
    labels = (as_markdown(str(action.get("label"))) for action in choices(reply))
    numbered = [f"{number}. {label}" for number, label in enumerate(labels, 1)]
    lines = [line for line in numbered if line not in listed]
    lines += [named for plain, named in _pages(reply).items() if plain not in listed]
    if lines and len(lines) == len(numbered):
        lines.insert(0, "")
    return lines


def _pages(reply: Fields) -> dict[str, str]:
    """Map each of the closest pages, as listed in the text, to the same line with its location."""
    pages = (action for action in _actions(reply) if action.get("kind") == "source")
    return {
        label: f"{label}  {page.get('link') or page.get('url') or page.get('path') or ''}".rstrip()
        for page in pages
        for label in [f"- {as_markdown(str(page.get('label')))}"]
    }


def _add_places(reply: Fields) -> str:
    """Return the text of a reply with the locations of the pages that it lists."""
    pages = _pages(reply)
    return "\n".join(pages.get(line, line) for line in str(reply["text"]).split("\n"))


def _sources(reply: Fields) -> list[str]:
    """Return the cited pages with their sections, without duplicates."""
    lines = _title_of_sources(reply)
    for line, place in _list_lines(reply):
        if line.is_nested:
            lines.append(f"    {line.numbers} {line.name}{_anchor(line.source)}")
        else:
            lines += [f"  {f'{line.numbers} {line.name}'.lstrip()}", f"      {place}"]
    return lines


def _title_of_sources(reply: Fields) -> list[str]:
    if not reply.get("sources"):
        return []
    return ["", load_texts().text("push_sources", _find_language(reply))]


def _list_lines(reply: Fields) -> Iterator[tuple[SourceLine, str]]:
    """Yield each line of the list of sources, with the URL or path of its section or page."""
    sources = map(Source.model_validate, read_objects(reply.get("sources")))
    for line in list_source_lines(sources, separator=" > "):
        where = line.source.place or line.source.chunk_id or ""
        if where.startswith(TOOL_SOURCE):
            where = load_texts().text("tool_result", _find_language(reply))
        yield line, where if line.numbers else where.partition("#")[0]


def _anchor(source: Source) -> str:
    return f" (#{source.anchor})" if source.anchor else ""


def _describe_end(reply: Fields) -> list[str]:
    """Return the expiry of a pause, in local time."""
    pause = reply.get("pause")
    expires = pause.get("expires") if isinstance(pause, dict) else None
    if not isinstance(expires, int | float):
        return []
    time = f"{datetime.fromtimestamp(expires).astimezone():%Y-%m-%d %H:%M %Z}"
    return [f"({load_texts().text('status_open', _find_language(reply), time=time)})"]


def _foot(reply: Fields) -> str:
    """Return the footer, which states how the question ended, in the language of the answer."""

    def say(key: str, **values: object) -> str:
        shown = {name: str(value) for name, value in values.items()}
        return load_texts().text(f"status_{key}", _find_language(reply), **shown)

    parts = [say(str(reply.get("outcome"))), say("language", code=reply.get("language"))]
    if model := reply.get("model"):
        parts.append(str(model))
    if reply.get("answered_by") == "search":
        parts.append(say("search"))
    if reason := reply.get("termination_reason"):
        parts.append(say("ended", reason=reason))
    return f"({', '.join(parts)}; {say('message', message=reply.get('message_id'))})"


def _find_language(reply: Fields) -> str:
    return str(reply.get("language") or "en")
