"""The errors of a message in a terminal."""

from broker.values import JournalEntry
from deploy.cli.commands.trace import list_error_lines
from envelope.specialists import ErrorSeverity, SpecialistError

ERROR = SpecialistError(
    error_id="RD-2026-01-13-12345",
    specialist="compliance",
    text="ModelError: it hangs",
    severity=ErrorSeverity.MEDIUM,
    phase="verification",
).model_dump(mode="json")
ACCEPTED = JournalEntry("accepted", {"text": "Does it comply? " * 50})


def test_an_operator_sees_id_severity_phase_and_the_shortened_question() -> None:
    wrote = JournalEntry("agent_run", {"role": "compliance", "writes": {"errors": [ERROR]}})
    ended = JournalEntry("finished", {"errors": [ERROR]})

    question, head, text = list_error_lines([ACCEPTED, wrote, ended])

    assert len(question) == 200
    assert head.split() == ["RD-2026-01-13-12345", "medium", "verification", "compliance"]
    assert text.strip() == "ModelError: it hangs"


def test_a_message_without_errors_says_so() -> None:
    assert list(list_error_lines([ACCEPTED]))[1:] == ["no errors"]
