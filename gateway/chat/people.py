"""Limits the questions of one person in a chat, over all processes of its channel."""

import hashlib
from dataclasses import dataclass

from envelope.question import Question
from memory.http_state import Demand, RedisRates, Shortage

FORGETS = frozenset({"clear_history", "clear_all"})
"""Commands without a daily limit, because everybody may have their data erased."""
DIGEST_BYTES = 12
PERSON = b"refdesk-person"


@dataclass(frozen=True, slots=True)
class PersonLimits:
    """The limits of questions of one person; None: no limit."""

    per_minute: int | None = 10
    per_day: int | None = 200


class People:
    """Counts the questions of people of a channel; `secret` is the key of their hashes."""

    def __init__(
        self, rates: RedisRates, limits: PersonLimits, *, channel: str, secret: str
    ) -> None:
        self._rates = rates
        self._limits = limits
        self._channel = channel
        self._secret = hashlib.sha256(secret.encode()).digest()

    async def admit(self, person: str, question: Question, command: str | None) -> Shortage | None:
        """Count one message, once even if it is repeated; return the exhausted limit, or None."""
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
    """Makes the pseudonyms of people whom a caller of the API names; `secret` keys the hashes."""

    secret: bytes

    def of(self, tenant: str, person: str, issuer: str = "") -> str:
        """Return the pseudonym of a person; `issuer` is the identity provider that names them.

        Two providers may give the same id to two people.
        """
        named = "\x1f".join((tenant, issuer, person)).encode()
        made = hashlib.blake2b(named, key=self.secret, digest_size=DIGEST_BYTES, person=PERSON)
        return made.hexdigest()
