"""Files of the working directory are never executed by Refdesk."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.supply_chain.lock import ROOT

HOSTILE = (
    "structlog", "llm", "knowledge", "config", "pathlib", "socket", "signal", "selectors",
    "multiprocessing", "pydantic", "orjson",
)  # fmt: skip
"""Modules of ours, of others and of Python that a working directory imitates."""
STARTS = {
    "the installed command": [str(Path(sys.executable).with_name("refdesk"))],
    "a module": ["-m", "refdesk"],
    "a file": [str(ROOT / "refdesk" / "__main__.py")],
}
CHILDREN = """
import asyncio, multiprocessing, os, sys
from refdesk.__main__ import prepare_module_path

def report():
    print([path for path in sys.path if path == "" or os.path.realpath(path) == os.getcwd()])

if __name__ == "__main__":
    prepare_module_path()
    from worker.isolation import Quarantine
    asyncio.run(Quarantine(None, [], None, preload=["deploy.assembly.runtime"]).warm())
    for method in multiprocessing.get_all_start_methods():
        child = multiprocessing.get_context(method).Process(target=report)
        child.start()
        child.join()
"""

pytestmark = pytest.mark.slow  # each starts processes


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Return a working directory whose modules note that they were executed."""
    folder = tmp_path / "here"
    folder.mkdir()
    for name in HOSTILE:
        note = f"open({str(tmp_path / 'executed')!r}, 'a').write('{name} ')\n"
        (folder / f"{name}.py").write_text(note)
    return folder


def run_python(folder: Path, *arguments: str, path: str = "") -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": path, "REFDESK_DATA": str(folder.parent / "data")}
    environment.pop("PYTHONSAFEPATH", None)
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def executed(folder: Path) -> str:
    notes = folder.parent / "executed"
    return notes.read_text() if notes.exists() else ""


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
@pytest.mark.parametrize("path", ["", os.pathsep], ids=["", "PYTHONPATH with an empty entry"])
def test_a_command_imports_nothing_from_the_working_directory(
    start: list[str], path: str, hostile: Path
) -> None:
    done = run_python(hostile, *start, "status", path=path)

    assert "Workers" in done.stdout, done.stderr
    assert executed(hostile) == ""


def test_no_child_process_has_the_working_directory_on_its_path(
    hostile: Path, tmp_path: Path
) -> None:
    script = tmp_path / "elsewhere" / "start.py"
    script.parent.mkdir()
    script.write_text(CHILDREN)

    done = run_python(hostile, str(script))

    assert done.stdout.split("\n") == ["[]", "[]", "[]", ""], done.stderr
    assert executed(hostile) == ""
