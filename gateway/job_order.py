"""What a message asks for besides its text: a way, more time, a review."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from broker.values import Fields, JournalEntry

DEADLINE_FIELD = "deadline_seconds"
REQUEST_FIELD = "request_digest"


@dataclass(frozen=True, slots=True)
class JobOrder:
    """The order of a long job.

    - `way`: the way that answers, by its name; None: that of the assistant
    - `deadline_seconds`: the time limit; None: that of the desk
    - `payload`: further attributes of the payload, as the catalogue defines them
    - `digest`: of all that was asked for; the same id with another one is refused
    """

    way: str | None = None
    deadline_seconds: float | None = None
    payload: Mapping[str, JsonValue] = field(default_factory=dict)
    digest: str = ""

    @property
    def accepted_fields(self) -> Fields:
        """What the journal records of the order with the acceptance of the message."""
        noted: Fields = {}
        if self.deadline_seconds is not None:
            noted[DEADLINE_FIELD] = self.deadline_seconds
        if self.digest:
            noted[REQUEST_FIELD] = self.digest
        return noted


PLAIN = JobOrder()
"""The order of a usual message."""


def read_deadline(accepted: JournalEntry) -> float | None:
    """Return the time limit of an accepted message; None: that of the desk."""
    found = accepted.fields.get(DEADLINE_FIELD)
    return float(found) if isinstance(found, int | float) else None
