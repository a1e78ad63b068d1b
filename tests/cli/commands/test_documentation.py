"""The README and the pages in docs/ show commands that exist and outputs as they are printed."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.main import make_parser
from tests.support.command_line import Run
from tests.support.folder_copy import copy_folder
from tests.test_pages import pages
from tests.test_project_rules import ROOT

pytestmark = pytest.mark.slow
BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
LEFT_OUT = "..."
VARYING = ((r"\b[0-9a-f]{8}\b", "ID"), (r"\d+(\.\d+)? ms", "N ms"), (r"\s+", " "))
"""What differs between two runs: ids, durations and the blanks that align them."""
COMMAND = re.compile(r"^ *(?:[A-Z_]+=\S+ +)*refdesk +(.*)$", re.MULTILINE)
SHELL_SIGNS = frozenset({"|", "<", ">", "&&", "&"})


def normalize(output: str) -> str:
    """Return an output without the lines that only separate, and without what varies."""
    lines = [line for line in output.splitlines() if line.strip("- ")]
    for pattern, sign in VARYING:
        lines = [re.sub(pattern, sign, line).strip() for line in lines]
    return "\n".join(lines)


def list_commands(page: Path) -> Iterator[list[str]]:
    """Yield the words of each line of a page's shell blocks that runs `refdesk`."""
    for language, block in BLOCK.findall(page.read_text("utf-8")):
        if language != "bash":
            continue
        for line in COMMAND.findall(block.replace("\\\n", " ")):
            words = shlex.split(line, comments=True)
            end = (at for at, word in enumerate(words) if word in SHELL_SIGNS)
            yield words[: next(end, None)]


def test_the_demo_prints_what_the_readme_shows(
    library: Path, run: Run, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DOMAIN_NAME")
    copy_folder(library / "index", elsewhere / "data" / "demo" / "index")
    blocks = dict.fromkeys(BLOCK.findall((ROOT / "README.md").read_text()))
    (shown,) = (text for language, text in blocks if text.startswith("Question (clear)"))

    printed = normalize(run("demo").out)

    after = 0
    for part in re.split(rf"^{re.escape(LEFT_OUT)}$", shown, flags=re.MULTILINE):
        expected = normalize(part)
        assert expected in printed[after:]
        after = printed.index(expected, after) + len(expected)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_has_known_arguments(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = []
    for words in list_commands(page):
        try:
            make_parser(words).parse_args(words)
        except SystemExit as end:
            if end.code:
                refused.append((words, capsys.readouterr().err.splitlines()[-1]))

    assert refused == []
