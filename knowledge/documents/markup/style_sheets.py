"""Applies the style sheets of an HTML page, embedded ones and files, to its elements.

Conditions (`@media`) are evaluated for a desktop screen. Layers have no effect on the order of
rules.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

FindFile = Callable[[str], bytes | None]
"""Returns the file at an address relative to the page, without its query, or None."""
Declarations = Mapping[str, str]

_NAMES = (
    "display visibility content-visibility opacity filter clip clip-path -webkit-clip-path "
    "transform scale zoom position float left top right bottom margin-left margin-top text-indent "
    "width height max-width max-height overflow overflow-x overflow-y font font-size color "
    "fill background background-color background-image -webkit-text-fill-color"
)
# These never hide an element.
_STATING = frozenset(
    {"list-style", "list-style-type", "vertical-align", "white-space", "text-decoration", "content"}
    | {"counter-reset", "counter-set", "counter-increment", "direction", "unicode-bidi"}
)
_PROPERTIES = _STATING.union(_NAMES.split())
SPACING = re.compile(r"(?:margin|padding|border)(?:-(?:left|right|inline))?\Z")
"""The properties that set inline text apart from the text beside it."""
STRUCK = "line-through"
"""The decoration of struck-out text."""
IMPORTANT = "!important"
AT_FIRST = "at first"
# Most style sheets set these only to other values.
_NEEDED = {"text-decoration": STRUCK, "white-space": "pre", "fill": "none"}
_HIDDEN_BY = {
    "display": ("none",), "opacity": ("0", "0%", ".0"),
    "max-height": ("0", "0px"), "height": ("0", "0px"),
}  # fmt: skip
_MOST_STEPS = 1_000_000_000
_STEPS_OF_MATCH = 300
_STEPS_OF_ELEMENT = 10
_MOST_SHEETS = 100
_MOST_CHARACTERS = 1_000_000
_LONGEST_STYLE = 10_000
_LONGEST_SELECTOR = 20_000
_LONGEST_HEAD = 20_000
_DEEPEST_IMPORT = 4
_SHEETS = "style, link[rel~=stylesheet i]"
_CODE_TYPES = ("javascript", "ecmascript", "module")
_EVENTS = (
    "[onclick], [ondblclick], [onmouseover], [onmouseenter], [onmousedown], [onfocus], [onchange], "
    "[oninput], [onkeydown], [onkeyup], [onload], [ontoggle], [href^='javascript:' i]"
)
_IMPORT = re.compile(
    r"@import\s{1,9}(?:url\(\s{0,9})?[\"']?([^\"'()\s;]{1,500})[\"']?\s{0,9}\)?([^;{}]{0,500});"
)
_COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*(?:\*/|\Z)")
_BRACE = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?|([{}])")
_AT_RULES = re.compile(r"\A(?:\s*@[^;]*;)+")
_SELECTOR = re.compile(r"(?:[^,()]|\([^()]*(?:\([^()]*\)[^()]*)*\))+")
_WHEN = re.compile(
    r":(?:hover|focus-within|focus-visible|focus|active|target|checked)\b|\[open\]", re.IGNORECASE
)
_GENERATED = re.compile(r"::?(before|after)\Z")
_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_NAME = re.compile(r"[.#]-?[^\W\d][\w-]*")
_NAMED = re.compile(rf"{_NAME.pattern}|(?<![\w:.#-])[a-z][\w-]*")
_COMPOUND = re.compile(r"[^\s>+~,()]+")
_ATTRIBUTE = re.compile(r"\[[^\[\]]*\]")
_OF_SIBLINGS = re.compile(r"~|:nth-|-of-type")
_POSITION = re.compile(r":nth-[a-z-]{1,20}\([\w\s+-]{0,40}")
_WEIGHTLESS = re.compile(r":where\([^()]*\)")
_IDENTIFIER = re.compile(r"#[\w-]")
_CLASS = re.compile(r"[.\[][\w-]|:(?!not\b|is\b|has\b)[\w-]")
_ELEMENT = re.compile(r"(?:^|[\s>+~])[a-zA-Z]")
_DECLARATION = re.compile(r"(?:\A|;)\s*([\w-]{1,60})\s*:((?:[^;\"']|\"[^\"]*\"|'[^']*')*)")
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))")
_CAMEL = re.compile(r"([a-z])([A-Z])")
_ICON = re.compile("[\ue000-\uf8ff\U000f0000-\U0010ffff]")
_WIDTH = re.compile(r"\((min|max)-width\s*:\s*(\d{1,6}(?:\.\d{0,3})?)(px|em|rem)\)")
_SCREEN_PIXELS = 1280
_HOLDING = frozenset({"", "all", "screen", "onlyscreen", "(prefers-color-scheme:light)"})


@dataclass(frozen=True, slots=True)
class _Rule:
    """A selector with its declarations; the rule with the highest `rank` applies.

    `generated` is `before` or `after` if the rule is for the text generated there. An element that
    the rule is for, or one around or before it, has each of `names`, which are ids and classes.
    """

    selector: str
    declarations: Declarations
    generated: str
    is_dynamic: bool
    rank: tuple[bool, int, int, int]
    names: frozenset[str]


class AppliedSheets:
    """The declarations of the style sheets of a page for its elements.

    The scripts of a website open what its style sheets hide, such as tabs and answers, and nothing
    says which of it. So style sheets in files hide elements only on pages without scripts, and in
    books. `is_complete` states whether all style sheets are known and may hide elements. The most
    specific rules are applied first; `unapplied` is the number of those that would take too long.
    """

    def __init__(
        self, tree: LexborHTMLParser, find_file: FindFile, *, is_book: bool = False
    ) -> None:
        self.is_complete = True
        self._declarations: list[Declarations] = []
        self._stated: dict[tuple[int, str], list[int]] = {}
        self._cascaded: dict[tuple[int, ...], Declarations] = {}
        may_hide, self._elements = is_book or not _has_scripts(tree), _Elements(tree)
        names = self._elements.counts.keys()
        rules: list[tuple[_Rule, bool]] = []
        for css, is_file in islice(_list_sheets(tree, find_file), _MOST_SHEETS):
            is_whole = may_hide or not is_file
            self.is_complete = self.is_complete and is_whole and css is not None
            found = (rule for rule in _parse_rules(css or "") if rule.names <= names)
            rules += ((rule, is_whole) for rule in found)
        rules.sort(key=lambda rule: rule[0].rank)
        self.generates_text = any(rule.generated for rule, _ in rules)
        self.unapplied = 0
        left = _MOST_STEPS
        for rule, is_whole in reversed(rules):
            steps = self._elements.estimate(rule.selector)
            if steps > left:
                self.unapplied += 1
            else:
                matches = self._apply(tree, rule, is_whole=is_whole)
                left -= steps + _STEPS_OF_MATCH * matches
        self.is_complete = self.is_complete and not self.unapplied

    def find(self, node: LexborNode, place: str = "") -> Declarations:
        """Return what is declared for an element, for the text generated `before` or `after` its
        content, or for the element `AT_FIRST`, before it is opened.
        """
        stated = tuple(self._stated.get((node.mem_id, place), ()))
        if stated not in self._cascaded:
            self._cascaded[stated] = cascade(*(self._declarations[at] for at in reversed(stated)))
        return self._cascaded[stated]

    def _apply(self, tree: LexborHTMLParser, rule: _Rule, *, is_whole: bool) -> int:
        """Apply a rule; return the number of elements that match it."""
        is_kept = is_whole or rule.generated
        declared = {rule.generated: rule.declarations if is_kept else _leave_shown(rule)}
        if self.generates_text and not (rule.is_dynamic or rule.generated):
            declared[AT_FIRST] = rule.declarations
        try:
            nodes = tree.css(rule.selector)
        except SelectolaxError:
            return 0
        for place, declarations in declared.items():
            at = len(self._declarations)
            self._declarations.append(declarations)
            for node in nodes:
                self._stated.setdefault((node.mem_id, place), []).append(at)
        return len(nodes)


class _Elements:
    """The number of elements of a page with each tag, class and id, and how deeply they are nested,
    which limits the time for finding those that match a selector. `counts` are their numbers.
    """

    def __init__(self, tree: LexborHTMLParser) -> None:
        self.counts: Counter[str] = Counter()
        self._nested: dict[str, int] = {}
        self._widest = 1
        around: Counter[str] = Counter()
        stack: list[tuple[LexborNode | None, frozenset[str]]] = [(tree.root, frozenset())]
        while stack:
            node, left = stack.pop()
            around.subtract(left)
            if node is None:
                continue
            names, children = _list_names(node), list(node.iter())
            self.counts.update(names)
            around.update(names)
            self._nested.update(
                (name, max(self._nested.get(name, 0), around[name])) for name in names
            )
            self._widest = max(self._widest, len(children))
            stack += ((None, names), *((child, frozenset()) for child in children))

    def estimate(self, selector: str) -> int:
        """Return an upper limit of the steps (of some nanoseconds) that take to find the elements
        that match a selector: it is compared with each way to choose its parts around an element.
        """
        elements, depth = self.counts.get("*", 0), self._nested.get("*", 0)
        plain = _ATTRIBUTE.sub("", selector)
        subject = _COMPOUND.findall(_BRACKETS.sub("", _BRACKETS.sub("", plain)))[-1:]
        steps = depth * _count("".join(subject), self.counts, elements)
        factors = [self._widest] * len(_OF_SIBLINGS.findall(plain))
        factors += [elements] * plain.count(":has(")
        compounds = _COMPOUND.findall(_POSITION.sub("", plain))[:-1]
        factors += (_count(compound, self._nested, depth) for compound in compounds)
        for factor in factors:
            steps = min(steps * factor, _MOST_STEPS + 1)
        return steps + _STEPS_OF_ELEMENT * elements


def cascade(*sources: Declarations) -> dict[str, str]:
    """Return the declarations that apply: a later one overrides an earlier one, unless only the
    earlier one is important.
    """
    styles: dict[str, str] = {}
    for source in sources:
        for name, value in source.items():
            if value.endswith(IMPORTANT) or not styles.get(name, "").endswith(IMPORTANT):
                styles[name] = value
    return styles


@lru_cache(maxsize=1000)
def parse_declarations(style: str) -> dict[str, str]:
    """Return the properties of a style attribute, or of one rule, in lower case; `content` keeps
    its case, and an important value ends with `!important`.

    An attribute of JSX, such as `{{display: "none"}}`, is read as well.
    """
    text = style[:_LONGEST_STYLE]
    jsx = text.lstrip().startswith("{")
    if jsx:
        text = text.strip("{} \t\n").replace("'", "").replace('"', "")
        text = _CAMEL.sub(r"\1-\2", text)
    text = _ESCAPE.sub(_unescape, _COMMENT.sub("", text))
    declarations: list[dict[str, str]] = []
    for stated, value in _DECLARATION.findall(text.replace(",", ";") if jsx else text):
        name = stated.lower().removesuffix("-line")
        text = value.strip().replace("! important", IMPORTANT)
        declarations.append({name: text if name == "content" else text.lower()})
    return cascade(*declarations)


def _has_scripts(tree: LexborHTMLParser) -> bool:
    types = (node.attributes.get("type") or _CODE_TYPES[0] for node in tree.css("script"))
    runs = any(name in stated.lower() for stated in types for name in _CODE_TYPES)
    return runs or tree.css_first(_EVENTS) is not None


def _list_names(node: LexborNode) -> frozenset[str]:
    """Return the names by which selectors find an element."""
    stated = node.attributes
    classes = (f".{name}" for name in (stated.get("class") or "").split())
    return frozenset(("*", node.tag or "", f"#{stated.get('id')}", *classes))


def _count(compound: str, numbers: Mapping[str, int], default: int) -> int:
    """Return how many elements can match a part of a selector, given the numbers by name."""
    names = _NAMED.findall(compound) if "\\" not in compound else ()
    return max(1, min((numbers.get(name, 0) for name in names), default=default))


def _list_sheets(tree: LexborHTMLParser, find_file: FindFile) -> Iterator[tuple[str | None, bool]]:
    """Yield the text of each style sheet in order, None if it cannot be read, and whether it is a
    file.
    """
    for node in tree.css(_SHEETS):
        stated = node.attributes
        is_off = "disabled" in stated or "alternate" in (stated.get("rel") or "").lower().split()
        is_instead = node.parent is not None and node.parent.tag == "noscript"
        if not (is_off or is_instead) and _media_hold(stated.get("media") or ""):
            embedded = node.text() if node.tag == "style" else None
            yield from _read_sheet(embedded, _cut_query(stated.get("href") or ""), find_file)


def _read_sheet(
    embedded: str | None, address: str, find_file: FindFile, depth: int = 0
) -> Iterator[tuple[str | None, bool]]:
    """Yield the style sheets that a style sheet imports, then its own text."""
    data = find_file(address) if embedded is None else None
    css = embedded if data is None else data.decode("utf-8-sig", "replace")
    for imported, media in _IMPORT.findall(_COMMENT.sub("", (css or "")[:_LONGEST_HEAD])):
        if depth < _DEEPEST_IMPORT and _media_hold(media):
            joined = posixpath.join(posixpath.dirname(address), _cut_query(imported))
            yield from _read_sheet(None, posixpath.normpath(joined), find_file, depth + 1)
    yield css, embedded is None


def _cut_query(address: str) -> str:
    return address.partition("#")[0].partition("?")[0].strip()


@lru_cache(maxsize=64)
def _parse_rules(css: str) -> tuple[_Rule, ...]:
    """Return the rules of a style sheet that may change which text is shown; the pages of a site
    share their style sheets.
    """
    rules: list[_Rule] = []
    properties = {name for name in _PROPERTIES if _NEEDED.get(name, "") in css}
    for selectors, body in _list_blocks(_COMMENT.sub("", css[:_MOST_CHARACTERS])):
        styles = parse_declarations(body)
        kept = {
            name: value
            for name, value in styles.items()
            if name in properties or SPACING.match(name)
        }
        if not properties.isdisjoint(kept) and not _ICON.search(kept.get("content", "")):
            parts = _SELECTOR.findall(selectors[:_LONGEST_SELECTOR])
            rules += filter(None, (_make_rule(part.strip(), kept) for part in parts))
    return tuple(rules)


def _list_blocks(css: str) -> Iterator[tuple[str, str]]:
    """Yield the selectors and declarations of the rules whose conditions are met; the selectors of
    a rule inside another one contain those of the outer one.
    """
    opened: list[str | None] = [""]
    begin = 0
    for brace in _BRACE.finditer(css):
        if not brace[1]:
            continue
        outer, text, begin = opened[-1], css[begin : brace.start()], brace.end()
        body, prelude = text, ""
        if brace[1] == "{":
            text = text if outer else _AT_RULES.sub("", text)
            body, _, prelude = text.rpartition(";") if outer else ("", "", text)
        if outer and body.strip():
            yield outer, body
        if brace[1] == "{":
            opened.append(_nest(outer, prelude.strip()))
        elif len(opened) > 1:
            opened.pop()


def _nest(outer: str | None, prelude: str) -> str | None:
    """Return the selectors of a block inside another one, or None if it does not apply."""
    if outer is None or len(outer) + len(prelude) > _LONGEST_SELECTOR:
        return None
    if prelude.startswith("@"):
        return outer if _holds(prelude) else None
    if not outer:
        return prelude
    around = f":is({outer})"
    return prelude.replace("&", around, 1) if "&" in prelude else f"{around} :is({prelude})"


def _make_rule(selector: str, styles: Declarations) -> _Rule | None:
    """Return a rule; one with a pseudo-class such as `:hover` is kept only if it shows an
    element.
    """
    is_dynamic = _WHEN.search(selector) is not None
    generated = _GENERATED.search(selector)
    if generated is not None:
        selector = selector[: generated.start()] or "*"
    if not selector or "::" in selector or (is_dynamic and (generated or not _shows(styles))):
        return None
    selector = _WHEN.sub("", selector) or "*"
    bare = _BRACKETS.sub("", _BRACKETS.sub("", selector))
    names = () if "\\" in selector else _NAME.findall(bare)
    weighed = _WEIGHTLESS.sub("", selector)
    rank = (
        is_dynamic,
        len(_IDENTIFIER.findall(weighed)),
        len(_CLASS.findall(weighed)),
        len(_ELEMENT.findall(weighed)),
    )
    place = generated[1] if generated else ""
    return _Rule(selector, styles, place, is_dynamic, rank, frozenset(names))


def _leave_shown(rule: _Rule) -> Declarations:
    """Return the declarations of a rule that do not hide an element."""
    return {
        name: value
        for name, value in rule.declarations.items()
        if name in _STATING
        or SPACING.match(name)
        or (name == "display" and not value.startswith("none"))
    }


def _shows(styles: Declarations) -> bool:
    return styles.get("visibility") == "visible" or any(
        styles.get(name, hidden[0]) not in hidden for name, hidden in _HIDDEN_BY.items()
    )


def _holds(condition: str) -> bool:
    name, _, rest = condition.partition(" ")
    if name.lower() in ("@supports", "@layer", "@container", "@scope"):
        return True
    return name.lower() == "@media" and _media_hold(rest)


def _media_hold(media: str) -> bool:
    return any(_medium_holds(medium) for medium in media.lower().split(","))


def _medium_holds(medium: str) -> bool:
    for kind, number, unit in _WIDTH.findall(medium):
        pixels = float(number) * (1 if unit == "px" else 16)
        if (pixels > _SCREEN_PIXELS) if kind == "min" else (pixels < _SCREEN_PIXELS):
            return False
    rest = (part.replace(" ", "") for part in re.split(r"\band\b", _WIDTH.sub("", medium)))
    return all(part in _HOLDING for part in rest)


def _unescape(match: re.Match[str]) -> str:
    code = int(match[1] or "0", 16)
    return match[2] or (chr(code) if 0 < code < 0x110000 else "")
