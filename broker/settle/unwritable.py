"""Replaces a settlement that JSON cannot express by the burial of its entry."""

from broker.errors import UnwritableError
from broker.journal_events import JournalEvent
from broker.values import Bury, FrameSend, Settlement


def unwritable(settlement: Settlement, error: UnwritableError, notice: FrameSend | None) -> Bury:
    """Return the burial that replaces a settlement that cannot be written.

    The entries of its journal that can be written, such as model calls, stay.
    """
    journal = [entry for entry in settlement.journal if _is_writable(entry)]
    return Bury("unencodable", str(error), poison_notice=notice, journal=journal)


def _is_writable(entry: JournalEvent) -> bool:
    try:
        entry.encode()
    except ValueError:
        return False
    return True
