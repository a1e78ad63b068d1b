"""Formats the errors of a message for its operator: with ids, phase, severity and the question."""

from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from broker.values import JournalEntry

LONGEST_QUESTION = 200


def list_error_lines(entries: Sequence[JournalEntry]) -> Iterator[str]:
    """Yield the question, shortened, and the lines of each error that the journal has."""
    text = str(entries[0].fields.get("text") or "") if entries else ""
    yield " ".join(text.split())[:LONGEST_QUESTION]
    found = {str(one.get("error_id")): one for one in _list_errors(entries)}
    if not found:
        yield "no errors"
    for error_id, one in found.items():
        severity, phase = one.get("severity", "high"), one.get("phase") or "unknown phase"
        yield f"{error_id}  {severity}  {phase}  {one.get('specialist')}"
        yield f"    {one.get('text')}"


def _list_errors(entries: Sequence[JournalEntry]) -> Iterator[dict[str, JsonValue]]:
    """Yield the errors that agents wrote, and those of the reply, which has the manager's too."""
    for entry in entries:
        source: JsonValue = None
        if entry.kind == "agent_run":
            source = entry.fields.get("writes")
        elif entry.kind == "finished":
            source = dict(entry.fields)
        errors = source.get("errors") if isinstance(source, dict) else None
        for one in errors if isinstance(errors, list) else ():
            if isinstance(one, dict):
                yield one
