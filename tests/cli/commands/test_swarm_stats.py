"""What `refdesk swarm stats` prints."""

import json
from pathlib import Path

import pytest

from agents.swarm.learning import (
    OutcomeHistory,
    QuestionKind,
    SwarmOutcome,
    read_history,
    write_outcome,
)
from cli.commands.swarm_stats import format_stats
from cli.main import main
from memory.learned_outcomes import LoggedOutcome


def make_history(count: int = 60) -> OutcomeHistory:
    outcomes = (
        SwarmOutcome(
            kind=QuestionKind.GROUP,
            strategy=("parallel", "a strategy with a name that is much too long for it")[
                number % 2
            ],
            workers=4,
            judge=(9.0, 3.0)[number % 2] - number % 3 / 10,
        )
        for number in range(count)
    )
    return read_history(LoggedOutcome(1, n, write_outcome(one)) for n, one in enumerate(outcomes))


def test_the_table_fits_80_columns_and_names_the_advice() -> None:
    lines = list(format_stats("acme/docs", make_history(), is_on=True))

    assert max(map(len, lines)) <= 80
    assert lines[0] == "acme/docs: 60 outcomes, 60 rated"
    assert any(line.startswith("group       parallel") for line in lines)
    assert any("parallel did better by" in line for line in lines)


def test_a_setting_that_is_off_and_outcomes_of_another_version_are_named() -> None:
    history = read_history([LoggedOutcome(0, 1, "{}")])

    lines = list(format_stats("acme/docs", history, is_on=False))

    assert "SWARM_LEARNING is off" in lines[0]
    assert lines[1] == "1 outcomes of another version are left out"


def test_the_command_prints_json_of_an_assistant_without_outcomes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REFDESK_DATA", str(tmp_path))

    assert main(["swarm", "stats", "--json", "--assistant", "other"]) == 0
    found = json.loads(capsys.readouterr().out)

    assert (found["assistant"], found["outcomes"], found["choices"]) == ("other", 0, [])
    assert main(["swarm", "reset"]) == 0
    assert "deleted the outcomes" in capsys.readouterr().out
