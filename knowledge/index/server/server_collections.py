"""The collections of an assistant's index on a Qdrant server.

One collection serves questions. Another one, for a different embedding model, may be written to
replace it. An alias is then moved to the new collection, which takes effect immediately for every
process that uses the server. Without the alias, the first collection is used.
"""

import hashlib
from collections.abc import Awaitable
from typing import TypeVar

from grpc import RpcError
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import ApiException

from knowledge.embedding_forms import VectorIdentity
from knowledge.errors import IndexUnavailable
from knowledge.index.points import layout

T = TypeVar("T")

_CLIENT_ERRORS = (ApiException, RpcError, OSError, RuntimeError, ValueError)
"""The exceptions of `qdrant-client`: its local mode raises `ValueError` and `RuntimeError`."""


class ServerCollections:
    """The collections of one assistant; every call raises `IndexUnavailable`."""

    def __init__(
        self, client: AsyncQdrantClient, tenant: str, assistant: str, location: str
    ) -> None:
        self._client = client
        self._location = location
        self._first = f"refdesk-{layout.namespace(tenant, assistant)}"
        self._serving = f"{self._first}-serving"
        self._replaced = f"{self._first}-replaced"

    async def find_serving(self) -> str:
        """Return the name of the serving collection."""
        return (await self._read_aliases()).get(self._serving, self._first)

    def name_replacement(self, vectors: VectorIdentity) -> str:
        """Return the name of the collection in which an index with such vectors is written."""
        digest = hashlib.sha256(repr(tuple(vectors)).encode()).hexdigest()
        return f"{self._first}-{digest[:12]}"

    async def has(self, name: str) -> bool:
        """Return whether there is a collection with this name."""
        return await self._ask(self._client.collection_exists(name))

    async def switch(self, name: str) -> None:
        """Let the collection with this name serve questions; the earlier one is marked as
        replaced.
        """
        await self.remove_replaced()
        aliases = await self._read_aliases()
        earlier = aliases.get(self._serving, self._first)
        if earlier == name:
            return
        changes: list[models.AliasOperations] = []
        if self._serving in aliases:
            left = models.DeleteAlias(alias_name=self._serving)
            changes.append(models.DeleteAliasOperation(delete_alias=left))
        moved = ((name, self._serving), (earlier, self._replaced))
        changes += [
            models.CreateAliasOperation(
                create_alias=models.CreateAlias(collection_name=collection, alias_name=alias)
            )
            for collection, alias in moved
        ]
        await self._ask(self._client.update_collection_aliases(changes))

    async def remove_replaced(self) -> None:
        """Remove the collection that was replaced last; by this time, all processes use the new
        one.
        """
        replaced = (await self._read_aliases()).get(self._replaced)
        if replaced is not None:
            await self._ask(self._client.delete_collection(replaced))

    async def _read_aliases(self) -> dict[str, str]:
        response = await self._ask(self._client.get_aliases())
        return {alias.alias_name: alias.collection_name for alias in response.aliases}

    async def _ask(self, asked: Awaitable[T]) -> T:
        return await await_answer(asked, self._location)


async def await_answer(asked: Awaitable[T], location: str) -> T:
    """Return the response of the server at a location; raises `IndexUnavailable`."""
    try:
        return await asked
    except _CLIENT_ERRORS as error:
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise IndexUnavailable(
            f"the Qdrant server at {location} does not answer: {reason}"
        ) from error
