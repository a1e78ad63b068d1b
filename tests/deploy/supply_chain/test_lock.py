"""The lock is in step with pyproject.toml, holds a hash for every file, and names no registry."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from deploy.supply_chain.lock import (
    EXTRAS,
    LOCKS,
    REQUIREMENTS,
    ROOT,
    LockError,
    LockFile,
    compute_fingerprint,
    find_inputs,
    normalize_name,
    read_lock,
    read_project,
)

PROJECT = read_project()


PRODUCT = set(PROJECT["tool"]["importlinter"]["root_packages"])


names = pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)


@names
def test_a_lock_is_resolved_from_what_the_project_declares_now(lock: LockFile) -> None:
    fingerprint = compute_fingerprint(lock, PROJECT)

    assert f"# inputs: {fingerprint}\n" in lock.path.read_text(), "stale: run make lock"


@names
def test_every_declared_requirement_is_locked_by_a_version_that_it_allows(lock: LockFile) -> None:
    locked = {package.name: package.version for package in read_lock(lock.path)}

    for line in find_inputs(lock, PROJECT):
        requirement = Requirement(line)
        assert requirement.specifier.contains(locked[normalize_name(requirement.name)]), line


def test_all_locks_agree_on_every_version() -> None:
    chosen: dict[tuple[str, str], set[str]] = {}
    for lock in LOCKS:
        for package in read_lock(lock.path):
            if not package.marker:
                chosen.setdefault((package.name, package.marker), set()).add(package.version)

    assert {name for name, versions in chosen.items() if len(versions) > 1} == set()


@names
def test_every_locked_release_has_digests_and_no_address(lock: LockFile) -> None:
    text = lock.path.read_text()

    digests = [digest for item in read_lock(lock.path) for digest in item.digests]
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in digests)
    assert "://" not in text
    assert "index" not in {word.strip("-") for word in text.split()}
    assert not re.search(r"^\s*-", text.replace("    --hash=", ""), re.MULTILINE)


def test_a_line_without_a_hash_is_no_lock(tmp_path: Path) -> None:
    broken = tmp_path / "broken.txt"
    broken.write_text("redis==8.1.0\n")

    with pytest.raises(LockError, match="expected name==version with hashes, found 'redis==8"):
        read_lock(broken)


def test_every_lock_is_listed_and_the_image_has_every_extra() -> None:
    assert {path.stem for path in REQUIREMENTS.glob("*")} == {lock.name for lock in LOCKS}
    assert set(EXTRAS) == set(PROJECT["project"]["optional-dependencies"])


def test_nothing_is_installed_beside_the_lock() -> None:
    # The clients of others have a folder of their own, and the environment has none of them.
    installing = [
        line
        for name in ("Makefile", ".ci/run", "deploy/Dockerfile")
        for line in (ROOT / name).read_text().replace("\\\n", " ").splitlines()
        for line in line.split("&&")
        if re.search(r"pip\S* install|\$\(INSTALL\)", line) and ".clients/" not in line
    ]

    assert len(installing) >= 7
    for line in installing:
        assert line.startswith("INSTALL :=") or "--require-hashes" in line or "--no-deps" in line
        assert line.startswith("\t$(INSTALL)") or "--no-build-isolation" in line


def find_imported(files: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """The top-level modules that files import."""
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from ((alias.name.split(".")[0], path) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.split(".")[0], path


def list_tracked(*folders: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    return [ROOT / name for name in listed if name.endswith(".py") and (ROOT / name).exists()]


@pytest.mark.parametrize(
    ("folders", "groups"),
    [(tuple(sorted(PRODUCT)), ()), (("tests",), ("dev",))],
    ids=["product", "tests"],
)
def test_every_imported_distribution_is_declared(
    folders: tuple[str, ...], groups: tuple[str, ...]
) -> None:
    asked = find_inputs(LockFile("", "", extras=EXTRAS, groups=groups), PROJECT)
    declared = {normalize_name(Requirement(line).name) for line in asked}
    owners = packages_distributions()
    own = {*PRODUCT, "tests", "benchmarks", *sys.stdlib_module_names}

    undeclared = {
        (module, str(path.relative_to(ROOT)))
        for module, path in find_imported(list_tracked(*(f"{folder}/*.py" for folder in folders)))
        if module not in own
        and not declared & {normalize_name(name) for name in owners.get(module, ())}
    }

    assert undeclared == set()


def find_users_of_private_parts() -> set[str]:
    """The modules of the product that reach into what a library keeps to itself."""
    private = re.compile(r"^\s*from [a-z]\w*(\.\w+)*\._\w+.* import |SLF001", re.MULTILINE)
    return {
        str(path.relative_to(ROOT))
        for path in list_tracked(*(f"{folder}/*.py" for folder in PRODUCT))
        if private.search(path.read_text())
    }


def test_no_module_uses_private_parts_of_a_library() -> None:
    assert find_users_of_private_parts() == set()


@pytest.mark.slow
def test_the_bill_of_materials_holds_every_locked_release_with_its_digests(tmp_path: Path) -> None:
    write_sbom(tmp_path / "bill.json")

    bill = json.loads((tmp_path / "bill.json").read_text())
    assert bill["metadata"]["component"]["name"] == "refdesk"
    [image] = [lock for lock in LOCKS if lock.name == "image"]
    locked = {
        (package.name, package.version): set(package.digests) for package in read_lock(image.path)
    }
    *releases, vendored = bill["components"]
    held = {
        (release["name"], release["version"]): {
            digest["content"] for digest in release["externalReferences"][0]["hashes"]
        }
        for release in releases
    }
    assert held == locked
    assert all(release["purl"].startswith("pkg:pypi/") for release in releases)
    assert vendored["purl"].startswith("pkg:npm/swagger-ui-dist@")


@pytest.mark.long
def test_the_same_lock_makes_the_same_bill_in_the_form_of_the_standard(tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"

    write_sbom(first)
    write_sbom(second)

    assert first.read_text() == second.read_text()
    _validate(first.read_text())


def write_sbom(path: Path) -> None:
    """Run `make sbom`, without the installation before it."""
    words = ["make", "-o", "install", "sbom", f"SBOM={path}", f"BIN={Path(sys.executable).parent}"]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)


def _validate(bill: str) -> None:
    # Imported here: it compiles forty grammars, which every process that collects tests would wait
    # for.
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill) is None
