"""The trajectory of a message in a terminal."""

from deploy.cli.commands.trace import list_trajectory_lines
from deploy.cli.printing import WIDTH
from tests.gateway.test_trajectory import JOURNAL


def test_steps_metrics_and_agents_fit_a_terminal() -> None:
    lines = list(list_trajectory_lines(JOURNAL))

    assert all(len(line) <= WIDTH for line in lines)
    assert lines[0] == "     100 ms ? triage 1: a contract and a law"
    assert '> compliance 1: graph_search {"query": "subcontractor"}' in lines[2]
    assert "< compliance 1: lawyer (hallucination)" in lines[6]
    assert "7 steps, 3 calls of 2 tools, 1 repeated" in lines
    assert lines[-1].split() == ["triage", "1", "5.0", "0", "0.000000", "0"]
