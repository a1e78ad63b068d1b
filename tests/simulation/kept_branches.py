"""Reads the branches and joins that a question keeps in Redis."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

Fields = Mapping[str, bytes]


def read_branches(fields: Fields) -> dict[str, str]:
    """Return the join of each open branch, by path."""
    return {
        name[2:]: value.decode().split(" ")[0]
        for name, value in fields.items()
        if name.startswith("b:")
    }


def read_joins(fields: Fields) -> dict[str, tuple[Any, ...]]:
    """Return everything that is kept of each join, by its name."""
    return {name[2:]: _read(fields, name[2:]) for name in fields if name.startswith("n:")}


def _read(fields: Fields, name: str) -> tuple[Any, ...]:
    role, need, left, good, due, following = fields[f"n:{name}"].decode().split(" ")
    paths = from_json(fields[f"p:{name}"])
    results = {path: from_json(fields[f"r:{path}"]) for path in paths if f"r:{path}" in fields}
    waiting = []
    for place in range(1, len(paths) + 1):
        waits = fields.get(f"w:{name}:{place}")
        if waits is not None:
            assert place >= int(following), f"{name} keeps a branch that has begun"
            path, of, frame = waits.split(b"\n", 2)
            waiting.append((path.decode(), of.decode(), frame))
    for path in paths:
        until = fields.get(f"b:{path}", b"").decode()
        assert until in ("", f"{name} {due}"), f"{path} has another join: {until}"
    return (
        role, fields[f"f:{name}"], int(need), int(left), int(good), int(due), results, waiting,
    )  # fmt: skip
