"""Reads Markdown and MDX: markdown-it generates HTML, which is read by the HTML reader.

Supported are CommonMark, tables, and extensions of documentation generators: notes and tabs (`!!!
note`, `=== "Tab"`, `<TabItem>`), containers (`:::tip Title`, `/// note`), directives and roles of
MyST, attributes (`{ #id .class }`), tables of contents, footnotes, abbreviations and shortcodes.
MDX imports and exports are left out, and captions of components become text; no code is run.
"""

import re
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from html import escape
from itertools import takewhile
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline, emphasis
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from knowledge.documents import front_matter
from knowledge.documents.decoding import decode
from knowledge.documents.errors import WrongFormatError
from knowledge.documents.markup.fences import (
    Fences,
    describe_code,
    mark_code,
    take_options,
    write_code,
)
from knowledge.documents.markup.html import Fragment, read_fragment
from knowledge.documents.markup.wide_rows import widen_tables
from knowledge.documents.page import Block, BlockKind, LeftOut, LeftOutCounts, Page, first_heading

_Env = MutableMapping[str, Any]
_DEEPEST_LISTS = 40
_DEEPEST_DIRECTIVE = 4
_MOST_STEPS = 10_000_000
_LONGEST_PART = 2000
_LONGEST_TAG = 32_000
_LONGEST_PROSE = 100_000
_DEEPEST_LABELS = 4
_STATED_ANCHOR = re.compile(r"\{:?[ \t]*#([\w:.-]+)(?:[ \t][^{}]{0,200})?\}[ \t]*\Z")
_ATTRIBUTE = r"(?:[#.][\w:.-]{1,60}|[\w-]{1,30}=(?:\"[^\"\n]{0,100}\"|[\w%.-]{1,60}))"
_ATTRIBUTES = re.compile(
    rf"[ \t]?\{{:?[ \t]{{0,3}}{_ATTRIBUTE}(?:[ \t]{{1,3}}{_ATTRIBUTE}){{0,9}}[ \t]{{0,3}}\}}"
)
_ICON = re.compile(r":(?:material|octicons|fontawesome|simple)-([\w-]{1,60}):[ \t]?")
# Exports of databases state the fields of a page in lines.
_LABELLED_LINES = re.compile(r"(?:[^\n:.,;()`\"]{1,40}::?[ \t][^\n]++(?:\n|\Z)){2,}+")
_BREAKS = frozenset({"softbreak", "hardbreak"})
_NEAR = 20
_ENDS_OF_LISTS = frozenset({"bullet_list_close", "ordered_list_close"})
_FOOTNOTE_MARK = re.compile(r"\[\^([^\[\]\s]{1,60})\]")
_ROLE = re.compile(r"\{([A-Za-z][\w:.-]{0,40})\}\Z")
_REFERENCE_ROLES = frozenset({"ref", "doc", "term", "numref", "any"})
_REFERENCE_TARGET = re.compile(r"\s{0,3}<[^<>\n]{1,300}>\Z")
_DIRECTIVE = re.compile(r"\{([\w:.+-]{1,40})\}(.*)\Z", re.DOTALL)
_LISTINGS = frozenset({"code-block", "code", "code-cell", "sourcecode", "doctest", "testcode"})
_ENGINES = frozenset({"r", "python", "bash", "sh", "sql", "julia", "ojs", "js", "mermaid", "dot"})
"""Languages of code that R Markdown and Quarto run (`{python}`)."""
_FIGURES = frozenset({"figure", "image"})
_LEFT_OUT = frozenset({"toctree", "eval-rst", "raw", "include", "literalinclude"})
_FENCE_LABEL = re.compile(
    r"(?<![\w-])(?:tab|title|label|caption|filename)=(?:\"[^\"\n]{1,200}\"|'[^'\n]{1,200}')"
    r"|(?<!\S)\[[^\[\]\n]{1,80}\](?!\S)"
)
_FENCE_WORD = re.compile(
    r"(?!(?:(?:show|no)LineNumbers|noInline|live|npm2yarn|expandable|twoslash)\Z)\w[\w./-]*\Z"
)
# Docusaurus removes comments that highlight lines, unless the fence states numbers of lines.
_LINE_NUMBERS = re.compile(r"\{[\d, -]+\}")
_HIGHLIGHTING = re.compile(
    r"^[ \t]{0,80}(?://|/\*|--|;;|['%]|REM\b|\(\*|<!--|\{/\*|#)[ \t]{0,9}"
    r"highlight-(?:next-line|start|end)[ \t]{0,9}(?:\*/\}?|-->|\*\))?[ \t]{0,9}(?:\n|\Z)",
    re.MULTILINE,
)
_WITH_COMMENTS = ("", "md", "mdx", "markdown")
# VitePress does the same with comments at the end of a line, except those of changed lines.
_LINE_MARK = re.compile(
    r"[ \t]{0,9}(?://|/\*|<!--|#|--|;)[ \t]{0,9}\[!code [a-z][^\[\]\n]{0,60}\]"
    r"[ \t]{0,9}(?:\*/|-->)?[ \t]{0,9}$",
    re.MULTILINE,
)
_BOX_IN_QUOTE = re.compile(
    r"([ \t]{0,40}(?:>[ \t]?){1,20})\[!([\w-]{1,40})(?:\|[^\[\]]{0,60})?\][+-]?(.*)\Z"
)
# Fields, embedded files, identifiers of blocks and comments of Obsidian.
_INLINE_FIELD = re.compile(
    r"\[([^\W_][\w -]{0,60})::[ \t]+((?:[^\[\]\n]|\[\[[^\[\]\n]{1,200}\]\]){1,300})\]"
    r"|(?<=\()([^\W_][\w -]{0,60})::[ \t]+(?=[^()\n]{1,300}\))"
)
_FIELD_LINE = re.compile(r"^[\w*_ -]{0,60}[\w*]::[ \t]", re.MULTILINE)
_EMBEDDED = re.compile(r"!\[\[([^\[\]|#\n]{1,300})([^\[\]|\n]{0,300})(?:\|[^\[\]\n]{0,300})?\]\]")
_NOTE_LINK = re.compile(
    r"(?<!!)\[\[(?:[^\[\]|\n]{1,300}\|([^\[\]|\n]{1,300})"
    r"|#{0,2}([^\W\d][^\[\]|\n,=\"'(){}$]{0,300}))\]\]"
)
_PICTURE_NAME = re.compile(r".*\.(?:png|jpe?g|gif|webp|svg|bmp|avif)\Z", re.IGNORECASE)
_BLOCK_NAME = re.compile(r"(?:(?<=\s)|\A)\^(?=[\d-]*[A-Za-z]|\d{6}\Z)[A-Za-z0-9-]{3,60}\s*\Z")
_COMMENT = re.compile(r"(?<!\S)%%(?:\S(?:[^%\n]{0,300}\S)?%%(?!\w)|[^%\n]{1,300}%%\s*\Z)")
_LIST_ITEM = re.compile(r"[ \t]*(\*[ \t]+-|-)(?:[ \t]|\Z)")
_MOST_INNER = 5000
_FENCE_OF_HIGHLIGHT = "``````"
_COMPONENT = re.compile(r"<[A-Z][\w.]{0,60}(?:\s[^<>]{0,2000})?/?>")
_UNSHOWN = re.compile(
    r"<(audio|canvas|datalist|dialog|iframe|math|noembed|noframes|noscript|object|plaintext|script|"
    r"select|style|svg|template|textarea|title|video|xmp)\b",
    re.IGNORECASE,
)
_CONTAINER = re.compile(
    r"(?P<indent>[ \t]{0,40})(?::{3,}|/{3,4})[ \t]{0,9}"
    r"(?:(?P<name>[\w:.+-]{1,60})|\{(?P<directive>[\w:+-]{1,60})\})?"
    r"(?:[ \t]{0,9}\[(?P<label>[^\[\]]{1,200})\])?(?:[ \t]{0,9}\{(?P<attributes>[^{}]{1,300})\})?"
    r"(?:[ \t]{1,9}(?:\|[ \t]{0,9})?(?P<title>.{1,300}))?\Z"
)
_CALLOUT = re.compile(r"\.callout-(\w{1,20})")
_CONTENTS = re.compile(
    r"[ \t]{0,3}(?:\[TOC\]|\[\[_?TOC_?\]\]|\[\[toc\]\])[ \t]{0,9}\Z", re.IGNORECASE
)
_TARGET = re.compile(r"\([\w.:-]{1,100}\)=[ \t]*\Z")
_SHORTCODE = re.compile(r"\{\{[<%][^{}]{0,500}[>%]\}\}|\{%[^{}%]{0,500}%\}")
_UNSEEN = "comments are not shown to readers of the page"
_GENERATED = "its text is only generated when the website is built"
_SHORTCODE_LABEL = re.compile(
    r"\b(?!tabs\s)\w{1,60}\s[^{}\"]{0,200}?(?:name|title|label|header|tabName|summary)=\"([^\"]{1,200})\""
    r"|\b(?:tab|tabitem|tab-item)\s{1,9}\"([^\"]{1,200})\"",
    re.IGNORECASE,
)
_HIGHLIGHT = re.compile(
    r"\s*\{[{%][<%]?-?\s*(/?(?:end)?)highlight(?:\s+([\w+#-]{1,30}))?[^{}]{0,200}[>%]?[%}]\}\s*\Z"
)
_VALUE = re.compile(r"\{\{[<%]\s{0,9}([\w/-]{1,60})[^{}]{0,500}[>%]\}\}")
_JSX_STYLE = re.compile(r"\bstyle=\{\{([^{}\n]{0,500})\}\}")
_FOOTNOTE = re.compile(r"[ \t]{0,3}\[\^([^\[\]]{1,60})\]:(?:[ \t]{1,9}|\Z)")
_FOOTNOTE_INDENT = 4
_BLOCK_BEGIN = re.compile(r"[ \t]{0,3}(?:[#|><!:=-]|`{3}|~{3})")
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
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_COMPONENT_LINE = re.compile(r"\s*<(/?)[A-Z][\w.]*(?:\s[^<>]{0,2000})?/?>\s*\Z")
_BEGUN_COMPONENT = re.compile(r"\s*<[A-Z][\w.]{0,60}(?:\s[^<>]{0,2000})?\Z")
_OPENING = re.compile(r"\s*<[A-Z][\w.]{0,60}(?:\s[^<>]{0,2000})?(?<!/)>")
_CLOSING = re.compile(r"(.*\S)\s*(</[A-Z][\w.]{0,60}>)\s*\Z")
_MOST_LINES_OF_TAG = 30
_EXPRESSION = re.compile(r"\s[\w-]{1,60}=\{[^{}]{0,500}\}")
_TEXT_EXPRESSION = re.compile(r"\{([\"'`])([^\"'`{}\\\n$]{0,500})\1\}")
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


class _Writer(RendererHTML):
    """Writes tokens as HTML; each method is named after the token type that it writes."""

    def heading_open(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env
    ) -> str:
        for last in (tokens[idx + 1].children or [])[-1:]:
            place = max(0, last.content.rfind("{"))
            if (stated := _STATED_ANCHOR.match(last.content, place)) is not None:
                tokens[idx].attrSet("id", stated[1])
                last.content = last.content[:place]
        return self.renderToken(tokens, idx, options, env)

    def text(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        content = tokens[idx].content
        if _find_role(tokens, idx):
            content = content[: content.rindex("{")]
        if env.get("is_mdx"):
            content = _TEXT_EXPRESSION.sub(r"\2", content)
        content = _ATTRIBUTES.sub("", _FOOTNOTE_MARK.sub(r"[\1]", content))
        content = _NOTE_LINK.sub(
            lambda link: link[1] or link[2].replace("#", " > "),
            _INLINE_FIELD.sub(r"\1\3: \2", content),
        )
        rest = takewhile(lambda token: token.type not in _BREAKS, tokens[idx + 1 : idx + _NEAR])
        is_last = not any(token.content.strip() for token in rest)
        content = _write_icons(
            _BLOCK_NAME.sub("", content) if is_last else content, is_last=is_last
        )
        return _EMBEDDED.sub(partial(_write_embedded, env=env), escape(content))

    def code_inline(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env
    ) -> str:
        content = tokens[idx].content
        if idx and _find_role(tokens, idx - 1) in _REFERENCE_ROLES:
            return escape(_REFERENCE_TARGET.sub("", content))
        return f"<code>{escape(content)}</code>"

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        """Write a picture with its alternative text, which is marked because it is not a
        sentence.
        """
        token = tokens[idx]
        name = escape(" ".join(self.renderInlineAsText(token.children, options, env).split()))
        source = escape(str(token.attrs["src"]))
        return f'{f"![{name}]" if name else ""}<img src="{source}" alt="{name}">'

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        info, content = tokens[idx].info.strip(), tokens[idx].content
        directive = _DIRECTIVE.match(info)
        if directive is None or env.get("depth", 0) >= _DEEPEST_DIRECTIVE:
            return write_code(_describe_fence(info), _remove_marks(info, content))
        return _write_directive(directive[1], directive[2].strip(), content, env)

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        content, depth = tokens[idx].content, env.get("depth", 0)
        follows_list = idx > 0 and tokens[idx - 1].type in _ENDS_OF_LISTS
        if follows_list and _ITEM.match(content) and depth < _DEEPEST_DIRECTIVE:
            # Items of `*    *   text`, which some generators nest although the list needs one more.
            return _write_html(content, {**env, "depth": depth + 1})
        return write_code("", content)

    def html_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env) -> str:
        return _close_tags(
            _COMPONENT.sub(partial(_show_component, tag="p"), tokens[idx].content), env
        )

    def html_inline(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env
    ) -> str:
        return _close_tags(_COMPONENT.sub(_show_component, tokens[idx].content), env)


def read(data: bytes, source: str) -> Page:
    """Return the page; its title comes from the front matter or the first heading, or is empty."""
    text, warnings = decode(data)
    return read_text(text, source, warnings)


def read_text(text: str, source: str, warnings: tuple[str, ...] = ()) -> Page:
    """Return the page of text that has already been cleaned."""
    front, body = front_matter.take(text)
    if front.unclear_groups:
        raise WrongFormatError(f"the readers of this page are unclear: {front.unclear_groups}")
    fragment = _read(body, is_mdx=source.endswith(".mdx"))
    blocks = list(fragment.blocks)
    if front.fields:
        at = 1 if blocks and blocks[0].level == 1 else 0
        blocks.insert(at, Block(BlockKind.TEXT, "\n".join(front.fields)))
    return Page(
        source=source,
        title=front.title or first_heading(fragment.blocks),
        blocks=tuple(blocks),
        description=front.description,
        keywords=front.keywords,
        language=front.language,
        url=front.url,
        groups=front.groups,
        version=front.version,
        links=fragment.links,
        warnings=(*warnings, *front.warnings),
        left_out=(*fragment.left_out, *_count_shortcodes(body), *front.left_out),
    )


def blocks_of(markdown: str) -> tuple[Block, ...]:
    """Return the blocks of Markdown text."""
    return _read(markdown).blocks


def _count_shortcodes(body: str) -> tuple[LeftOut, ...]:
    """Return the number of shortcodes that only the website's generator can expand."""
    names = [match[1] for match in _VALUE.finditer(body) if not _SHORTCODE_LABEL.search(match[0])]
    closed = {name[1:] for name in names if name.startswith("/")}
    alone = [name for name in names if not name.startswith("/") and name not in closed]
    shown = tuple(dict.fromkeys(alone))[:5]
    return (LeftOut("shortcode", len(alone), _GENERATED, shown),) if alone else ()


def _read(markdown: str, *, is_mdx: bool = False) -> Fragment:
    left_out = LeftOutCounts()
    env = {"page": markdown.lower(), "is_mdx": is_mdx, "left_out": left_out}
    fragment = read_fragment(_write_html(markdown, env))
    left_out.take(fragment.left_out)
    return replace(fragment, left_out=left_out.list())


def _write_html(markdown: str, env: _Env) -> str:
    fenced = list(_fence_highlights(markdown.split("\n")))
    uncommented = list(_remove_comments(fenced, env["left_out"])) if "%%" in markdown else fenced
    lines = _place_footnotes(list(_remove_modules(uncommented)))
    parser = _make_parser()
    cleaned = "\n".join(_clean_lines(_unfold(lines), env["left_out"]))
    return str(parser.render(widen_tables(cleaned, parser), env))


@cache
def _make_parser(*, with_emphasis: bool = True) -> MarkdownIt:
    options = {"maxNesting": _DEEPEST_LISTS if with_emphasis else _DEEPEST_LABELS}
    parser = MarkdownIt("commonmark", options, renderer_cls=_Writer).enable("table")
    if with_emphasis:
        parser.enable("strikethrough")
        parser.inline.ruler.at("emphasis", _read_emphasis)
    else:
        parser.disable("emphasis")
    parser.core.ruler.at("inline", _parse_inline)
    return parser


def _read_emphasis(state: StateInline, silent: bool) -> bool:
    """Read a sign of emphasis; stars between two digits, such as those of `2*3*4`, are text."""
    start = end = state.pos
    while state.src.startswith("*", end):
        end += 1
    digits = state.src[max(0, start - 1) : start] + state.src[end : end + 1]
    if silent or start == end or len(digits) < 2 or not digits.isdecimal():
        return emphasis.tokenize(state, silent)
    state.pending += state.src[start:end]
    state.pos = end
    return True


def _parse_inline(state: StateCore) -> None:
    """Parse the text of each block in parts, so that the search for a closing bracket is limited to
    one part.
    """
    for token in state.tokens:
        # A line of a megabyte is not prose: each star would be a token.
        parser = _make_parser(with_emphasis=len(token.content) <= _LONGEST_PROSE)
        for part in _split(token.content) if token.type == "inline" else ():
            children: list[Token] = []
            parser.inline.parse(part, parser, state.env, children)
            if _LABELLED_LINES.fullmatch(token.content) or _FIELD_LINE.search(token.content):
                breaks = (child for child in children if child.type == "softbreak")
                for child in breaks:
                    child.type = "hardbreak"
            token.children = [*(token.children or ()), *children]


def _split(text: str) -> Iterator[str]:
    """Yield text in parts if parsing its brackets would take too long.

    HTML tags of at most `_LONGEST_TAG` characters are not divided.
    """
    start = 0
    while text.count("[", start) * (len(text) - start) > _MOST_STEPS:
        end = text.rfind(" ", start, start + _LONGEST_PART) + 1 or start + _LONGEST_PART
        if text.rfind("<", start, end) > text.rfind(">", start, end):
            end = text.find(">", end, end + _LONGEST_TAG) + 1 or end
        yield text[start:end]
        start = end
    yield text[start:]


def _write_icons(content: str, *, is_last: bool) -> str:
    """Return a text without icons before words; those that stand for words are named."""
    if ":" not in content:
        return content
    parts = _ICON.split(content)
    for at in range(len(parts) - 1, -1, -1):
        if at % 2:
            parts[at] = f"{parts[at].replace('-', ' ')} " if is_last else ""
        else:
            is_last = is_last and not any(map(str.isalnum, parts[at]))
    return "".join(parts)


def _find_role(tokens: Sequence[Token], idx: int) -> str:
    """Return the role before inline code, such as `{ref}`, or an empty string."""
    is_before_code = idx + 1 < len(tokens) and tokens[idx + 1].type == "code_inline"
    text = tokens[idx].content[-50:] if is_before_code and tokens[idx].type == "text" else ""
    match = _ROLE.search(text)
    return "" if match is None else match[1]


def _describe_fence(info: str) -> str:
    """Return the language of a fence and the label of its tab or file, without other options."""
    labels = [match[0] for match in _FENCE_LABEL.finditer(info)]
    words = _FENCE_LABEL.sub(" ", info).split()
    if info.startswith("{"):
        words = [word.strip("{}.,") for word in words if word.strip("{}.,")][:1]
    language = [] if _FENCE_LABEL.match(info) else [word.partition("{")[0] for word in words[:1]]
    return " ".join((*language, *filter(_FENCE_WORD.match, words[1:]), *labels))


def _remove_marks(info: str, code: str) -> str:
    """Return code without the comments that only say how to show its lines."""
    if info.partition(" ")[0] not in _WITH_COMMENTS and _LINE_NUMBERS.search(info) is None:
        code = _HIGHLIGHTING.sub("", code)
    return _LINE_MARK.sub("", code)


def _write_embedded(match: re.Match[str], env: _Env) -> str:
    """Write a picture that is embedded by its name; other files are left out."""
    if _PICTURE_NAME.match(match[1]):
        return f'<img src="{match[1]}" alt="">'
    left_out = env.get("left_out", LeftOutCounts())
    left_out.add("embedded file", "other files are not included", name=match[1])
    return ""


def _write_directive(name: str, argument: str, content: str, env: _Env) -> str:
    """Write a fence that is a directive of a documentation generator, such as a box or a tab."""
    options, lines = take_options(content.split("\n"))
    body = "\n".join(lines)
    if name in _LEFT_OUT:
        return ""
    if name in _ENGINES:
        return write_code(name, content)
    if name == "list-table":
        return _write_list_table(argument, body, env)
    if name in _LISTINGS:
        return write_code(describe_code(argument, options), body.lstrip("\n"))
    inside = {**env, "depth": env.get("depth", 0) + 1}
    if name in _FIGURES:
        alt = escape(options.get("alt", ""))
        caption = _write_html(body, inside)
        figure = f'<figure><img src="{escape(argument)}" alt="{alt}">'
        return f"{figure}<figcaption>{caption}</figcaption></figure>\n" if caption else figure
    return _write_html(f"{argument}\n\n{body}", inside)


def _write_list_table(caption: str, body: str, env: _Env) -> str:
    """Write a nested list as a table: `* -` begins a row, `-` a cell."""
    rows: list[list[list[str]]] = []
    for line in body.split("\n")[:_MOST_INNER]:
        match = _LIST_ITEM.match(line)
        if match is not None and (len(match[1]) > 1 or not rows):
            rows.append([])
        if match is not None:
            rows[-1].append([line[match.end() :]])
        elif rows and rows[-1]:
            rows[-1][-1].append(line.strip())
    inline = _make_parser().renderInline
    written = "".join(
        f"<tr>{''.join(f'<td>{inline(chr(10).join(cell), env)}</td>' for cell in row)}</tr>"
        for row in rows
    )
    head = f"<caption>{inline(caption, env)}</caption>" if caption else ""
    return f"<table>{head}{written}</table>\n" if rows else ""


def _close_tags(markup: str, env: _Env) -> str:
    """Return HTML in which unclosed elements cannot hide the rest of the page."""

    def escape_open(match: re.Match[str]) -> str:
        end = f"</{match[1].lower()}"
        closed: dict[str, bool] = env.setdefault("closed", {})
        if end not in closed:
            closed[end] = end in env["page"]
        return match[0] if closed[end] else f"&lt;{match[1]}"

    markup = _UNSHOWN.sub(escape_open, markup)
    return f"{markup}-->" if markup.rfind("<!--") > markup.rfind("-->") else markup


def _fence_highlights(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines with code in shortcodes, such as `{{< highlight go >}}`, as fenced code."""
    marks = map(_HIGHLIGHT.match, lines)
    last = max((at for at, mark in enumerate(marks) if mark and mark[1]), default=-1)
    is_open = False
    for at, (line, is_code) in enumerate(mark_code(lines)):
        mark = None if is_code else _HIGHLIGHT.match(line)
        if mark is not None and at <= last and bool(mark[1]) is is_open:
            is_open = not is_open
            line = f"{_FENCE_OF_HIGHLIGHT}{mark[2] or ''}"
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
        is_begun = not is_code and line.lstrip().startswith("%%") and line.count("%%") == 1
        if is_comment:
            is_comment = not line.rstrip().endswith("%%")
            line = ""
        elif is_begun and at < last:
            is_comment, line = True, ""
            left_out.add("comment", _UNSEEN)
        for match in reversed([] if is_code else list(_COMMENT.finditer(_blank_code(line)))):
            line = line[: match.start()] + line[match.end() :]
            left_out.add("comment", _UNSEEN)
        yield line


def _take_footnotes(lines: Sequence[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Return the lines of each footnote by name, and all other lines.

    Continuation lines of a footnote are indented. A footnote without a reference stays where it is.
    """
    referred = {name for line in lines if not _FOOTNOTE.match(line) for name in _find_marks(line)}
    footnotes: dict[str, list[str]] = {}
    others: list[str] = []
    current: list[str] | None = None
    for line, is_code in mark_code(lines):
        if current is not None and _continues(current[-1], line):
            current.append(_dedent(line.expandtabs(_FOOTNOTE_INDENT), _FOOTNOTE_INDENT))
            continue
        current = None
        match = None if is_code else _FOOTNOTE.match(line)
        if match is None:
            others.append(line)
            continue
        is_first = match[1] in referred and match[1] not in footnotes
        current = footnotes.setdefault(match[1], []) if is_first else others
        current += ["", f"\\[{match[1]}] {line[match.end() :]}"]
    return footnotes, others


def _continues(before: str, line: str) -> bool:
    """Return whether a line continues a footnote, given the line before it."""
    if not line.strip() or line.startswith(("\t", " " * _FOOTNOTE_INDENT)):
        return True
    begins_block = _BLOCK_BEGIN.match(line) or _ITEM.match(line) or _FOOTNOTE.match(line)
    return bool(before.strip()) and begins_block is None


def _place_footnotes(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines with each footnote after the paragraph, item or table that refers to it."""
    footnotes, lines = _take_footnotes(lines)
    waiting: list[str] = []
    was_code = False
    indent = 0

    def write() -> Iterator[str]:
        while waiting:
            note = footnotes.pop(waiting.pop(0), [])
            waiting.extend(name for line in note for name in _find_marks(line))
            yield from (f"{' ' * indent}{line}" if line.strip() else "" for line in [*note, ""])

    for line, is_code in mark_code(lines):
        item = _ITEM.match(line)
        if not was_code and (is_code or not line.strip() or item or line.startswith("#")):
            yield from write()
        was_code = is_code
        if not is_code and line.strip():
            indent = item.end() if item is not None else _count_indent(line)
            waiting += (name for name in _find_marks(line) if name in footnotes)
        yield line
        if not is_code and line.startswith("#"):
            yield from write()
    yield from ("",) if footnotes or waiting else ()
    waiting += footnotes
    indent = 0
    yield from write()


def _find_marks(line: str) -> list[str]:
    """Return the names of the footnotes to which a line outside of code refers."""
    return _FOOTNOTE_MARK.findall(_blank_code(line)) if "[^" in line else []


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


def _unfold(lines: Iterable[str]) -> Iterator[str]:
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
            title = _make_parser().renderInline(title, {"page": ""})
            yield from ("", f"{written}<dl><dt>{title}</dt><dd>", "")
            continue
        is_opening = tag is not None and not tag[1] and not line.rstrip().endswith("/>")
        if is_opening and len(opened) < _DEEPEST_LISTS:
            opened.append(_Opened(indent, written, is_note=False))
        if line.strip() and not fences.open:
            is_in_list = _ITEM.match(line) is not None or (is_in_list and line[0] in " \t")
        yield from (line,) if tag is None else ("", _EXPRESSION.sub("", line).rstrip(), "")
    for each in reversed(opened):
        yield from _end_note(each, fences) if each.is_note else ()


def _follow_indent(opened: list[_Opened], indent: int, *, is_end: bool) -> None:
    """Take the indentation of a line as that of the content of what is open, or end a component."""
    if is_end and opened and not opened[-1].is_note:
        opened.pop()
    elif opened and opened[-1].inside is None:
        opened[-1].inside = max(opened[-1].outside, indent)
    elif opened and not opened[-1].is_note:
        opened[-1].inside = max(opened[-1].outside, min(opened[-1].inside or 0, indent))


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
        if not _name_component(match[0]) and not rest.startswith("<"):
            break
        yield match[0]
        line = indent + rest
    closing = _CLOSING.match(line) if not _COMPONENT_LINE.match(line) else None
    if closing is None or closing[1].count(f"<{closing[2][2:-1]}"):
        yield line
    else:
        yield from (closing[1], indent + closing[2])


def _show_component(match: re.Match[str], tag: str = "span") -> str:
    """Return the tag of a component with the texts in its attributes as an element."""
    shown = _make_parser().renderInline(_name_component(match[0]), {"page": ""})
    opening = " " if match[0].endswith("/>") else match[0]
    return f"{opening}<{tag}>{shown}</{tag}> " if shown else opening


def _name_component(tag: str) -> str:
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
    title = match["label"] or match["title"] or _name_component(attributes) or kind
    yield ""
    if title and _NUMBER.match(title) is None:
        yield f"{match['indent']}{title.strip()}"
        yield ""


def _clean_line(line: str) -> str:
    if "{" in line and "`" not in line:
        line = _JSX_STYLE.sub(
            lambda style: f'style="{{{style[1].replace(chr(34), "")}}}"',
            _SHORTCODE.sub(_write_shortcode, line),
        )
    if (box := _BOX_IN_QUOTE.match(line)) is not None:
        # A blank line in the quotation separates the title from the text.
        return f"{box[1]}{box[3].strip() or box[2].capitalize()}\n{box[1]}"
    return _ABBREVIATION.sub(r"\1: ", _FOOTNOTE.sub("", line, count=1), count=1)


def _write_shortcode(match: re.Match[str]) -> str:
    """Return the label in a shortcode, such as that of a tab, on a separate line."""
    label = _SHORTCODE_LABEL.search(match[0])
    return f"\n\n{label[1] or label[2]}\n\n" if label is not None else ""
