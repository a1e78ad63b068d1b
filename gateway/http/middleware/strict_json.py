"""Checks that a body which says it is JSON can be read in one way alone.

Python reads more than JSON: `NaN`, and names that come twice, of which another reader on the way
may take the other one.
"""

import json
from collections.abc import Sequence
from typing import NoReturn

from starlette.datastructures import Headers
from starlette.types import Scope

from gateway.http.errors import InvalidRequestError


def check_json(scope: Scope, body: bytes) -> None:
    """Raise `InvalidRequestError` unless a body of the type JSON is valid; others pass."""
    kind = Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower()
    if not body or not (kind == "application/json" or kind.endswith("+json")):
        return
    try:
        # Decoded here: Python's reader would take halves of surrogates, and guess at encodings.
        json.loads(body.decode(), object_pairs_hook=_check_names, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        # What was found is not repeated, also not by Python's own message.
        raise InvalidRequestError(
            "expected a body in JSON: UTF-8, numbers of a usual size, few levels, each name once",
            code="invalid_json",
        ) from error


def _check_names(pairs: Sequence[tuple[str, object]]) -> None:
    """Return nothing: what is read here is not used."""
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError("a name comes twice")


def _refuse_constant(_name: str) -> NoReturn:
    raise ValueError("a number that JSON does not have")
