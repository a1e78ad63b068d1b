import json
from collections.abc import Iterator
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from llm.errors import UnusableSchema
from llm.tasks.all_tasks import TASKS
from llm.vendors.vendor_model import DROPPED, strict_schema


class Leaf(BaseModel):
    name: str = Field(min_length=2, description="what it is called")


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"


class Tree(BaseModel):
    title: str | None = None
    default: int = 3
    leaf: Leaf = Field(description="a leaf")
    span: tuple[int, int] = (0, 1)
    pair: tuple[int, str] = (0, "")
    animals: tuple[Annotated[Cat | Dog, Field(discriminator="kind")], ...] = ()
    children: tuple["Tree", ...] = ()


class Free(BaseModel):
    counts: dict[str, int]


def objects(node: object) -> Iterator[dict[str, object]]:
    if isinstance(node, dict):
        if "properties" in node:
            yield node
        for value in node.values():
            yield from objects(value)
    if isinstance(node, list):
        for value in node:
            yield from objects(value)


def test_every_object_is_closed_and_every_field_required() -> None:
    schemas = list(objects(strict_schema(Tree)))

    assert len(schemas) == 5, "the top, itself again, a leaf, a cat and a dog"
    for node in schemas:
        properties = node["properties"]
        assert isinstance(properties, dict)
        assert node["required"] == list(properties)
        assert node["additionalProperties"] is False


def test_a_field_may_have_the_name_of_a_keyword() -> None:
    names = {name for node in objects(strict_schema(Tree)) for name in node["properties"]}  # type: ignore[attr-defined]

    assert {"title", "default", "name"} <= names


def test_keywords_that_vendors_lack_are_left_out_and_descriptions_kept() -> None:
    schema = strict_schema(Tree)

    assert "minLength" not in json.dumps(schema)
    assert "prefixItems" not in json.dumps(schema)
    assert "oneOf" not in json.dumps(schema)
    assert "what it is called" in json.dumps(schema)


def test_the_schema_of_a_fixed_tuple_states_its_items_and_length() -> None:
    properties = strict_schema(Tree)["$defs"]["Tree"]["properties"]  # type: ignore[index,call-overload]

    assert properties["span"]["items"] == {"type": "integer"}  # type: ignore[index,call-overload]
    assert properties["span"]["maxItems"] == 2  # type: ignore[index,call-overload]
    assert len(properties["pair"]["items"]["anyOf"]) == 2  # type: ignore[index,call-overload,arg-type]


def test_a_mapping_with_free_keys_is_an_error_at_once() -> None:
    with pytest.raises(UnusableSchema, match=r"Free\.counts"):
        strict_schema(Free)


@pytest.mark.parametrize("name", TASKS)
def test_the_output_of_every_task_can_be_said_strictly(name: str) -> None:
    output: type[BaseModel] = TASKS[name].output

    schema = strict_schema(output)

    for node in objects(schema):
        keywords = set(node) - {"properties"}
        assert not keywords & DROPPED
    assert schema["type"] == "object"
