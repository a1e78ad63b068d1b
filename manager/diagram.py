"""Draws the flow table: `docs/flow.md` is this drawing, checked for staleness by a test."""

from envelope.role import Role
from manager.flow import Final, Flow, Row

HEADER = """# The flow of the assistant

Generated from `manager/flow.py` by `python -m deploy.generate.pages`; do not edit.

After a stage, with this outcome of the hop, the envelope goes there. A counted row leads to *at
its limit* once it was taken as often as the settings allow; an answer that scored well enough to
be sent is then preferred.
"""


def draw(flow: Flow) -> str:
    """Return the page: a Mermaid diagram and the table."""
    return "\n".join([HEADER, *_diagram(flow), "", *_table(flow), ""])


def _diagram(flow: Flow) -> list[str]:
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> start"]
    lines += [
        f"    {row.after.value} --> {_node(row.go_to)}: {row.did.description.replace(':', ',')}"
        for row in flow.rows
    ]
    return [*lines, "```"]


def _table(flow: Flow) -> list[str]:
    head = [
        "| after | outcome of this hop | in the journal | go to | counts | at its limit "
        "| noted reason |"
    ]
    return [*head, "|---|---|---|---|---|---|---|", *(_line(row) for row in flow.rows)]


def _line(row: Row) -> str:
    cells = (
        row.after.value,
        row.did.description,
        f"`{row.did.value}`",
        _target(row.go_to),
        row.counts.value if row.counts is not None else "",
        _target(row.at_limit) if row.at_limit is not None else "",
        row.reason.value if row.reason is not None else "",
    )
    return "| " + " | ".join(cells) + " |"


def _node(target: Role | Final) -> str:
    return target.value if isinstance(target, Role) else "[*]"


def _target(target: Role | Final) -> str:
    return target.value if isinstance(target, Role) else f"final: {target.ending.value}"
