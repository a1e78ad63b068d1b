"""Packs the journal events of a settlement as the fields of one stream entry."""

from collections.abc import Sequence

from broker.journal_events import JournalEvent, note_fields
from broker.transport.scripts import Argument
from broker.values import Bury, Delivery, Fields, JournalEntry, Retry, Settlement


def list_journal_fields(delivery: Delivery, settlement: Settlement) -> list[Argument]:
    """Return the fields of the one journal entry that a settlement adds."""
    fields: list[Argument] = []
    notes = settlement.journal
    if isinstance(settlement, (Retry, Bury)):
        notes = (*notes, *_own_notes(delivery, settlement))
    for index, note in enumerate(notes):
        kind, json = note_fields(index)
        fields += (kind, note.kind, json, note.encode())
    return fields


def _own_notes(delivery: Delivery, settlement: Settlement) -> Sequence[JournalEvent]:
    match settlement:
        case Retry(reason=reason):
            retried: Fields = {"role": delivery.role, "reason": reason, **_name_branch(delivery)}
            return (JournalEntry("retried", retried),)
        case Bury(reason=reason, error=error):
            fields: Fields = {"role": delivery.role, "reason": reason, "error": error}
            return (JournalEntry("dead_lettered", fields | _name_branch(delivery)),)
        case _:
            return ()


def _name_branch(delivery: Delivery) -> Fields:
    return {"branch": delivery.branch} if delivery.branch else {}
