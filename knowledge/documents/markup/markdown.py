"""Reads Markdown and MDX: markdown-it generates HTML, which is read by the HTML reader.

Supported are CommonMark, tables, directives and roles of MyST, attributes (`{ #id .class }`), and
what `extensions` rewrites. No code is run.
"""

import re
from collections.abc import MutableMapping, Sequence
from dataclasses import replace
from functools import cache, partial
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline, emphasis
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from knowledge.documents import front_matter
from knowledge.documents.decoding import decode
from knowledge.documents.errors import WrongFormatError
from knowledge.documents.markup.extensions import (
    FOOTNOTE_MARK,
    ITEM,
    count_shortcodes,
    name_component,
    rewrite,
)
from knowledge.documents.markup.fences import describe_code, name_object, take_options, write_code
from knowledge.documents.markup.html import read_fragment
from knowledge.documents.markup.wide_rows import widen_tables
from knowledge.documents.page import Block, BlockKind, LeftOutCounts, Page, first_heading

_Env = MutableMapping[str, Any]
_Tokens = Sequence[Token]
_DEEPEST_LISTS = 40
_DEEPEST_DIRECTIVE = 4
_LONGEST_PROSE = 100_000
_STATED_ANCHOR = re.compile(r"\{:?[ \t]*#([\w:.-]+)(?:[ \t][^{}]{0,200})?\}[ \t]*\Z")
_ATTRIBUTE = r"(?:[#.][\w:.-]{1,60}|[\w-]{1,30}=(?:\"[^\"\n]{0,100}\"|[\w%.-]{1,60}))"
_ATTRIBUTES = re.compile(
    rf"[ \t]?\{{:?[ \t]{{0,3}}{_ATTRIBUTE}(?:[ \t]{{1,3}}{_ATTRIBUTE}){{0,9}}[ \t]{{0,3}}\}}"
    # The other tags of kramdown, such as `{::nomarkdown}`, `{:/}`, `{:toc}` and `{:name: .class}`.
    r"|\{:(?:[:/][^{}\n]{0,200}|[ ]?[\w-]{1,30}(?::[^{}\n]{0,200})?)\}"
)
_LABELLED_LINES = re.compile(r"(?:[^\n:.,;()`\"]{1,40}::?[ \t][^\n]++(?:\n|\Z)){2,}+")
_ENDS_OF_LISTS = frozenset({"bullet_list_close", "ordered_list_close"})
_ROLE = re.compile(r"\{([A-Za-z][\w:.-]{0,40})\}\Z")
_REFERENCE_ROLES = frozenset({"ref", "doc", "term", "numref", "any"})
_REFERENCE_TARGET = re.compile(r"\s{0,3}<[^<>\n]{1,300}>\Z")
_DIRECTIVE = re.compile(r"\{([\w:.+-]{1,40})\}(.*)\Z", re.DOTALL)
_LISTINGS = frozenset({"code-block", "code", "code-cell", "sourcecode", "doctest", "testcode"})
_ENGINES = frozenset({"r", "python", "bash", "sh", "sql", "julia", "ojs", "js", "mermaid", "dot"})
"""Languages of code that R Markdown and Quarto run (`{python}`)."""
_FIGURES = frozenset({"figure", "image"})
_LEFT_OUT = {
    "eval-rst": "reStructuredText inside of Markdown is not read", "raw": "raw output is not read",
    "include": "other files are not included", "literalinclude": "other files are not included",
}  # fmt: skip
_LONGEST_NAME = 200
# The elements for a list, its items, the lists in them and their items.
_TABLE_TAGS = ("table", "tr", "", "td")
_COMPONENT = re.compile(r"<[A-Z][\w.]{0,60}(?:\s[^<>]{0,2000})?/?>")
_UNSHOWN = re.compile(
    r"<(audio|canvas|datalist|dialog|iframe|math|noembed|noframes|noscript|object|plaintext|script|"
    r"select|style|svg|template|textarea|title|video|xmp)\b",
    re.IGNORECASE,
)

_TEXT_EXPRESSION = re.compile(r"\{([\"'`])([^\"'`{}\\\n$]{0,500})\1\}")

_FORMULA_LINE = re.compile(
    r"[ ]{0,3}(\$\$(?!\$)|\\\[|\\begin\{[a-z]{1,20}\*?\})(?!.*(?:\$\$|\\\]|\\end\{))"
)
_MOST_LINES_OF_FORMULA = 100
# Formulas of KaTeX and MathJax. A dollar sign between words may be an amount or a variable.
_FORMULA = re.compile(
    r"\$\$(?:[^$`\\]|\\.){1,2000}\$\$"
    r"|(?<![\w$])\$(?![\s$])(?:(?!\*\*|\]\()[^$`\\]|\\.){1,500}(?<!\s)\$(?![\w$])"
    r"|\\\((?=[^\n)]{0,200}(?:(?<!\\)[_^*]|\\[a-z]))(?:[^`\\]|\\[^()]){1,500}\\\)"
    r"|\\\[(?=[^\n\]]{0,200}(?:(?<!\\)[_^*]|\\[a-z]))(?:[^`\\]|\\[^\[\]]){1,2000}\\\]",
    re.DOTALL,
)


class _Writer(RendererHTML):
    """Writes tokens as HTML; each method is named after the token type that it writes."""

    def heading_open(self, tokens: _Tokens, idx: int, options: OptionsDict, env: _Env) -> str:
        for last in (tokens[idx + 1].children or [])[-1:]:
            place = max(0, last.content.rfind("{"))
            if (stated := _STATED_ANCHOR.match(last.content, place)) is not None:
                tokens[idx].attrSet("id", stated[1])
                last.content = last.content[:place]
        return self.renderToken(tokens, idx, options, env)

    def text(self, tokens: _Tokens, idx: int, options: OptionsDict, env: _Env) -> str:
        content = tokens[idx].content
        if _find_role(tokens, idx):
            content = content[: content.rindex("{")]
        if env.get("is_mdx"):
            content = _TEXT_EXPRESSION.sub(r"\2", content)
        content = _ATTRIBUTES.sub("", FOOTNOTE_MARK.sub(r"[\1]", content))
        return escape(content)

    def formula(self, tokens: _Tokens, idx: int, options: OptionsDict, env: _Env) -> str:
        return escape(tokens[idx].content)

    def code_inline(self, tokens: _Tokens, idx: int, options: OptionsDict, env: _Env) -> str:
        content = tokens[idx].content
        if idx and _find_role(tokens, idx - 1) in _REFERENCE_ROLES:
            return escape(_REFERENCE_TARGET.sub("", content))
        return f"<code>{escape(content)}</code>"

    def image(self, tokens: _Tokens, idx: int, options: OptionsDict, env: _Env) -> str:
        """Write a picture with its alternative text, which is marked because it is not a
        sentence.
        """
        token = tokens[idx]
        name = escape(" ".join(self.renderInlineAsText(token.children, options, env).split()))
        source = escape(str(token.attrs["src"]))
        return f'{f"![{name}]" if name else ""}<img src="{source}" alt="{name}">'

    def fence(self, tokens: _Tokens, idx: int, options: OptionsDict, env: _Env) -> str:
        info, content = tokens[idx].info.strip(), tokens[idx].content
        directive = _DIRECTIVE.match(info)
        if directive is None or env.get("depth", 0) >= _DEEPEST_DIRECTIVE:
            return write_code(info, content)
        return _write_directive(directive[1], directive[2].strip(), content, env)

    def code_block(self, tokens: _Tokens, idx: int, options: OptionsDict, env: _Env) -> str:
        content, depth = tokens[idx].content, env.get("depth", 0)
        follows_list = idx > 0 and tokens[idx - 1].type in _ENDS_OF_LISTS
        if follows_list and ITEM.match(content) and depth < _DEEPEST_DIRECTIVE:
            # Items of `*    *   text`, which some generators nest although the list needs one more.
            return _write_html(content, {**env, "depth": depth + 1})
        return write_code("", content)

    def html_block(self, tokens: _Tokens, idx: int, options: OptionsDict, env: _Env) -> str:
        return _close_tags(
            _COMPONENT.sub(partial(_show_component, tag="p"), tokens[idx].content), env
        )

    def html_inline(self, tokens: _Tokens, idx: int, options: OptionsDict, env: _Env) -> str:
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
        left_out=(*fragment.left_out, *count_shortcodes(body), *front.left_out),
    )


def blocks_of(markdown: str) -> tuple[Block, ...]:
    """Return the blocks of Markdown text."""
    return _read(markdown).blocks


def _read(markdown: str, *, is_mdx: bool = False) -> Page:
    left_out = LeftOutCounts()
    env = {"page": markdown.lower(), "is_mdx": is_mdx, "left_out": left_out}
    fragment = read_fragment(_write_html(markdown, env))
    left_out.take(fragment.left_out)
    return replace(fragment, left_out=left_out.list())


def _write_html(markdown: str, env: _Env) -> str:
    parser = _make_parser()
    cleaned = rewrite(
        markdown, env["left_out"], lambda text: parser.renderInline(text, {"page": ""})
    )
    return str(parser.render(widen_tables(cleaned, parser), env))


@cache
def _make_parser(*, is_prose: bool = True) -> MarkdownIt:
    options = {"maxNesting": _DEEPEST_LISTS}
    parser = MarkdownIt("commonmark", options, renderer_cls=_Writer)
    parser.enable(["table", "strikethrough"])
    parser.inline.ruler.at("emphasis", _read_emphasis)
    parser.inline.ruler.before("escape", "formula", _read_formula)
    parser.core.ruler.at("inline", _parse_inline)
    parser.block.ruler.before(
        "fence", "formula_lines", _read_formula_lines, {"alt": ["paragraph", "list"]}
    )
    return parser if is_prose else parser.disable(["emphasis", "strikethrough", "image", "link"])


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


def _read_formula(state: StateInline, silent: bool) -> bool:
    """Read a formula, which is not Markdown: it is shown as its author wrote it."""
    match = _FORMULA.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        state.push("formula", "", 0).content = match[0]
    state.pos = match.end()
    return True


def _read_formula_lines(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read a formula of several lines as code; its text follows an empty line."""
    end = min(end, start + _MOST_LINES_OF_FORMULA)
    lines = state.getLines(start, end, state.blkIndent, False).split("\n")
    opening = None if state.is_code_block(start) else _FORMULA_LINE.match(lines[0])
    if opening is None:
        return False
    closing = opening[1].replace("[", "]").replace("begin", "end")
    is_alone = lines[0].strip() == opening[1]
    for at, line in enumerate(lines[1:], 1):
        if not (is_alone or (line.strip() and not silent)):
            break
        if line.rstrip(" \t\r.,;").endswith(closing):
            if not silent:
                token = state.push("fence", "code", 0)
                token.info, token.content = "math", "\n".join((*lines[: at + 1], ""))
                state.line = start + at + 1
            return True
    return False


def _parse_inline(state: StateCore) -> None:
    """Parse the text of each block; lines of fields, such as those of exported databases, stay."""
    for token in state.tokens:
        if token.type == "inline":
            # A line of a megabyte is not prose: each star or bracket would be a token.
            parser = _make_parser(is_prose=len(token.content) <= _LONGEST_PROSE)
            token.children = []
            parser.inline.parse(token.content, parser, state.env, token.children)
            is_labelled = _LABELLED_LINES.fullmatch(token.content) is not None
            for child in token.children if is_labelled else ():
                child.type = "hardbreak" if child.type == "softbreak" else child.type


def _find_role(tokens: _Tokens, idx: int) -> str:
    """Return the role before inline code, such as `{ref}`, or an empty string."""
    is_before_code = idx + 1 < len(tokens) and tokens[idx + 1].type == "code_inline"
    text = tokens[idx].content[-50:] if is_before_code and tokens[idx].type == "text" else ""
    match = _ROLE.search(text)
    return "" if match is None else match[1]


def _write_directive(name: str, argument: str, content: str, env: _Env) -> str:
    """Write a fence that is a directive of a documentation generator, such as a box or a tab."""
    options, lines = take_options(content.split("\n"))
    body = "\n".join(lines)
    if name in _LEFT_OUT:
        env["left_out"].add("directive", _LEFT_OUT[name], name=f"{name} {argument}"[:_LONGEST_NAME])
    if name in _LEFT_OUT or name == "toctree":
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
    return _write_html(f"{name_object(argument, options)}\n\n{body}", inside)


def _write_list_table(caption: str, body: str, env: _Env) -> str:
    """Write a nested list as a table: `* -` begins a row, `-` a cell."""
    parser = _make_parser()
    tokens = parser.parse(body, env)
    for token in tokens:
        if token.type.startswith(("bullet_list", "list_item")) and token.level < len(_TABLE_TAGS):
            token.tag, token.hidden = _TABLE_TAGS[token.level], not _TABLE_TAGS[token.level]
    head = f"<caption>{parser.renderInline(caption, env)}</caption>" if caption else ""
    written = str(parser.renderer.render(tokens, parser.options, env))
    return written.replace("<table>", f"<table>{head}", 1)


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


def _show_component(match: re.Match[str], tag: str = "span") -> str:
    """Return the tag of a component with the texts in its attributes as an element."""
    shown = _make_parser().renderInline(name_component(match[0]), {"page": ""})
    opening = " " if match[0].endswith("/>") else match[0]
    return f"{opening}<{tag}>{shown}</{tag}> " if shown else opening
