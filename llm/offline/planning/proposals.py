"""Takes the decision or the report that the rules made before, for tasks of the swarm.

What the rules of the swarm propose is an input of the task, for a model as for this rule.
"""

from functools import singledispatch

from llm.tasks import plan_swarm, synthesize_findings


@singledispatch
def answer(inputs: object) -> object:
    """Return the proposal of the inputs; raises `TypeError` for a task that has none."""
    raise TypeError(f"expected inputs with a proposal, found {type(inputs).__name__}")


@answer.register
def _take_plan(inputs: plan_swarm.Inputs) -> plan_swarm.Output:
    return inputs.proposal


@answer.register
def _take_report(inputs: synthesize_findings.Inputs) -> synthesize_findings.Output:
    return synthesize_findings.Output(answer=inputs.report)
