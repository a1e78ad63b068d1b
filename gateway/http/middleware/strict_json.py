"""Checks that a JSON body has only one interpretation.

Python reads more than JSON: `NaN`, and repeated names, of which another reader may take the other
value.
"""

import json
from collections.abc import Sequence
from typing import NoReturn

from starlette.datastructures import Headers
from starlette.types import Scope

from gateway.http.errors import InvalidRequestError


def check_json(scope: Scope, body: bytes) -> None:
    """Raise `InvalidRequestError` for an invalid body of the type JSON; other types pass."""
    kind = Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower()
    if not body or not (kind == "application/json" or kind.endswith("+json")):
        return
    try:
        # Decoded here: Python's parser would accept lone surrogates, and guess the encoding.
        json.loads(body.decode(), object_pairs_hook=_check_names, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        # The message does not repeat the body, and neither does Python's chained error.
        raise InvalidRequestError(
            "expected a JSON body: UTF-8, numbers of a usual size, few levels, unique names",
            code="invalid_json",
        ) from error


def _check_names(pairs: Sequence[tuple[str, object]]) -> None:
    """Raise for repeated names; returns nothing, because the parsed value is not used."""
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError("a duplicate name")


def _refuse_constant(_name: str) -> NoReturn:
    raise ValueError("a number that is not valid in JSON")
