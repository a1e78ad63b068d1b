"""The image has everything an installed Refdesk needs, runs as nobody, and lets nothing leak in."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest

from cli.main import VERBS
from tests.support.app_harness import ROOT

DOCKERFILE = ROOT / "deploy" / "Dockerfile"
IGNORED = ROOT / ".dockerignore"


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, with their arguments on one line."""
    text = DOCKERFILE.read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    named = [line.split(maxsplit=1) for line in lines]
    return [(name, " ".join(rest.split())) for name, rest in named]


def list_copied() -> list[str]:
    """What the image is built from."""
    arguments = [rest.split() for name, rest in instructions() if name == "COPY"]
    return [source for words in arguments if words[0][:2] != "--" for source in words[:-1]]


def last(name: str) -> str:
    return [rest for instruction, rest in instructions() if instruction == name][-1]


def find_tracked(*paths: str) -> set[str]:
    """The files of a checkout that are under version control."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", *paths],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return {name for name in listed.split("\0") if name and (ROOT / name).is_file()}


def let_in(name: str) -> bool:
    """Whether `.dockerignore` lets a file into the build."""
    allowed = [line[1:] for line in IGNORED.read_text().splitlines() if line.startswith("!")]
    return any(name == each or name.startswith(f"{each}/") for each in allowed)


def test_the_dockerfile_is_lint_free() -> None:
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if hadolint is None and not os.environ.get("CI"):
        pytest.skip("hadolint is not installed on this machine")
    assert hadolint is not None, "CI must not skip the linter of Dockerfiles"

    said = subprocess.run([hadolint, DOCKERFILE], capture_output=True, text=True, check=False)

    assert (said.returncode, said.stdout) == (0, "")


def test_every_package_is_copied_and_let_into_the_build() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["importlinter"]["root_packages"]

    assert {*packages, "refdesk"} <= set(list_copied())
    assert all((ROOT / name).exists() for name in list_copied())
    assert all(
        let_in(name) for name in find_tracked(*list_copied()) if not name.startswith("examples")
    )


def test_nothing_of_a_checkout_but_the_product_is_let_into_the_build() -> None:
    rules = IGNORED.read_text().splitlines()
    inside = {name.split("/")[0] for name in find_tracked() if let_in(name)}

    assert rules[1] == "*"
    assert inside == {name.split("/")[0] for name in list_copied()}
    assert not any(let_in(name) for name in (".env", ".git/config", "tests/x.py", ".refdesk/x"))
    assert any(fnmatch("deploy/.env", rule) for rule in rules)


def test_the_image_runs_as_nobody_and_starts_the_command() -> None:
    assert last("USER") == "10001:10001"
    assert last("ENTRYPOINT") == '["refdesk"]'
    assert last("CMD") == '["up"]'
    assert "up" in VERBS


def test_both_stages_start_from_one_image_that_can_be_pinned_by_its_digest() -> None:
    [argument] = [rest for name, rest in instructions() if name == "ARG"]
    stages = [rest.split()[0] for name, rest in instructions() if name == "FROM"]

    assert re.fullmatch(r"PYTHON_IMAGE=python:3\.\d+-slim-\w+", argument), "a minor version"
    assert stages == ["${PYTHON_IMAGE}"] * 2


def test_the_health_check_of_the_image_requests_a_path_that_a_worker_serves() -> None:
    assert "HEALTH_PORT=9090" in last("ENV")
    assert "/healthz" in last("HEALTHCHECK")
    assert "9090" in last("EXPOSE").split()


@pytest.mark.slow
def test_the_copied_files_build_a_complete_wheel(tmp_path: Path) -> None:
    source, made = tmp_path / "source", tmp_path / "made"
    for name in find_tracked(*list_copied()):
        if let_in(name):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)

    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", made],
        cwd=source, capture_output=True, check=True,
    )  # fmt: skip

    [wheel] = made.iterdir()
    inside = {name.removeprefix("refdesk/app/") for name in zipfile.ZipFile(wheel).namelist()}
    expected = {name for name in find_tracked(*list_copied()) if "/" in name}
    expected -= {name for name in expected if name.startswith("requirements/")}
    examples = {name for name in expected if name.startswith("examples/")}
    assert expected - examples - inside == set()
    shipped = {name for name in inside if name.startswith("examples/")}
    assert len(shipped) == len(find_tracked("examples/sms_platform"))
