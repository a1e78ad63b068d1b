"""Refuses schemas whose check could take a time that grows exponentially with the checked value.

A schema that contains itself among alternatives does so: every level of the value is checked once
for each alternative of the level above. The server that wrote the schema may also write the value.
"""

from collections.abc import Mapping

from pydantic import JsonValue

from tools.errors import InvalidSchema

MOST_PARTS = 5_000
"""Parts of a schema in which every reference is replaced by its target."""
_DEEPEST = 40
_BRANCHING = frozenset(
    {
        "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "contains", "patternProperties",
        "propertyNames", "dependentSchemas", "dependencies", "unevaluatedProperties",
        "unevaluatedItems", "prefixItems",
    }
)  # fmt: skip
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
"""Keywords whose value has schemas under names that anybody chooses."""
_DATA = frozenset({"enum", "const", "default", "examples", "$defs", "definitions"})
"""Keywords whose value is no part of a check; definitions are, where they are referred to."""
_DYNAMIC = frozenset({"$dynamicRef", "$recursiveRef", "$id", "id"})


def check_cost(schema: Mapping[str, JsonValue]) -> None:
    """Raise `InvalidSchema` for a schema that is too costly to check values by."""
    walk = _SchemaWalk(schema)
    walk.visit(dict(schema), ("#",), 0)
    if walk.is_recursive and walk.branches:
        raise InvalidSchema(
            f"expected no {min(walk.branches)} in a schema that contains itself, found one"
        )


def find_target(schema: Mapping[str, JsonValue], reference: str) -> JsonValue:
    """Return the part of a schema that a reference of the form `#/a/b` names, or None."""
    value: JsonValue = dict(schema)
    if reference == "#":
        return value
    if not reference.startswith("#/"):
        return None
    for part in reference[2:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        value = value.get(key) if isinstance(value, dict) else None
    return value


class _SchemaWalk:
    """Visits the parts of a schema in the order of a check."""

    def __init__(self, schema: Mapping[str, JsonValue]) -> None:
        self.is_recursive = False
        self.branches: set[str] = set()
        self._schema = schema
        self._left = MOST_PARTS

    def visit(self, value: JsonValue, inside: tuple[str, ...], depth: int) -> None:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            raise InvalidSchema(f"expected a schema of at most {MOST_PARTS} parts, found more")
        if isinstance(value, list):
            for one in value:
                self.visit(one, inside, depth + 1)
        elif isinstance(value, dict):
            for key, one in value.items():
                self._visit_keyword(key, one, inside, depth)

    def _visit_keyword(
        self, key: str, value: JsonValue, inside: tuple[str, ...], depth: int
    ) -> None:
        if key in _DATA:
            return
        if key in _DYNAMIC and isinstance(value, str):
            raise InvalidSchema(f"expected references of the form #/..., found {key}")
        if key in _BRANCHING:
            self.branches.add(key)
        if key == "$ref" and isinstance(value, str):
            self._follow(value, inside, depth)
        elif key in _NAMED and isinstance(value, dict):
            self.visit(list(value.values()), inside, depth + 1)
        else:
            self.visit(value, inside, depth + 1)

    def _follow(self, reference: str, inside: tuple[str, ...], depth: int) -> None:
        if reference in inside:
            self.is_recursive = True
            return
        target = find_target(self._schema, reference)
        if target is None:
            raise InvalidSchema(f"expected a reference inside the schema, found {reference!r:.80}")
        self.visit(target, (*inside, reference), depth + 1)
