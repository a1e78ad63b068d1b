"""Says which step people see at a stage of a question; the widget and the terminal show it."""

from collections.abc import Mapping
from functools import cache

from agents.roster import SPECS
from agents.spec import ProgressStep
from manager.flow_proofs import find_reached
from manager.flows import EVERY
from manager.flows.stages import START


@cache
def list_steps() -> Mapping[str, ProgressStep]:
    """Return the step of every stage. While branches run, it is that of searching."""
    stages = {stage for flow in EVERY for stage in find_reached(flow, START)} - {START}
    return {
        stage.name: SPECS[stage.role.value].step
        if stage.role.value in SPECS
        else ProgressStep.SEARCH
        for stage in sorted(stages, key=lambda one: one.name)
    }


def find_step(stage: str) -> ProgressStep:
    """Return the step of a stage; the first one for a stage that another release has."""
    return list_steps().get(stage, next(iter(ProgressStep)))
