"""Records which documents are being changed, so that a restart after a kill checks only these.

The first line of the file identifies the boot of the machine, and each further line contains the
documents of one change. A flush makes earlier changes durable, after which the file contains only
the last change. After a restart of the machine, unflushed changes may be lost, so the incomplete
documents are unknown.
"""

import json
import os
from collections.abc import Collection
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class ChangeLog:
    """The changes since the last flush, in a file that exists until the index is closed.

    `was_interrupted` is true if the previous process was killed after a change. `documents`
    contains the documents that it may have left incomplete, or is None if they are unknown.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: Collection[str] = ()
        self._is_new = True
        self.was_interrupted = path.exists()
        self.documents: Collection[str] | None = _read(path) if self.was_interrupted else ()

    def begin(self, documents: Collection[str]) -> None:
        """Record documents before the first of their points is changed."""
        self._last = documents
        if self._is_new and not self.was_interrupted:
            self._replace()
        else:
            with self._path.open("a", encoding="utf-8") as log:
                log.write(_make_line(documents))
        self._is_new = False

    def keep_last(self) -> None:
        """Remove the changes before the last one, after they were flushed."""
        if not self._is_new and not self.was_interrupted:
            self._replace()

    def forget_interruption(self) -> None:
        """Delete the record of an interrupted process, after its changes were repaired and
        flushed.
        """
        self.was_interrupted, self.documents = False, ()
        self.close()

    def close(self) -> None:
        """Remove the file after everything was flushed, unless something has to be repaired."""
        if not self.was_interrupted:
            self._path.unlink(missing_ok=True)
            self._is_new = True

    def _replace(self) -> None:
        written = self._path.with_suffix(".new")
        written.write_text(f"{_read_boot()}\n{_make_line(self._last)}", "utf-8")
        os.replace(written, self._path)


def _read(path: Path) -> Collection[str] | None:
    try:
        boot, _, lines = path.read_text("utf-8").partition("\n")
        if not boot or boot != _read_boot():
            return None
        return {str(name) for line in lines.splitlines() for name in json.loads(line)}
    except (ValueError, TypeError):
        return None


def _read_boot() -> str:
    """Return an identifier for this boot of the machine, or an empty string if the system provides
    none.
    """
    return _BOOT.read_text("ascii").strip() if _BOOT.exists() else ""


def _make_line(documents: Collection[str]) -> str:
    return json.dumps(list(documents)) + "\n"
