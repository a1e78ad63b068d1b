"""The naming rules: one professional language, kept by a machine."""

import ast
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from deploy.chat_channels import CHAT_CHANNELS
from tests.test_project_rules import PACKAGES, ROOT, list_tracked

PARTICIPLES = frozenset(
    {
        "told", "said", "heard", "known", "shown", "kept", "given", "taken", "made", "seen",
        "found", "held", "sent", "built", "done", "written", "chosen", "lost", "met", "paid",
        "understood", "left", "beside",
    }
)  # fmt: skip
"""Irregular participles and adverbs that are no verb in the imperative."""
VERBS_IN_ED = frozenset({"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed"})
METAPHORS = frozenset(
    {"house", "cabinet", "booth", "shelf", "nursery", "staff", "crew", "wall", "understudy"}
)
"""No component is called by one of these; `desk` is the product's own word."""
SHARED_CLASS_NAMES = frozenset({"Inputs", "Output", "Reads", "Writes"})
"""Every agent has its `Reads` and `Writes`, every task of a model its `Inputs` and `Output`."""
MODULE_TESTS = tomllib.loads((ROOT / "tests" / "module_tests.toml").read_text("utf-8"))
TESTED_BY: dict[str, list[str]] = MODULE_TESTS["tested_by"]
MOST_TESTED_BY_A_FOLDER = 104
"""Modules that no test module imports: the tests of their folder reach them through others."""
CHANNELS = frozenset(channel.name for channel in CHAT_CHANNELS)
CHANNEL_COMMANDS = frozenset(f"deploy/cli/commands/{channel}.py" for channel in CHANNELS)
"""They only connect the parts of a channel, as the tests of the channel do."""
SHARED_FILE_NAMES = frozenset({"__init__.py", "errors.py", "metrics.py", "port.py", "ports.py"})
MOST_SIBLINGS = 14
CROWDED: dict[str, int] = {}


def product_files() -> Iterator[Path]:
    return (path for path in list_tracked("*.py") if path.relative_to(ROOT).parts[0] in PACKAGES)


def definitions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds))


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        isinstance(decorator, ast.Attribute) or ast.unparse(decorator).endswith("property")
        for decorator in node.decorator_list
    )


def is_participle(name: str) -> bool:
    word = name.strip("_").split("_")[0]
    return word in PARTICIPLES or (word.endswith("ed") and word not in VERBS_IN_ED)


def test_a_function_is_named_by_a_verb_in_the_imperative() -> None:
    named = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in product_files()
        for node in definitions(path)
        if not isinstance(node, ast.ClassDef)
        and not node.name.startswith("__")
        and not is_property(node)
        and is_participle(node.name)
    ]

    assert named == []


def test_a_function_of_the_tests_and_benchmarks_is_named_by_a_verb_too() -> None:
    """Tests are sentences, and fixtures are named for what they provide."""
    named = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in list_tracked("*.py")
        if path.relative_to(ROOT).parts[0] in {"tests", "benchmarks"}
        for node in find_functions_outside_classes(ast.parse(path.read_text("utf-8")))
        if not node.name.startswith("test_")
        and not any("fixture" in ast.unparse(decorator) for decorator in node.decorator_list)
        and is_participle(node.name)
    ]

    assert named == []


def find_functions_outside_classes(
    tree: ast.AST,
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        yield from find_functions_outside_classes(node)


def test_a_participle_is_recognised() -> None:
    words = ("_told", "checked_name", "embed", "lost", "seed_random", "is_known")

    assert [is_participle(word) for word in words] == [True, True, False, True, False, False]


def test_a_class_name_stands_for_one_class() -> None:
    places = defaultdict(list)
    for path in product_files():
        for node in definitions(path):
            if isinstance(node, ast.ClassDef):
                places[node.name.strip("_")].append(f"{path.relative_to(ROOT)}:{node.lineno}")

    assert {
        name: found
        for name, found in places.items()
        if len(found) > 1 and name not in SHARED_CLASS_NAMES
    } == {}


def test_a_file_name_is_used_at_most_twice() -> None:
    """The chat channels count once: the same name is the same part of each of them."""
    of_channels = {path.name for path in product_files() if is_of_a_channel(path)}
    counted = Counter(path.name for path in product_files() if not is_of_a_channel(path))
    counted.update(of_channels)

    assert {
        name: number
        for name, number in counted.items()
        if number > 2 and name not in SHARED_FILE_NAMES
    } == {}


def is_of_a_channel(path: Path) -> bool:
    """Whether a file belongs to the package of one chat channel."""
    return path.parent.parent == ROOT / "gateway" and path.parent.name in CHANNELS


def test_no_component_is_named_by_a_metaphor() -> None:
    named = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in product_files()
        for node in definitions(path)
        if METAPHORS & set(_words(node.name))
    ]

    assert named == []


def test_a_folder_of_the_product_has_few_siblings() -> None:
    siblings = Counter(
        str(path.parent.relative_to(ROOT)) for path in product_files() if path.name != "__init__.py"
    )

    assert {
        folder: number
        for folder, number in siblings.items()
        if number > CROWDED.get(folder, MOST_SIBLINGS)
    } == {}


def _words(name: str) -> list[str]:
    spaced = "".join(f" {sign}" if sign.isupper() else sign for sign in name)
    return spaced.replace("_", " ").lower().split()


def test_the_test_of_a_module_is_found_by_its_name_or_in_the_list() -> None:
    named = {
        str(path.relative_to(ROOT)) for path in product_modules() if has_test_of_its_name(path)
    }
    every = {str(path.relative_to(ROOT)) for path in product_modules()}
    listed = [module for modules in TESTED_BY.values() for module in modules]
    listed += [*MODULE_TESTS["definitions"], *CHANNEL_COMMANDS]

    assert every - named - set(listed) == set(), "add a test of that name, or a line to the list"
    assert set(listed) & named == set(), "their tests have their names: take them off the list"
    assert set(listed) - every == set(), "these modules do not exist"
    assert [module for module, times in Counter(listed).items() if times > 1] == []


def test_what_the_list_of_module_tests_names_exists() -> None:
    missing = [where for where in TESTED_BY if not (ROOT / where).exists()]

    assert missing == []


def test_most_modules_that_run_have_a_test_of_their_name_or_one_module_that_names_them() -> None:
    """The list may become shorter: a folder of tests is the weakest answer to "where is it"."""
    of_folders = sum(
        len(modules) for where, modules in TESTED_BY.items() if not where.endswith(".py")
    )

    assert of_folders <= MOST_TESTED_BY_A_FOLDER


def product_modules() -> Iterator[Path]:
    """Yield the modules of the product."""
    return (path for path in product_files() if path.name != "__init__.py")


def has_test_of_its_name(module: Path) -> bool:
    """Whether a test module in the folder of the package has the name of the module."""
    stems = {f"test_{module.stem}", f"test_{module.parent.name}_{module.stem}"}
    package = module.relative_to(ROOT).parts[0]
    return any(path.stem in stems for path in (ROOT / "tests" / package).rglob("test_*.py"))
