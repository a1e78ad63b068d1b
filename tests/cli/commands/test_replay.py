"""An ended question is run again beside the old one, which stays as it is."""

from pathlib import Path

import pytest

from broker.values import JournalEntry
from cli.commands.replay import make_fork
from deploy.errors import CommandError
from tests.support.command_line import Run
from tests.support.flow_path import main_path

pytestmark = [pytest.mark.redis, pytest.mark.slow]


@pytest.fixture
def asked(run: Run, tmp_path: Path) -> Run:
    page = tmp_path / "leave.md"
    page.write_text("# Leave\n\nAll employees have thirty days of leave a year.\n")
    run("ingest", str(page))
    assert run("ask", "--message", "m1", "How many days of leave are there?").status == 0
    return run


def test_a_replay_shows_what_has_changed_and_changes_nothing_of_the_original(
    asked: Run, tmp_path: Path
) -> None:
    journal = asked("trace", "m1", "--json").json
    (tmp_path / "leave.md").write_text("# Leave\n\nAll employees have 31 days of leave a year.\n")
    asked("ingest", str(tmp_path / "leave.md"))

    both = asked("replay", "m1", "--json").json

    assert "thirty" in both["original"]["answer"]
    assert "31" in both["replay"]["answer"]
    assert both["replay"]["conversation_id"].startswith("replay/")
    assert asked("trace", "m1", "--json").json == journal


def test_a_replay_from_a_step_uses_what_the_steps_before_it_found(
    asked: Run, tmp_path: Path
) -> None:
    (tmp_path / "leave.md").write_text("# Leave\n\nAll employees have 31 days of leave a year.\n")
    asked("ingest", str(tmp_path / "leave.md"))

    both = asked("replay", "m1", "--from", "augmentation", "--json").json

    assert both["replay"]["outcome"] == "answered"
    assert "thirty" in both["replay"]["answer"]
    ran = [
        entry["fields"]["role"]
        for entry in asked("trace", both["replay"]["message_id"], "--json").json
        if entry["kind"] == "agent_run"
    ]
    path = main_path()
    assert ran == path[path.index("augmentation") :]


def test_a_step_that_the_question_did_not_pass_is_named_with_those_that_it_passed(
    asked: Run,
) -> None:
    result = asked("replay", "m1", "--from", "nowhere")

    assert result.status == 1
    assert "has no step 'nowhere'; its steps are lang, translation" in result.err


def test_a_branch_is_no_step_to_begin_at() -> None:
    inside = JournalEntry("routed", {"target": "work", "branch": "b1", "flow": "swarm@1"})

    with pytest.raises(CommandError, match="has no step 'work'"):
        make_fork([JournalEntry("accepted", {"flow": "swarm@1"}), inside], "work")
