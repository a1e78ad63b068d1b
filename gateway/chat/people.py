"""Limits the questions of one person in a chat, across all processes of the channel."""

import hashlib
from dataclasses import dataclass

from envelope.question import Question
from memory.http_state import Demand, RedisRates, Shortage

FORGETS = frozenset({"clear_history", "clear_all"})
"""Commands without a daily limit, because everybody must be able to have their data erased."""
DIGEST_BYTES = 12
PERSON = b"refdesk-person"


@dataclass(frozen=True, slots=True)
class PersonLimits:
    """The limits on the questions of one person; None means no limit."""

    per_minute: int | None = 10
    per_day: int | None = 200


class People:
    """Counts the questions of people in a channel; `secret` is the key of their hashes."""

    def __init__(
        self, rates: RedisRates, limits: PersonLimits, *, channel: str, secret: str
    ) -> None:
        self._rates = rates
        self._limits = limits
        self._channel = channel
        self._secret = hashlib.sha256(secret.encode()).digest()

    async def admit(self, person: str, question: Question, command: str | None) -> Shortage | None:
        """Count a message, only once if it is repeated; return the exhausted limit, or None."""
        per_day = None if command in FORGETS else self._limits.per_day
        demand = Demand("questions", self._limits.per_minute, per_day, of="person")
        if not person or (demand.per_minute is None and per_day is None):
            return None
        once = "\x1f".join((*question.conversation, question.message_id))
        owner = f"{self._channel}/{self.digest(person)}"
        return await self._rates.admit(owner, [demand], once=once)

    def digest(self, person: str) -> str:
        """Return the hash under which a person is counted."""
        made = hashlib.blake2b(
            person.encode(), key=self._secret, digest_size=DIGEST_BYTES, person=PERSON
        )
        return made.hexdigest()


@dataclass(frozen=True, slots=True)
class PersonDigests:
    """Creates pseudonyms for people who are named by a caller of the API; `secret` is the key of
    the hashes.
    """

    secret: bytes

    def of(self, tenant: str, person: str, issuer: str = "") -> str:
        """Return the pseudonym of a person; `issuer` is the identity provider that issued the id.

        Two providers may issue the same id to different people.
        """
        named = "\x1f".join((tenant, issuer, person)).encode()
        made = hashlib.blake2b(named, key=self.secret, digest_size=DIGEST_BYTES, person=PERSON)
        return made.hexdigest()
