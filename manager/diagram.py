"""Renders the flow tables as the page `docs/flow.md`; a test checks that the page is current."""

from collections.abc import Iterable

from manager.flow import Final, Flow, Next, PauseFor, Row, Scatter, Stage, Target

HEADER = """# The flows of the assistant

Generated from `manager/flows/` by `python -m deploy.generate.pages`; do not edit.

Each row names a stage, the event of its hop, and the next role. A row with a counter leads to the
target *at its limit* after the manager has taken it as often as the settings allow; if that target
is a refusal and the message has a scored answer by then, Refdesk sends that answer instead.
[ways.md](ways.md) explains which flow a question takes.
"""


def draw(flows: Iterable[Flow]) -> str:
    """Return the page: a Mermaid diagram and the table of each flow."""
    parts = [HEADER]
    for flow in flows:
        parts += [f"## `{flow.name}`, version {flow.version}", "", *_diagram(flow), ""]
        parts += [*_table(flow), ""]
    return "\n".join(parts)


def _diagram(flow: Flow) -> list[str]:
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> start"]
    lines += [
        f"    {row.after.name} --> {_node(row.go_to)}: {row.did.description.replace(':', ',')}"
        for row in flow.rows
    ]
    return [*lines, "```"]


def _table(flow: Flow) -> list[str]:
    head = ["| stage | event of the hop | journal | next role | counter | at its limit | reason |"]
    return [*head, "|---|---|---|---|---|---|---|", *(_line(row) for row in flow.rows)]


def _line(row: Row) -> str:
    cells = (
        row.after.name,
        row.did.description,
        f"`{row.did.value}`",
        _target(row.go_to),
        row.counts.value if row.counts is not None else "",
        _target(row.at_limit) if row.at_limit is not None else "",
        row.reason.value if row.reason is not None else "",
    )
    return "| " + " | ".join(cells) + " |"


def _node(target: Target) -> str:
    if isinstance(target, Scatter):
        return target.branch.name
    if isinstance(target, PauseFor):
        return target.resume.name
    if isinstance(target, Next):
        return target.stages[0].name
    return target.name if isinstance(target, Stage) else "[*]"


def _target(target: Target) -> str:
    if isinstance(target, Scatter):
        return f"{target.branch} for each branch, then {target.gather}"
    if isinstance(target, Final):
        return f"final: {target.ending.value}"
    if isinstance(target, PauseFor):
        return f"pause for {target.kind}, then {target.resume}"
    if isinstance(target, Next):
        names = ", ".join(stage.name for stage in target.stages)
        return f"the next of the sequence ({names}), then {target.done}"
    return target.name if isinstance(target, Stage) else "the branch returns"
