"""Reads the version of the index that a hop reads, for the record of its evidence."""

from collections.abc import Mapping
from typing import Protocol
from uuid import uuid4

from knowledge.errors import KnowledgeError
from manager.evidence import INDEX_READERS, name_index_version
from worker.agent_handler import Assistant, ReadIndexVersion

_PROCESS = uuid4().hex[:8]
"""An index in the process counts its own changes: other processes count others."""


class RevisedIndex(Protocol):
    """An index that counts its changes; `follow_server` is None for one of this process."""

    @property
    def follow_server(self) -> object: ...

    async def read_revision(self) -> str:
        """Return the revision that answers now; raises `KnowledgeError` if it cannot be read."""
        ...


class IndexUser(Protocol):
    """What the agents of an assistant share; `knowledge` is None where they have no index."""

    @property
    def knowledge(self) -> RevisedIndex | None: ...


def make_version_reader(role: str, users: Mapping[Assistant, IndexUser]) -> ReadIndexVersion | None:
    """Return a function from an assistant to the version of its index; "" if it cannot be read.

    None for a role whose index version is no evidence.
    """
    if role not in INDEX_READERS:
        return None

    async def read(assistant: Assistant) -> str:
        user = users.get(assistant)
        knowledge = None if user is None else user.knowledge
        if knowledge is None:
            return ""
        try:
            revision = await knowledge.read_revision()
        except KnowledgeError:
            # The hop itself reads the index next, and names the fault.
            return ""
        is_own = knowledge.follow_server is None
        return name_index_version(revision, counted_by=_PROCESS if is_own else "")

    return read
