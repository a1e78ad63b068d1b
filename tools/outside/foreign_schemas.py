"""JSON schemas of external tools, compiled once, with limits on size and cost.

Patterns run in linear time (`jsonschema_rs.RegexOptions`), references are followed only inside the
schema, and models see only the keywords in `_SHOWN`.

Recursive schemas with alternatives are rejected, because their validation takes exponential time in
the depth of the value, which may come from the same server as the schema.
"""

import json
import re
from collections.abc import Mapping
from typing import TypeGuard

import jsonschema_rs
from pydantic import JsonValue

from envelope.encoding import remove_hidden_characters
from tools.calls import digest_arguments
from tools.errors import InvalidSchema

MOST_SCHEMA_BYTES = 64_000
MOST_NODES = 2_000
_DEEPEST = 12
_MOST_PROBLEMS = 5
_LONGEST_PROBLEM = 200
_LONGEST_TEXT = 300
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SHOWN = frozenset(
    {
        "type", "description", "enum", "const", "items", "anyOf", "oneOf", "allOf", "minimum",
        "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern", "format",
        "additionalProperties", "default", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    }
)  # fmt: skip
_NO_LINKS = jsonschema_rs.RegexOptions(size_limit=1_000_000, dfa_size_limit=1_000_000)
MOST_PARTS = 5_000
"""Maximum number of parts of a schema after all references are expanded."""
_DEEPEST_CHECKED = 40
_BRANCHING = frozenset(
    {
        "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "contains", "patternProperties",
        "propertyNames", "dependentSchemas", "dependencies", "unevaluatedProperties",
        "unevaluatedItems", "prefixItems",
    }
)  # fmt: skip
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
"""Keywords whose value maps arbitrary names to schemas."""
_DATA = frozenset({"enum", "const", "default", "examples", "$defs", "definitions"})
"""Keywords whose value is not a schema to apply. Definitions apply only where they are
referenced.
"""
_DYNAMIC = frozenset({"$dynamicRef", "$recursiveRef", "$id", "id"})
MOST_DESCRIPTION = 1_000

MOST_RESULT = 200_000
"""Maximum number of characters of a result. The executor shortens it further for models."""

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class ForeignSchema:
    """A third-party JSON schema; raises `InvalidSchema`.

    `is_input` is True for the arguments of a tool, which must be an object. `is_trusted` is True
    for a schema provided by the operator, whose cost is not checked.
    """

    def __init__(
        self,
        schema: Mapping[str, JsonValue],
        *,
        is_input: bool = True,
        is_trusted: bool = False,
    ) -> None:
        try:
            size = len(json.dumps(schema))
        except (RecursionError, TypeError, ValueError) as error:
            raise InvalidSchema(
                f"the JSON schema cannot be read: {type(error).__name__}"
            ) from error
        if size > MOST_SCHEMA_BYTES:
            raise InvalidSchema(
                f"expected a schema of at most {MOST_SCHEMA_BYTES} bytes, found {size}"
            )
        if is_input and schema.get("type") != "object":
            raise InvalidSchema(f"expected a schema of an object, found {schema.get('type')!r:.80}")
        if not is_trusted:
            check_cost(schema)
        self.schema = dict(schema)
        try:
            self._validator = jsonschema_rs.validator_for(
                self.schema, pattern_options=_NO_LINKS, offline=True, validate_formats=False
            )
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            reason = clean_line(str(error), _LONGEST_PROBLEM)
            raise InvalidSchema(f"expected a valid JSON schema: {reason}") from error
        self._shown = _SchemaWriter(self.schema).show() if is_input else {}

    def find_problems(self, value: JsonValue) -> str:
        """Return the validation errors for a value as one string, or "" if it is valid."""
        problems = []
        for error in self._validator.iter_errors(value):
            place = ".".join(str(part)[:80] for part in error.instance_path) or "arguments"
            problems.append(f"{place}: {clean_line(error.message, _LONGEST_PROBLEM)}")
            if len(problems) == _MOST_PROBLEMS:
                break
        return "; ".join(problems)

    def describe(self) -> dict[str, JsonValue]:
        """Return the schema for a model, with references inlined and long texts shortened."""
        return self._shown


class _SchemaWriter:
    """Inlines the references of a schema, up to `MOST_NODES` nodes and `_DEEPEST` levels.

    The limits are needed because schemas may be recursive, and nested references can expand
    exponentially. Deeper levels accept any value.
    """

    def __init__(self, schema: dict[str, JsonValue]) -> None:
        self._schema = schema
        self._left = MOST_NODES

    def show(self) -> dict[str, JsonValue]:
        shown = self._show(self._schema, 0)
        if self._left < 0:
            raise InvalidSchema(f"expected a schema of at most {MOST_NODES} parts, found more")
        shown.setdefault("properties", {})
        return shown

    def _show(self, value: JsonValue, depth: int) -> dict[str, JsonValue]:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST or not isinstance(value, dict):
            return {}
        reference = value.get("$ref")
        if isinstance(reference, str):
            value = {**self._find(reference), **{k: v for k, v in value.items() if k != "$ref"}}
            if "$ref" in value:
                return self._show(value, depth + 1)
        shown = {key: self._show_keyword(key, item, depth) for key, item in value.items()}
        shown = {key: item for key, item in shown.items() if key in _SHOWN}
        properties = value.get("properties")
        if isinstance(properties, dict):
            shown |= self._show_properties(properties, value.get("required"), depth)
        return shown

    def _show_properties(
        self, properties: dict[str, JsonValue], required: JsonValue, depth: int
    ) -> dict[str, JsonValue]:
        names = [name for name in properties if _PROPERTY.fullmatch(name)]
        needed = [name for name in required if name in properties] if _is_list(required) else []
        if not set(needed) <= set(names):
            raise InvalidSchema(
                "the names of required properties must consist of letters, digits and _.-"
            )
        return {
            "properties": {name: self._show(properties[name], depth + 1) for name in names},
            "required": list(needed),
        }

    def _show_keyword(self, key: str, value: JsonValue, depth: int) -> JsonValue:
        if key in ("anyOf", "oneOf", "allOf") and isinstance(value, list):
            return [self._show(item, depth + 1) for item in value]
        if key == "items" or (key == "additionalProperties" and isinstance(value, dict)):
            return self._show(value, depth + 1)
        return self._clean(value) if key in _SHOWN else None

    def _clean(self, value: JsonValue) -> JsonValue:
        self._left -= 1
        if self._left < 0:
            return None
        if isinstance(value, str):
            return clean(value, _LONGEST_TEXT)
        if isinstance(value, list):
            return [self._clean(item) for item in value]
        if isinstance(value, dict):
            return {clean(key, _LONGEST_TEXT): self._clean(item) for key, item in value.items()}
        return value

    def _find(self, reference: str) -> dict[str, JsonValue]:
        target = find_target(self._schema, reference)
        return target if isinstance(target, dict) else {}


class _SchemaWalk:
    """Visits the parts of a schema that validation may reach."""

    def __init__(self, schema: Mapping[str, JsonValue]) -> None:
        self.is_recursive = False
        self.branches: set[str] = set()
        self._schema = schema
        self._left = MOST_PARTS

    def visit(self, value: JsonValue, inside: tuple[str, ...], depth: int) -> None:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST_CHECKED:
            raise InvalidSchema(f"expected a schema of at most {MOST_PARTS} parts, found more")
        if isinstance(value, list):
            for item in value:
                self.visit(item, inside, depth + 1)
        elif isinstance(value, dict):
            for key, item in value.items():
                self._visit_keyword(key, item, inside, depth)

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


def digest_definition(
    name: str,
    description: str,
    schema: Mapping[str, JsonValue],
    output: Mapping[str, JsonValue] | None,
) -> str:
    """Return the digest of the third-party definition of a tool."""
    return digest_arguments(
        [name, description, dict(schema), None if output is None else dict(output)]
    )


def check_cost(schema: Mapping[str, JsonValue]) -> None:
    """Raise `InvalidSchema` for a schema that is too expensive for validation."""
    walk = _SchemaWalk(schema)
    walk.visit(dict(schema), ("#",), 0)
    if walk.is_recursive and walk.branches:
        raise InvalidSchema(
            f"{min(walk.branches)} is not supported in a schema that contains itself"
        )


def find_target(schema: Mapping[str, JsonValue], reference: str) -> JsonValue:
    """Return the target of a reference such as `#/a/b` in a schema, or None."""
    value: JsonValue = dict(schema)
    if reference == "#":
        return value
    if not reference.startswith("#/"):
        return None
    for part in reference[2:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        value = value.get(key) if isinstance(value, dict) else None
    return value


def clean(text: str, longest: int) -> str:
    """Return at most `longest` characters of a text, without control and invisible characters."""
    visible = remove_hidden_characters(_CONTROLS.sub("", text[: 2 * longest]))
    return visible if len(visible) <= longest else f"{visible[: longest - 1]}…"


def clean_line(text: str, longest: int) -> str:
    """Return cleaned text on one line."""
    return clean(" ".join(text.split()), longest)


def _is_list(value: JsonValue) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
