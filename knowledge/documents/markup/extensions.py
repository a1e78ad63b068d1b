"""Rewrites the extensions of documentation generators and note-taking programs as CommonMark and
HTML, line by line: notes, tabs, containers, components, shortcodes, footnotes and comments.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from knowledge.documents.markup.fences import Fences, mark_code, take_options
from knowledge.documents.page import LeftOut, LeftOutCounts

_DEEPEST_COMPONENT = 40
FOOTNOTE_MARK = re.compile(r"\[\^([^\[\]\s]{1,60})\]")
_BOX_IN_QUOTE = re.compile(
    r"([ \t]{0,40}(?:>[ \t]?){1,20})\[!([\w-]{1,40})(?:\|[^\[\]]{0,60})?\][+-]?(.*)\Z"
)
_COMMENT = re.compile(r"(?<!\S)%%(?:\S(?:[^%\n]{0,300}\S)?%%(?!\w)|[^%\n]{1,300}%%\s*\Z)")
_LONG_FENCE = "``````"
_CONTAINER = re.compile(
    r"(?P<indent>[ \t]{0,40})(?::{3,20}|/{3,4})[ \t]{0,9}"
    r"(?:(?P<name>[\w:.+-]{1,60})|\{(?P<directive>[\w:+-]{1,60})\})?"
    r"(?:[ \t]{0,9}\[(?P<label>[^\[\]]{1,200})\])?(?:[ \t]{0,9}\{(?P<attributes>[^{}]{1,300})\})?"
    r"(?:[ \t]{1,9}(?:\|[ \t]{0,9})?(?P<title>.{1,300}))?\Z"
)
_CALLOUT = re.compile(r"\.callout-(\w{1,20})")
_CONTENTS = re.compile(
    r"[ \t]{0,3}(?:\[TOC\]|\[\[_?TOC_?\]\]|\[\[toc\]\])[ \t]{0,9}\Z", re.IGNORECASE
)
_TARGET = re.compile(r"\([\w.:-]{1,100}\)=[ \t]*\Z")
# The branches of a condition of Liquid or Jinja stay apart.
_SHORTCODE = re.compile(
    r"\{\{[<%][^{}]{0,500}[>%]\}\}"
    r"|\{%(?![-\s]*(?:end)?(?:if|els|unless|case|when))[^{}%]{0,500}%\}"
)
_UNSEEN = "comments are not shown to readers of the page"
_GENERATED = "generated only when the website is built"
_SHORTCODE_LABEL = re.compile(
    r"\A\W{0,9}(?!tabs\s)\w[^{}]{0,300}?\b"
    r"(?:name|title|label|header|tabName|summary|caption)=\"([^\"]{1,200})\""
    r"|\A\W{0,9}(?:tab|tabitem|tab-item)\s{1,9}\"([^\"]{1,200})\""
    # A text of several words is no setting or address.
    r"|\A\W{0,9}[\w-]{1,40}(?:\s{1,9}[\w-]{1,40}){0,3}\s{1,9}\"([^\"/\s]{1,60}\s[^\"]{1,200})\"",
    re.IGNORECASE,
)
_COMMENT_TAG = re.compile(
    r"\{(?:\{[<%]|%-?|:{1,2})\s{0,9}(/|end)?comment\s{0,9}(?:[>%]\}|-?%)?\}|\{:(/)\}"
)
_HIGHLIGHT = re.compile(
    r"\s*\{[{%][<%]?-?\s*(/?(?:end)?)highlight(?:\s+([\w+#-]{1,30}))?[^{}]{0,200}[>%]?[%}]\}\s*\Z"
)
_VALUE = re.compile(r"\{\{[<%]\s{0,9}([\w/-]{1,60})[^{}]{0,500}[>%]\}\}")
_LONGEST_INDENT = 3
_JSX_NUMBER = re.compile(r"\b(rowspan|colspan)=\{(\d{1,4})\}", re.IGNORECASE)
_JSX_STYLE = re.compile(r"\bstyle=\{\{([^{}\n]{0,500})\}\}")
_FOOTNOTE = re.compile(r"[ \t]{0,3}\[\^([^\[\]]{1,60})\]:(?:[ \t]{1,9}|\Z)")
_FOOTNOTE_INDENT = 4
_SPAN = re.compile(r"(?<!`)(`{1,9})(?!`).{1,2000}?(?<!`)\1(?!`)")
_ABBREVIATION = re.compile(r"[ \t]{0,3}\*\[([^\[\]]{1,60})\]:[ \t]{1,9}")
_NUMBER = re.compile(r"[\d ]{1,9}\Z")
_MODULE = re.compile(
    r"import\s(?:['\"]|[\w*${},\s]{1,200}\sfrom\s{0,9}['\"]|\{\s{0,9}\Z)"
    r"|export\s(?:(?:const|let|var)\s[\w${},:<>\s\[\]]{1,200}=|(?:async\s)?function[\s*]{1,3}\w{0,60}\("
    r"|default\s(?:function|class|async|[({]|[\w.]{1,60}(?:\(|;?\s{0,9}\Z)))"
)
_NOTE = re.compile(
    r"[ \t]{0,80}(?:!!!|\?\?\?\+?|===[!+]?)[ \t]{0,9}([\w-]{0,40})[\w \t-]{0,60}"
    r"(?:\"(.{0,300})\")?[ \t]{0,9}\Z"
)
ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_COMPONENT_LINE = re.compile(r"\s*<(/?)[A-Z][\w.]*(?:\s[^<>]{0,2000})?/?>\s*\Z")
_BEGUN_COMPONENT = re.compile(r"\s*<[A-Z][\w.]{0,60}(?:\s[^<>]{0,2000})?\Z")
_OPENING = re.compile(r"\s*<[A-Z][\w.]{0,60}(?:\s[^<>]{0,2000})?(?<!/)>")
_CLOSING = re.compile(r"(.*\S)\s*(</[A-Z][\w.]{0,60}>)\s*\Z")
_MOST_LINES_OF_TAG = 30
_EXPRESSION = re.compile(r"\s[\w-]{1,60}=\{[^{}]{0,500}\}")
_ATTRIBUTE_VALUE = r"=\{?(?:\"([^\"]{1,500})\"|'([^']{1,500})')\}?"
_CAPTION = re.compile(
    rf"(?<![\w-])(title|label|summary|caption|text|description){_ATTRIBUTE_VALUE}"
)
_TAB_VALUE = re.compile(rf"<Tab(?:Item)?\s[^<>]{{0,500}}?(?<![\w-])(value){_ATTRIBUTE_VALUE}")
# Fields of an interface name what they describe, and its type, only in their attributes.
_FIELD = re.compile(
    rf"(?<![\w-])(name|path|query|body|header|type|default){_ATTRIBUTE_VALUE}"
    r"|(?<=\s)(required|deprecated|optional)(?=[\s/>]|=\{?[\"']?true)"
)
_DESCRIBING = ("type", "default")
_FIELD_TAG = re.compile(r"<(?=[A-Z])\w{0,40}(?:Field|Param|Property|Parameter)\s")
_BOX_NAMES = "attention caution danger error hint important info note seealso success tip warning"
_BOXES = frozenset(_BOX_NAMES.split(" "))


@dataclass(slots=True)
class _Opened:
    """An open note or component: the indentation of its mark, as read and as written, and that of
    its content, or None before it begins. A note ends where the indentation ends.
    """

    outside: int
    written: str
    is_note: bool
    inside: int | None = None


def rewrite(markdown: str, left_out: LeftOutCounts, render: Callable[[str], str]) -> str:
    """Return Markdown without extensions; `render` returns the HTML of a title."""
    lines = list(_fence_highlights(markdown.split("\n")))
    lines = list(_remove_comments(lines, left_out)) if "%%" in markdown else lines
    lines = list(_remove_tagged_comments(lines, left_out)) if "comment" in markdown else lines
    moved = _move_footnotes(_remove_modules(lines))
    return "\n".join(_clean_lines(_unfold(moved, render), left_out))


def count_shortcodes(body: str) -> tuple[LeftOut, ...]:
    """Return the number of shortcodes that only the website's generator can expand."""
    names = [match[1] for match in _VALUE.finditer(body) if not _SHORTCODE_LABEL.search(match[0])]
    closed = {name[1:] for name in names if name.startswith("/")}
    alone = [name for name in names if not name.startswith("/") and name not in closed]
    shown = tuple(dict.fromkeys(alone))[:5]
    return (LeftOut("shortcode", len(alone), _GENERATED, shown),) if alone else ()


def name_component(tag: str) -> str:
    """Return the texts in the attributes of a component: its caption, or the field of an
    interface that it describes.
    """
    if _FIELD_TAG.search(tag):
        return ", ".join(
            f"{name}: {first or second}" if name in _DESCRIBING else first or second or flag
            for name, first, second, flag in _FIELD.findall(tag)
        )
    captions = _CAPTION.findall(tag) or _TAB_VALUE.findall(tag)
    return " ".join(first or second for _, first, second in captions)


def _fence_highlights(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines with code in shortcodes, such as `{{< highlight go >}}`, as fenced code."""
    marks = map(_HIGHLIGHT.match, lines)
    last = max((at for at, mark in enumerate(marks) if mark and mark[1]), default=-1)
    is_open = False
    for at, (line, is_code) in enumerate(mark_code(lines)):
        mark = None if is_code else _HIGHLIGHT.match(line)
        if mark is not None and at <= last and bool(mark[1]) is is_open:
            is_open = not is_open
            line = f"{_LONG_FENCE}{mark[2] or ''}"
        yield line


def _remove_modules(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines without MDX imports, exports and comments (`{/* ... */}`)."""
    last = max((at for at, line in enumerate(lines) if "*/}" in line), default=-1)
    fences = Fences()
    is_module = is_comment = False
    for at, line in enumerate(lines):
        is_code = not is_comment and fences.follow(line)
        if not is_code and ("{/*" in line or is_comment) and at <= last:
            line, is_comment = _cut_comments(line, is_comment=is_comment)
        elif not is_code and (is_module or _MODULE.match(line)):
            is_module = bool(line.strip()) and not line.rstrip().endswith((";", "'", '"'))
            continue
        yield line


def _remove_comments(lines: Sequence[str], left_out: LeftOutCounts) -> Iterator[str]:
    """Yield the lines without the comments of Obsidian (`%% ... %%`)."""
    last = max((at for at, line in enumerate(lines) if line.rstrip().endswith("%%")), default=-1)
    is_comment = False
    for at, (line, is_code) in enumerate(mark_code(lines)):
        may_begin = not (is_comment or is_code) and at < last
        is_begun = may_begin and line.lstrip().startswith("%%") and line.count("%%") == 1
        left_out.add("comment", _UNSEEN, is_begun)
        if is_comment or is_begun:
            is_comment = is_begun or not line.rstrip().endswith("%%")
            line = ""
        for match in reversed([] if is_code else list(_COMMENT.finditer(_blank_code(line)))):
            line = line[: match.start()] + line[match.end() :]
            left_out.add("comment", _UNSEEN)
        yield line


def _remove_tagged_comments(lines: Sequence[str], left_out: LeftOutCounts) -> Iterator[str]:
    """Yield the lines without the comments of Hugo (`{{% comment %}} ... {{% /comment %}}`), Liquid
    (`{% comment %} ... {% endcomment %}`) and kramdown (`{::comment} ... {:/comment}`).
    """
    ends = (at for at, line in enumerate(lines) if any(map(any, _COMMENT_TAG.findall(line))))
    last = max(ends, default=-1)
    is_comment = False
    for at, (line, is_code) in enumerate(mark_code(lines)):
        kept = ""
        while not is_code and at <= last and (tag := _COMMENT_TAG.search(line)) is not None:
            kept += "" if is_comment else line[: tag.start()]
            is_comment, line = tag.lastindex is None, line[tag.end() :]
            left_out.add("comment", _UNSEEN, is_comment)
        yield kept if is_comment else kept + line


def _move_footnotes(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines with the footnotes at the end, where readers see them; their further lines
    are indented.
    """
    footnotes: list[str] = []
    is_open = False
    for line, is_code in mark_code(lines):
        match = None if is_code else _FOOTNOTE.match(line)
        is_further = not line.strip() or line.startswith(("\t", " " * _FOOTNOTE_INDENT))
        is_open = match is not None or (is_open and is_further)
        if match is not None:
            footnotes += ("", f"\\[{match[1]}] {line[match.end() :]}")
        elif is_open:
            footnotes.append(_dedent(line.expandtabs(_FOOTNOTE_INDENT), _FOOTNOTE_INDENT))
        yield "" if is_open else line
    yield from footnotes


def _cut_comments(line: str, *, is_comment: bool) -> tuple[str, bool]:
    """Return a line without comments, and whether a comment is still open; code has no comments."""
    bare, kept, at = _blank_code(line), "", 0
    while at < len(line):
        place = line.find("*/}", at) if is_comment else bare.find("{/*", at)
        end = place if place >= 0 else len(line)
        kept += "" if is_comment else line[at:end]
        if place < 0:
            break
        is_comment, at = not is_comment, place + len("{/*")
    return kept, is_comment


def _blank_code(line: str) -> str:
    """Return a line of the same length with its inline code replaced by spaces."""
    return _SPAN.sub(lambda span: " " * len(span[0]), line)


def _unfold(lines: Iterable[str], render: Callable[[str], str]) -> Iterator[str]:
    """Yield the lines with notes and tabs as definitions of a title and its content, the tags of
    components as separate blocks, and their content with the indentation of what opens it.
    """
    opened: list[_Opened] = []
    fences = Fences()
    is_in_list = False
    for line in _separate_tags(lines):
        indent = _count_indent(line)
        while opened and opened[-1].is_note and line.strip() and indent <= opened[-1].outside:
            yield from _end_note(opened.pop(), fences)
        tag = None if fences.open else _COMPONENT_LINE.match(line)
        if line.strip() and not fences.open:
            _follow_indent(opened, indent, is_end=tag is not None and bool(tag[1]))
        shift = sum(each.inside - each.outside for each in opened if each.inside is not None)
        line = _dedent(line, shift)
        written = line[: max(0, indent - shift)]
        note = None if fences.follow(line) or tag is not None else _NOTE.match(line)
        title = "" if note is None else note[2] or note[1].capitalize()
        if title and (is_in_list or indent - shift < 4):
            opened.append(_Opened(indent, written, is_note=True))
            title = render(title)
            yield from ("", f"{written}<dl><dt>{title}</dt><dd>", "")
            continue
        is_opening = tag is not None and not tag[1] and not line.rstrip().endswith("/>")
        if is_opening and len(opened) < _DEEPEST_COMPONENT:
            opened.append(_Opened(indent, written, is_note=False))
        if line.strip() and not fences.open:
            is_in_list = ITEM.match(line) is not None or (is_in_list and line[0] in " \t")
        yield from (line,) if tag is None else ("", _EXPRESSION.sub("", line).rstrip(), "")
    for each in reversed(opened):
        yield from _end_note(each, fences) if each.is_note else ()


def _follow_indent(opened: list[_Opened], indent: int, *, is_end: bool) -> None:
    """Take the indentation of a line as that of the content of what is open, or end a component."""
    if is_end and opened and not opened[-1].is_note:
        opened.pop()
    elif opened and (opened[-1].inside is None or not opened[-1].is_note):
        inside = indent if opened[-1].inside is None else min(opened[-1].inside, indent)
        opened[-1].inside = max(opened[-1].outside, inside)


def _end_note(note: _Opened, fences: Fences) -> Iterator[str]:
    """Yield the lines that close a note, and a code fence in it that is still open."""
    yield from (f"{note.written}{fences.open}", f"{note.written}</dd></dl>", "")
    fences.open = ""


def _count_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _separate_tags(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines with tags that begin or end a component on a line of their own."""
    begun: list[str] = []
    for line, is_code in mark_code(lines):
        is_begun = begun or (not is_code and _BEGUN_COMPONENT.match(line))
        if is_begun and line.strip() and len(begun) < _MOST_LINES_OF_TAG:
            begun.append(line.strip() if begun else line.rstrip())
            if not line.rstrip().endswith(">"):
                continue
            begun, line = [], " ".join(begun)
        yield from begun
        begun = []
        yield from (line,) if is_code or "<" not in line else _separate_tag(line)
    yield from begun


def _separate_tag(line: str) -> Iterator[str]:
    indent = line[: _count_indent(line)]
    while (match := _OPENING.match(line)) is not None and (rest := line[match.end() :].strip()):
        if not name_component(match[0]) and not rest.startswith("<"):
            break
        yield match[0]
        line = indent + rest
    closing = _CLOSING.match(line) if not _COMPONENT_LINE.match(line) else None
    if closing is None or closing[1].count(f"<{closing[2][2:-1]}"):
        yield line
    else:
        yield from (closing[1], indent + closing[2])


def _dedent(line: str, margin: int) -> str:
    return line[min(margin, _count_indent(line)) :]


def _clean_lines(lines: Iterable[str], left_out: LeftOutCounts) -> Iterator[str]:
    # The options of a generated description are the deeper lines that follow it.
    generated: int | None = None
    is_directive = False
    for line, is_code in mark_code(lines):
        is_directive = is_directive and bool(take_options([line])[0])
        if is_directive:
            continue
        if generated is not None and (not line.strip() or _count_indent(line) > generated):
            continue
        generated = None
        if is_code:
            yield line
            continue
        container = _CONTAINER.match(line.rstrip())
        if container is not None:
            titled = container["label"] or container["title"]
            is_generated = "." in (container["name"] or "") and not titled
            generated = len(container["indent"]) if is_generated else None
            if is_generated:
                left_out.add("generated description", _GENERATED, name=container["name"])
            is_directive = container["directive"] is not None
            yield from _write_container(container)
        elif _CONTENTS.match(line) is None and _TARGET.match(line) is None:
            yield _clean_line(line)


def _write_container(match: re.Match[str]) -> Iterator[str]:
    attributes = match["attributes"] or ""
    callout = _CALLOUT.search(attributes)
    name = match["name"] or match["directive"] or ("" if callout is None else callout[1])
    # The title of a box without a stated one is its kind, as readers see it.
    kind = name.capitalize() if name in _BOXES else ""
    title = match["label"] or match["title"] or name_component(attributes) or kind
    yield ""
    if title and _NUMBER.match(title) is None:
        yield f"{match['indent']}{title.strip()}"
        yield ""


def _clean_line(line: str) -> str:
    if "{" in line and "`" not in line:
        line = _JSX_STYLE.sub(
            lambda style: f'style="{{{style[1].replace(chr(34), "")}}}"',
            _JSX_NUMBER.sub(r'\1="\2"', _SHORTCODE.sub(_write_shortcode, line)),
        )
    if (box := _BOX_IN_QUOTE.match(line)) is not None:
        # A blank line in the quotation separates the title from the text.
        return f"{box[1]}{box[3].strip() or box[2].capitalize()}\n{box[1]}"
    return _ABBREVIATION.sub(r"\1: ", _FOOTNOTE.sub("", line, count=1), count=1)


def _write_shortcode(match: re.Match[str]) -> str:
    """Return the label in a shortcode, such as that of a tab, on a separate line, in the item of a
    list if the shortcode is.
    """
    label = _SHORTCODE_LABEL.search(match[0])
    line = match.string[:_LONGEST_INDENT]
    indent = line[: len(line) - len(line.lstrip(" "))]
    return f"\n\n{indent}{label[1] or label[2] or label[3]}\n\n" if label is not None else ""
