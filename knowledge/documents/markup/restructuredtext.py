"""Reads reStructuredText with docutils, which the extra `restructuredtext` installs.

docutils writes HTML for the HTML reader. Nothing is included, raw output is dropped and no
configuration file is read. Unknown roles and directives (those of documentation generators) are
read as their text.
"""

import io
import re
import textwrap
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial

from knowledge.documents.decoding import decode
from knowledge.documents.errors import MissingExtraError, WrongFormatError
from knowledge.documents.markup import html
from knowledge.documents.markup.fences import describe_code, name_object, take_options, write_code
from knowledge.documents.page import LeftOutCounts, Page, first_heading

try:
    from docutils import nodes
    from docutils.core import publish_doctree, publish_from_doctree
except ImportError as error:
    raise MissingExtraError(
        "reStructuredText needs the extra 'restructuredtext': install refdesk[restructuredtext]"
    ) from error

_KNOWN_ROLES = (
    "math|sub|sup|subscript|superscript|strong|emphasis|title|title-reference|code|literal|pep|rfc"
)
_ROLE = re.compile(
    rf":(?!(?:{_KNOWN_ROLES}):)([A-Za-z][\w:+.-]{{0,60}}):`([^`\n]{{1,500}})`", re.ASCII
)
_STATED_ROLE = re.compile(
    r"^\.\.[ \t]{1,40}role::[ \t]{1,40}([\w:+.-]{1,60})(?:\([ \t]{0,40}(raw)?)?", re.MULTILINE
)
_SUBSTITUTION = re.compile(
    r"^\.\. \|[^|\n]{1,200}\| (?:replace|unicode)::[^\n]*\n(?:[ \t][^\n]*\n)*", re.MULTILINE
)
_DEFINED = re.compile(r"(?:\.\. \|[^|\n]{1,200}\| )?([\w-]{1,60})::")
"""The directive in the definition of a substitution."""
# In Sphinx, this directive describes a class of Python; in docutils, it states a class of CSS.
_CLASS = re.compile(r"^([ \t]*\.\. )(?=class::[ \t]+[\w.]{0,100}[A-Z(])", re.MULTILINE)
_TARGET = re.compile(r"(?<!\s)\s*+<[^<>]*>\Z")
_STRUCK_ROLES = ("del", "s", "strike", "strikethrough", "line-through")
_QUOTED_ROLES = frozenset({"ref", "doc", "term", "guilabel", "menuselection", "abbr", "numref"})
_NAVIGATION = frozenset({"toctree", "index"})
"""Directives whose content is not text of the page."""
_OMITTED = {
    "include": "other files are not included",
    "raw": "raw output is not read",
    "autosummary": "generated from code",
    "image": "the options cannot be read",
    "figure": "the options cannot be read",
}
"""Directives that are left out, with the reason."""
_LISTINGS = frozenset(
    {"code-block", "code-tab", "sourcecode", "prompt", "parsed-literal", "ipython", "doctest"}
)
_CONDITIONAL = frozenset({"only", "ifconfig"})
_TAGS = frozenset({"html", "format_html", "builder_html"})
"""Tags of `only` that are set for HTML."""
_VERSION_NOTES = frozenset(
    {"versionadded", "versionchanged", "versionremoved", "deprecated", "deprecated-removed"}
)
"""Directives about a version; only their names identify them."""
_DEEPEST_DIRECTIVE = 4
_LONGEST_NAME = 200
_LONGEST_LINE = 8000
_SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "_disable_config": True,
    "halt_level": 5,
    "report_level": 5,
    "syntax_highlight": "none",
    "line_length_limit": 2 * _LONGEST_LINE,
    "embed_stylesheet": False,
    "stylesheet_path": "",
}


def read(data: bytes, source: str) -> Page:
    """Return the page; its title is its first heading."""
    text, warnings = decode(data)
    try:
        left_out = LeftOutCounts()
        tree = _parse(_prepare(text), left_out)
        _simplify(tree)
        written = publish_from_doctree(tree, writer="html5", settings_overrides=_settings())
    except RecursionError as error:
        raise WrongFormatError("the document is nested too deeply") from error
    page = html.read(written, source)
    left_out.take(page.left_out)
    return replace(
        page,
        left_out=left_out.list(),
        title=first_heading(page.blocks),
        language=None,
        warnings=(*warnings, *page.warnings),
    )


def _settings() -> dict[str, object]:
    return {**_SETTINGS, "warning_stream": io.StringIO()}


def _parse(
    markup: str, left_out: LeftOutCounts, depth: int = 0, definitions: str = ""
) -> nodes.document:
    """Return the document tree, in which unknown directives are replaced by their content.

    Directives that cannot be read are added to `left_out`; `definitions` are those of the
    substitutions of the whole document.
    """
    definitions = definitions or "".join(_SUBSTITUTION.findall(markup))
    markup = f"{markup}\n\n{definitions}" if depth else markup
    tree = publish_doctree(markup, settings_overrides=_settings())
    for message in list(tree.findall(nodes.system_message)):
        unread = next(iter(message.findall(nodes.literal_block)), None)
        if unread is None or message.parent is None:
            continue
        is_directive = unread.astext().startswith(".. ")
        text = unread.astext()
        if (defined := _DEFINED.match(text)) is not None:
            if text.startswith(".. "):
                left_out.add("substitution", _OMITTED.get(defined[1], "cannot be read"))
            message.parent.remove(message)
            continue
        held = _read_directive(text, left_out, depth, definitions) if is_directive else [unread]
        message.parent.replace(message, held)
    return tree


def _read_directive(
    markup: str, left_out: LeftOutCounts, depth: int, definitions: str
) -> list[nodes.Node]:
    """Return the content of an unknown directive: its argument and its parsed body."""
    first, _, rest = markup.partition("\n")
    name, _, argument = (part.strip() for part in first[3:].partition("::"))
    options, lines = take_options(textwrap.dedent(rest).split("\n"))
    body = "\n".join(lines).strip()
    if name in _LISTINGS:
        return [_write_code(describe_code(argument, options), body)]
    if name in _NAVIGATION:
        return []
    if name in _OMITTED or depth >= _DEEPEST_DIRECTIVE:
        left_out.add(
            "directive",
            _OMITTED.get(name, "nested too deeply"),
            name=f"{name} {argument}"[:_LONGEST_NAME],
        )
        return []
    if name in _CONDITIONAL:
        if name == "ifconfig" or not _check_tags(argument):
            reason = "the condition does not hold for HTML, or cannot be checked"
            left_out.add("directive", reason, name=f"{name} {argument}"[:_LONGEST_NAME])
            return []
        argument = ""
    if name in _VERSION_NOTES:
        argument = f"{name} {argument}"
    described = name_object(argument, options)
    return list(_parse(f"{described}\n\n{body}", left_out, depth + 1, definitions).children)


def _check_tags(expression: str) -> bool:
    """Return whether the tags of an `only` directive hold for HTML, like `html and not latex`."""
    return any(
        all(
            (tag.removeprefix("not ").strip() in _TAGS) is not tag.startswith("not ")
            for tag in tags
        )
        for tags in (part.split(" and ") for part in expression.strip("() ").split(" or "))
    )


def _write_code(info: str, text: str) -> nodes.raw:
    return nodes.raw("", write_code(info, text), format="html")


def _simplify(tree: nodes.document) -> None:
    """Prepare a tree for the HTML reader: code, boxes headed by their kind, marks of footnotes."""
    for code in list(tree.findall(nodes.FixedTextElement)):
        names = (name for name in code["classes"] if name not in ("code", "highlight"))
        if not isinstance(code, nodes.comment | nodes.raw):
            code.parent.replace(code, _write_code(next(names, ""), code.astext()))
    for formula in list(tree.findall(nodes.math)):
        # docutils fails at formulas that it cannot convert to MathML.
        formula.parent.replace(formula, nodes.literal("", formula.astext()))
    for span in tree.findall(nodes.literal):
        span["classes"] = ["code"]
    for classifier in tree.findall(nodes.classifier):
        classifier.insert(0, nodes.Text(" : "))
    _label_footnotes(tree)
    for box in list(tree.findall(nodes.Element)):
        is_box = isinstance(box, nodes.Admonition) and not isinstance(box, nodes.admonition)
        if is_box and box.parent is not None:
            # A box without a stated title is headed by its kind, as readers see it.
            _insert_label(box, f"{type(box).__name__.capitalize()}:")
            box.parent.replace(box, nodes.container("", *box.children))


def _label_footnotes(tree: nodes.document) -> None:
    """Write the marks of footnotes as text: `16[1]` and `[1] With chairs.`"""
    for mark in list(tree.findall(nodes.footnote_reference)):
        mark.parent.replace(mark, nodes.Text(f"[{mark.astext()}]"))
    for label in list(tree.findall(nodes.label)):
        footnote = label.parent
        footnote.remove(label)
        _insert_label(footnote, f"[{label.astext()}]")


def _insert_label(element: nodes.Element, label: str) -> None:
    first = element.children[0] if element.children else None
    if isinstance(first, nodes.paragraph):
        first.insert(0, nodes.Text(f"{label} "))
    else:
        element.insert(0, nodes.paragraph("", label))


def _prepare(text: str) -> str:
    stated = dict(_STATED_ROLE.findall(text))
    raw = {"raw", "raw-html", *(name for name, is_raw in stated.items() if is_raw)}
    named = _CLASS.sub(r"\1py:", text)
    lines = (part for line in named.split("\n") for part in _split_line(line))
    written = _ROLE.sub(partial(_without_role, raw=raw, stated=stated), "\n".join(lines))
    used = [name for name in _STRUCK_ROLES if f":{name}:`" in written and name not in stated]
    return "".join(f".. role:: {name}\n\n" for name in used) + written


def _without_role(match: re.Match[str], raw: Collection[str], stated: Collection[str]) -> str:
    """Return the visible text of a role; raw output for another format is not text.

    Roles that the page defines, or that strike text out, stay as they are.
    """
    role, text = match[1].rpartition(":")[2], match[2]
    if match[1] in raw:
        return ""
    if match[1] in stated or match[1] in _STRUCK_ROLES:
        return match[0]
    shown = _TARGET.sub("", text).lstrip("~!") or text
    return shown if role in _QUOTED_ROLES else f"``{shown}``"


def _split_line(line: str) -> Iterator[str]:
    """Return the parts of a line, because docutils rejects very long lines."""
    start = 0
    while len(line) - start > _LONGEST_LINE:
        space = line.rfind(" ", start + 1, start + _LONGEST_LINE)
        end = space if space > start else start + _LONGEST_LINE
        yield line[start:end].strip() if start else line[:end]
        start = end
    yield line[start:].strip() if start else line
