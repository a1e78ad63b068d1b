"""Looks for a word wherever Redis may keep it: every key of every type, its insides, its files."""

import secrets
from pathlib import Path
from typing import Any


def make_canary() -> str:
    """Return a word that stands nowhere by chance, and compresses into nothing else."""
    return f"canary{secrets.token_hex(12)}"


async def keys_with(client: Any, word: str) -> list[str]:
    """Return the keys that hold a word, and the entries of the slow log with it."""
    slow = await client.slowlog_get(128)
    logged = [f"slowlog: {entry}" for entry in slow if word in str(entry)]
    return [*await values_with(client, word), *logged]


async def values_with(client: Any, word: str) -> list[str]:
    """Return the keys that hold a word: in their name, or anywhere in what a dump of them says.

    A dump has what was deleted from a stream and was not given back yet, too.
    """
    results = []
    for key in await client.keys("*"):
        dump = await client.dump(key)
        if word.encode() in key or word.encode() in (dump or b""):
            results.append(key.decode())
    return results


def files_with(folder: Path, word: str) -> list[str]:
    """Return the files of a folder that hold a word, in their name or anywhere in them."""
    named = [str(path.relative_to(folder)) for path in folder.rglob("*") if word in str(path)]
    return sorted({*named, *files_with_bytes(folder, word.encode())})


def files_with_bytes(folder: Path, trace: bytes) -> list[str]:
    """Return the files of a folder that hold these bytes.

    Redis renames its temporary files while this reads. A file that has gone is not counted: what
    it became is read under its new name, as the folder is listed until all of a listing was read.
    """
    while True:
        files = [path for path in folder.rglob("*") if path.is_file()]
        try:
            return [str(path.relative_to(folder)) for path in files if trace in path.read_bytes()]
        except FileNotFoundError:
            continue
