"""The folders of an assistant's embedded indexes.

One index serves questions. Another one, for a different embedding model, may be written to replace
it. A file contains the name of the serving folder. It is written last, so that the serving index is
complete even if the process is killed at any time.
"""

import hashlib
import os
import shutil
from pathlib import Path

import structlog
from pydantic import BaseModel, ValidationError

from knowledge.embedding_forms import VectorIdentity
from knowledge.errors import IndexOwned, IndexUnavailable
from knowledge.index.embedded import lock_folder, open_embedded
from knowledge.index.points import layout
from knowledge.index.qdrant import Identity, QdrantIndex

log = structlog.get_logger("knowledge")


class _Pointer(BaseModel, frozen=True, extra="forbid"):
    """The name of the serving folder, and the names of the folders that it has replaced."""

    serving: str
    replaced: tuple[str, ...] = ()


class IndexFolders:
    """The indexes of one assistant, below a folder."""

    def __init__(self, folder: Path, tenant: str, assistant: str) -> None:
        self._folder = folder
        self._first = layout.namespace(tenant, assistant)
        self._file = folder / f"{self._first}.json"

    @property
    def serving(self) -> str:
        """The name of the serving folder; raises `IndexUnavailable` if it cannot be read."""
        return self._read().serving

    def name_replacement(self, vectors: VectorIdentity) -> str:
        """Return the name of the folder in which an index with such vectors is written."""
        digest = hashlib.sha256(repr(tuple(vectors)).encode()).hexdigest()
        return f"{self._first}.{digest[:12]}"

    def has(self, name: str) -> bool:
        """Return whether there is a folder with this name."""
        return (self._folder / name).exists()

    async def open_serving(self, identity: Identity) -> QdrantIndex:
        """Open the serving index; raises the same errors as `open_embedded`."""
        self.remove_replaced()
        while True:
            name = self.serving
            index = await open_embedded(self._folder, identity, name=name)
            if self.serving == name:
                return index
            # It was replaced while it was opened.
            await index.close()

    async def open_replacement(self, identity: Identity) -> QdrantIndex:
        """Open the index that is written to replace the serving one; raises the same errors as
        `open_embedded`.
        """
        name = self.name_replacement(identity.vectors)
        self.remove_replaced()
        index = await open_embedded(self._folder, identity, name=name)
        pointer = self._read()
        if name in pointer.replaced:
            left = tuple(
                replaced_name for replaced_name in pointer.replaced if replaced_name != name
            )
            self._write(_Pointer(serving=pointer.serving, replaced=left))
        return index

    def switch(self, name: str) -> None:
        """Let the index with this name serve questions, from the next start of each process."""
        pointer = self._read()
        replaced = {pointer.serving, *pointer.replaced} - {name}
        self._write(_Pointer(serving=name, replaced=tuple(sorted(replaced))))

    def remove_replaced(self) -> list[str]:
        """Remove the replaced indexes; return the names of the indexes that still exist.

        These are open in a process, or could not be removed, which is logged.
        """
        pointer = self._read()
        return [name for name in pointer.replaced if self.has(name) and not self._remove(name)]

    def _remove(self, name: str) -> bool:
        try:
            owner = lock_folder(self._folder / name)
        except IndexOwned:
            return False
        with owner:
            try:
                shutil.rmtree(self._folder / name)
            except OSError as error:
                log.warning("replaced_index_not_removed", folder=name, error=str(error))
                return False
        return True

    def _read(self) -> _Pointer:
        try:
            pointer = _Pointer.model_validate_json(self._file.read_bytes())
        except FileNotFoundError:
            return _Pointer(serving=self._first)
        except (OSError, ValidationError) as error:
            raise self._describe_damage() from error
        # Files named here are opened and removed: none outside of this folder is allowed.
        if not all(self._is_own(name) for name in (pointer.serving, *pointer.replaced)):
            raise self._describe_damage()
        return pointer

    def _is_own(self, name: str) -> bool:
        return name.partition(".")[0] == self._first and Path(name).name == name

    def _describe_damage(self) -> IndexUnavailable:
        return IndexUnavailable(
            f"the file {self._file}, which contains the name of the index, is damaged; restore "
            "it, or remove the folder and ingest the documents again"
        )

    def _write(self, pointer: _Pointer) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        waiting = self._file.with_suffix(".new")
        with waiting.open("w", encoding="utf-8") as file:
            file.write(pointer.model_dump_json())
            file.flush()
            os.fsync(file.fileno())
        waiting.replace(self._file)
