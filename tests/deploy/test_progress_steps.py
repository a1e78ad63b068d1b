import json
import re
from pathlib import Path

import pytest

from agents.roster import ProgressStep
from config.texts import load_texts
from deploy.generate.pods import find_step, list_steps

PARTS = Path(__file__).parents[2] / "gateway" / "widget" / "parts"


@pytest.mark.parametrize("step", ProgressStep)
def test_the_terminal_and_the_widget_name_a_step_in_the_same_words(step: ProgressStep) -> None:
    texts = load_texts()
    script = "".join((PARTS / f"{name}_words.js").read_text() for name in ("latin", "further"))
    found = re.findall(rf"^ +{step.value}: (\".*\"),$", script, re.MULTILINE)

    named = [texts.text(f"step_{step.value}", language) for language in texts.languages]

    assert sorted(map(json.loads, found)) == sorted(named)


def test_every_stage_that_people_wait_for_has_a_step() -> None:
    assert find_step("worked") is ProgressStep.SEARCH
    assert find_step("synthesize") is ProgressStep.WRITE
    assert find_step("a stage of a later release") is ProgressStep.UNDERSTAND
    assert {"plan", "gather", "ledger", "judge"} <= list_steps().keys()
