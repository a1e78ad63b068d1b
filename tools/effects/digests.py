"""Digests of arguments and schemas: equal values have equal digests, however they were written."""

import hashlib
import json

from pydantic import JsonValue

_CHARACTERS = 32


def digest_arguments(arguments: JsonValue) -> str:
    """Return 32 hexadecimal characters that two different values do not share."""
    written = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(written.encode()).hexdigest()[:_CHARACTERS]
