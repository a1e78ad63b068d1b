"""The verified answers of each assistant, for the agents; the database has the originals."""

from typing import TYPE_CHECKING

from memory.key_names import verified_answers_key
from memory.model_calls import await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis


class RedisVerifiedAnswers:
    """Keeps the answers of an assistant as one text."""

    def __init__(self, client: "Redis") -> None:
        self._client = client

    async def put(self, tenant: str, assistant: str, answers: bytes) -> None:
        """Replace the answers of an assistant."""
        await await_answer(self._client.set(verified_answers_key(tenant, assistant), answers))

    async def get(self, tenant: str, assistant: str) -> bytes | None:
        """Return the answers of an assistant; None if it has none."""
        found: bytes | None = await await_answer(
            self._client.get(verified_answers_key(tenant, assistant))
        )
        return found
