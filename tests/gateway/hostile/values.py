"""Values that no program expects, and ways to put them where others belong."""

import copy
import random
from collections.abc import Iterator
from typing import Any

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**63, 10**30, 1.5, "", "a", "\ud800", "\x00", "../../etc/passwd",
    "<!channel>", "x" * 5_000, [], [[]], [None], {}, {"": {}}, {"id": None}, {"id": []}, ["a", 1],
)  # fmt: skip
NOT_JSON = (
    b"", b"{", b"null", b"[]", b"1", b'"a"', b"\xff\xfe", b"[" * 100_000, b'{"a":' * 50_000,
    b'{"update_id": NaN}', b'{"update_id": ' + b"9" * 5_000 + b"}", b'{"a": "\\ud800"}', b"\x00",
    b"payload=", b"payload=%7B", b"payload=%FF", b"payload=null", b"a=b&a=c", b"%00" * 100,
)  # fmt: skip


def bent(value: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """Return a copy in which one or two values, at any depth, are others or are missing."""
    made = copy.deepcopy(value)
    for _ in range(chance.choice((1, 1, 2))):
        holder, name = chance.choice(list(_places(made)))
        if chance.random() < 0.25:
            del holder[name]
        else:
            holder[name] = copy.deepcopy(chance.choice(ODD))
    return made or {"": None}


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    names = value.keys() if isinstance(value, dict) else range(len(value))
    for name in list(names):
        yield value, name
        if isinstance(value[name], (dict, list)):
            yield from _places(value[name])
