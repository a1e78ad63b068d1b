"""The rules of language: words and phrases that code and documentation do not use.

`python -m tests.language_rules` prints the violations of the packages that are named, or of all;
with `--tighten` it lowers the allowances of `tests/language_allowances.toml` to the present counts.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.test_project_rules import PACKAGES, ROOT, list_tracked

ALLOWANCES = Path(__file__).parent / "language_allowances.toml"
PRIVATE_WORDS = frozenset(
    {
        "booth", "cabinet", "cast", "crew", "deaf", "door", "hand", "hands", "heard", "hears",
        "house", "nursery", "pulse", "said", "shelf", "staff", "tell", "telling", "tells", "told",
        "understudy", "wall",
    }
)  # fmt: skip
"""Words that no function, class, argument or variable is named by."""
PHRASES = (
    r"of (?:its|their|his|our|your) own",
    r"(?:so|as) many",
    r"on (?:the|its|their) way",
    r"stands? in",
    r"at hand",
    r"beside",
    r"shall",
    r"for ever",
    r"tells?|told|telling",
    r"hears?|heard",
    r"whoever",
    r"what (?:is|was|has|came|comes|stands|waits)",
    r"doors?",
    r"houses?|booths?|cabinets?|crews?|nurser(?:y|ies)|shel(?:f|ves)|understud(?:y|ies)",
    r"save (?:what|where|for|that)",
    r"afresh|anew",
)
"""Phrases that no docstring, comment or page contains; each is matched as whole words."""
PHRASE = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b", re.IGNORECASE)
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
OF_TESTS_AND_BENCHMARKS = frozenset(
    {
        "door", "doors", "hear", "heard", "hearing", "hears", "tell", "telling", "tells", "told",
        "unheard", "staff",
    }
)  # fmt: skip
"""Words that stand neither in names nor in prose of tests and benchmarks."""
WORD = re.compile(r"[a-z]+", re.IGNORECASE)
PHRASE_OF_TESTS = re.compile(
    r"\b(?:of (?:its|their|his|our|your) own|so many|on (?:the|its|their) way|stands? in|at hand"
    r"|beside|shall|for ever|staff|afresh|anew|nurser(?:y|ies)|understud(?:y|ies))\b",
    re.IGNORECASE,
)
"""Phrases of `PHRASES`, and private words, that no prose of tests and benchmarks contains."""
GENERATED = frozenset({"contracts.md", "flow.md", "settings.md"})
PAGES = "pages"
"""The name under which the hand-written pages have their allowance."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A word or phrase at a line of a file."""

    path: str
    line: int
    found: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.found}"


def violations_of(package: str) -> list[Violation]:
    """Return the violations of a package, or of the hand-written pages."""
    if package == PAGES:
        return [found for page in hand_written_pages() for found in check_text(page)]
    return [
        found
        for path in list_tracked("*.py")
        if path.relative_to(ROOT).parts[0] == package
        for found in check_module(name_of(path), path.read_text("utf-8"))
    ]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def hand_written_pages() -> Iterator[Path]:
    """Yield the pages of documentation that no program writes."""
    for path in sorted(list_tracked("*.md")):
        parts = path.relative_to(ROOT).parts
        if parts[0] != "examples" and "measurements" not in parts and path.name not in GENERATED:
            yield path


def check_text(page: Path) -> Iterator[Violation]:
    """Yield the phrases on a page, without its code."""
    text = CODE.sub(lambda code: "\n" * code[0].count("\n"), page.read_text("utf-8"))
    for number, line in enumerate(text.splitlines(), 1):
        for found in PHRASE.findall(line):
            yield Violation(name_of(page), number, found.lower())


def check_module(name: str, source: str) -> Iterator[Violation]:
    """Yield the private words in names and the phrases in prose of a module."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for line, identifier in names_of(node):
            for word in sorted(PRIVATE_WORDS & set(words_of(identifier))):
                yield Violation(name, line, f"{word} in {identifier}")
    for line, text in prose_of(tree, source):
        for found in PHRASE.findall(CODE.sub("", text)):
            yield Violation(name, line, found.lower())


def check_test_module(name: str, source: str) -> Iterator[Violation]:
    """Yield the private words in names and prose of a module of the tests or benchmarks."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for line, identifier in names_of(node):
            for word in sorted(OF_TESTS_AND_BENCHMARKS & set(words_of(identifier))):
                yield Violation(name, line, f"{word} in {identifier}")
    for line, text in prose_of(tree, source):
        found = {word.lower() for word in WORD.findall(CODE.sub("", text))}
        for word in sorted(OF_TESTS_AND_BENCHMARKS & found):
            yield Violation(name, line, word)
        for phrase in PHRASE_OF_TESTS.findall(CODE.sub("", text)):
            yield Violation(name, line, phrase.lower())


def names_of(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the names that a node binds; imported names belong to others."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.lineno, node.name
    elif isinstance(node, ast.arg):
        yield node.lineno, node.arg
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.lineno, node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.lineno, node.attr


def words_of(identifier: str) -> list[str]:
    """Return the words of an identifier, in lower case."""
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", identifier).strip("_").lower().split("_")


def prose_of(tree: ast.Module, source: str) -> Iterator[tuple[int, str]]:
    """Yield the docstrings, the strings below attributes, and the comments of a module."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str() as text)):
                yield node.lineno, text
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def read_allowances() -> dict[str, int]:
    """Return how many violations each package may have."""
    return {name: int(count) for name, count in tomllib.loads(ALLOWANCES.read_text()).items()}


def tighten() -> None:
    """Lower each allowance to the present count; none is raised."""
    allowed = read_allowances()
    head, *_ = ALLOWANCES.read_text().partition("\n\n")
    lines = [
        f"{name} = {min(allowed.get(name, count), count)}"
        for name in sorted({PAGES, *PACKAGES})
        for count in [len(violations_of(name))]
    ]
    ALLOWANCES.write_text(head + "\n\n" + "\n".join(lines) + "\n")


def main(words: Sequence[str]) -> int:
    """Print violations by package, or lower the allowances."""
    parser = argparse.ArgumentParser(prog="python -m tests.language_rules", description=__doc__)
    parser.add_argument("packages", nargs="*", default=[])
    parser.add_argument("--tighten", action="store_true", help="lower the allowances")
    chosen = parser.parse_args(words)
    if chosen.tighten:
        tighten()
        return 0
    for package in chosen.packages or sorted({PAGES, *PACKAGES}):
        found = violations_of(package)
        kinds = Counter(one.found for one in found).most_common(5)
        sys.stdout.writelines(f"{one}\n" for one in found if chosen.packages)
        sys.stdout.write(f"{package}: {len(found)} {kinds}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
