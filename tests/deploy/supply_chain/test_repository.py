"""The commands that the repository shows to contributors exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from deploy.supply_chain.lock import ROOT

HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yaml"))


def test_hooks_call_verbs_of_the_makefile_or_what_is_locked() -> None:
    verbs = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    for hook in HOOKS:
        program, *words = hook["entry"].split()
        assert hook["language"] == "system"
        assert program == ".venv/bin/mypy" or (program == "make" and words[-1] in verbs)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_issue_forms_have_the_form_that_is_expected_of_them(form: Path) -> None:
    schema = ["--builtin-schema", "vendor.github-issue-forms"]
    check = [sys.executable, "-m", "check_jsonschema", *schema, str(form)]

    said = subprocess.run(check, capture_output=True, text=True, check=False)

    assert said.returncode == 0, said.stdout


@pytest.mark.slow
@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_are_valid_and_call_verbs_of_the_makefile(file: Path) -> None:
    schema = ["--builtin-schema", "vendor.github-workflows"]
    check = [sys.executable, "-m", "check_jsonschema", *schema, str(file)]
    verbs = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    said = subprocess.run(check, capture_output=True, text=True, check=False)

    assert said.returncode == 0, said.stdout
    called = re.findall(r"^ *(?:run: )?make ([a-z -]+)$", file.read_text(), re.MULTILINE)
    assert {verb for line in called for verb in line.split()} <= verbs
    # A change from a fork runs without rights: it can neither write nor read a secret.
    workflow = yaml.safe_load(file.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    if "pull_request" in workflow[True]:
        assert "secrets." not in file.read_text()


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_name_the_actions_of_others_by_their_commits(file: Path) -> None:
    named = re.findall(r"uses: ([\w./-]+@\S+)", file.read_text())

    assert named
    assert [name for name in named if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name)] == []


def test_the_security_page_says_how_to_report_what_is_supported_and_what_is_in_scope() -> None:
    page = (ROOT / "SECURITY.md").read_text()

    for part in ("## Report a vulnerability", "## Supported versions", "## Scope"):
        assert part in page
