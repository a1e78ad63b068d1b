"""Parses JSON and YAML that strangers wrote, into plain types only.

Aliases of YAML share one value: a reader must bound the text that it writes, too.
"""

import json
from typing import Any

import yaml

from knowledge.documents.decoding import decode
from knowledge.documents.errors import TooLargeError, WrongFormatError

_MOST_BYTES = 16 * 1024 * 1024


class _DatelessLoader(yaml.CSafeLoader):
    """The safe loader in C; a date stays the text that it is, as a version often looks like one."""


_DatelessLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse_structured(data: bytes, *, is_json: bool) -> tuple[Any, tuple[str, ...]]:
    """Return the value of a JSON or YAML text, and warnings; raise a `ReadingError`."""
    if len(data) > _MOST_BYTES:
        raise TooLargeError(f"a file of data may have {_MOST_BYTES} bytes, found {len(data)}")
    text, warnings = decode(data)
    kind = "JSON" if is_json else "YAML"
    try:
        value = json.loads(text) if is_json else yaml.load(text, _DatelessLoader)  # noqa: S506 - safe
    except RecursionError as error:
        raise WrongFormatError(f"expected {kind}, found one nested too deeply") from error
    except (ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())[:200]
        raise WrongFormatError(f"expected {kind}, found {reason}") from error
    return value, warnings
