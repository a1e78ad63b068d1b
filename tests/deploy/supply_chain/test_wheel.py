"""A wheel has one name in site-packages, works beside others of any name, and holds no secrets."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from deploy.supply_chain.lock import ROOT
from tests.test_project_rules import PACKAGES

SECRETS = (".env", "deploy/.env.production", "deploy/kubernetes/my-secrets.yaml")
FOREIGN = {
    "agents/__init__.py": "from agents.agent import Agent\n",
    "agents/agent.py": "class Agent:\n    owner = 'another product'\n",
    **{f"{name}/__init__.py": "owner = 'another product'\n" for name in PACKAGES - {"agents"}},
}
"""A distribution that owns every top-level name of the checkout, as `openai-agents` owns one."""
FOREIGN_PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "foreign"
version = "1.0"
[tool.hatch.build.targets.wheel]
only-include = [{}]
"""
USE_FOREIGN = "import agents, config, tools; print(agents.Agent.owner, config.owner, tools.owner)"

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel from the tracked files, with secrets beside them as an owner may have them."""
    source = tmp_path_factory.mktemp("source")
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "pyproject.toml", "README.md", "LICENSE", "examples", "refdesk",
         *PACKAGES],
        cwd=ROOT, capture_output=True, check=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, tracked):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    for name in SECRETS:
        (source / name).write_text("OPENAI_API_KEY=a-secret\n")
    return build_wheel(source)


@pytest.fixture(scope="module")
def foreign_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("foreign")
    for name, text in FOREIGN.items():
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text(text)
    names = ", ".join(f'"{name}"' for name in sorted(PACKAGES))
    (source / "pyproject.toml").write_text(FOREIGN_PROJECT.format(names))
    return build_wheel(source)


def test_a_wheel_has_one_name_in_site_packages(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    assert {name.split("/")[0] for name in names} == {"refdesk", "refdesk-0.1.0.dist-info"}
    inside = {name.split("/")[2] for name in names if name.startswith("refdesk/app/")}
    assert inside == PACKAGES | {"examples"}


def test_a_wheel_holds_no_file_of_secrets(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    kept = [name for name in names if ".env" in name or "secret" in name.lower()]
    assert [name for name in kept if not name.endswith(".py")] == [
        "refdesk/app/deploy/kubernetes/secret.example.yaml"
    ]


def test_git_ignores_files_of_secrets() -> None:
    ignored = subprocess.run(
        ["git", "check-ignore", *SECRETS], cwd=ROOT, capture_output=True, check=True, text=True
    )

    assert ignored.stdout.split() == list(SECRETS)


@pytest.mark.parametrize("is_first", [True, False], ids=["first", "second"])
def test_an_installed_refdesk_works_beside_packages_of_the_same_names(
    is_first: bool, wheel: Path, foreign_wheel: Path, tmp_path: Path
) -> None:
    python = make_environment(tmp_path / "environment")
    install(python, *([wheel, foreign_wheel] if is_first else [foreign_wheel, wheel]))
    refdesk = python.with_name("refdesk")
    page = tmp_path / "documents" / "rules.md"
    page.parent.mkdir()
    page.write_text("# Opening hours\n\nThe reading room opens at nine on weekdays.\n")

    ingested = run(refdesk, "ingest", page.parent, at=tmp_path)
    asked = run(refdesk, "ask", "When does the reading room open?", at=tmp_path)

    assert "documents: 1 added" in ingested
    assert "nine on weekdays" in asked
    assert "rules.md" in asked
    assert run(python, "-c", USE_FOREIGN, at=tmp_path).split("\n")[0] == " ".join(
        ["another product"] * 3
    )
    run(sys.executable, "-m", "pip", "--python", python, "uninstall", "--yes", "refdesk")
    assert not (site_packages(python) / "refdesk").exists()
    assert run(python, "-c", USE_FOREIGN, at=tmp_path).split("\n")[0] == " ".join(
        ["another product"] * 3
    )


def build_wheel(source: Path) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", source / "made", at=source)
    [made] = (source / "made").iterdir()
    return made


def make_environment(folder: Path) -> Path:
    """Make an environment that has this one's dependencies, but not this checkout."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    (site_packages(python) / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return python


def site_packages(python: Path) -> Path:
    [folder] = (python.parents[1] / "lib").glob("python3*/site-packages")
    return folder


def install(python: Path, *wheels: Path) -> None:
    for wheel in wheels:
        run(
            sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps",
            "--no-index", wheel,
        )  # fmt: skip


def run(*words: str | Path, at: Path | None = None) -> str:
    """Run a command whose environment names neither this checkout nor its settings."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    data = {} if at is None else {"REFDESK_DATA": str(at / "data")}
    ended = subprocess.run(
        words, cwd=at, env={**kept, **data}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
