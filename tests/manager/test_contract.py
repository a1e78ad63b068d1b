"""The manager is held to the payload catalogue like any agent."""

import ast
from pathlib import Path

import pytest

import manager
from envelope.payload import ATTRIBUTES, CATALOGUE
from envelope.role import Role
from manager.contract import MANAGER_WRITES, ManagerContractError, write_payload

FOLDER = Path(manager.__file__).parent
READABLE = {a.name for a in CATALOGUE if Role.MANAGER in a.read_by} | MANAGER_WRITES


def names_read(source: str) -> set[str]:
    """Return the attributes that code reads by name from a payload, or from what a hop wrote."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Subscript(value=value, slice=ast.Constant(value=str() as name)):
                holder = value
            case ast.Call(
                func=ast.Attribute(attr="get", value=value),
                args=[ast.Constant(value=str() as name), *_],
            ):
                holder = value
            case _:
                continue
        if ast.unparse(holder).split(".")[-1] in {"payload", "writes"}:
            found.add(name)
    return found


def test_the_manager_writes_no_attribute_of_an_agent_or_of_the_gateway() -> None:
    with pytest.raises(ManagerContractError, match="quality_score"):
        write_payload({}, {"stage": "search", "quality_score": 1.0})


def test_the_manager_writes_what_is_its_own_and_keeps_the_rest() -> None:
    assert write_payload({"language": "de"}, {"stage": "search"}) == {
        "language": "de",
        "stage": "search",
    }


def test_the_manager_changes_payloads_only_by_the_function_that_checks() -> None:
    unchecked = [
        path.name for path in FOLDER.glob("*.py") if "payload={" in path.read_text(encoding="utf-8")
    ]

    assert unchecked == []


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_the_manager_reads_only_what_the_catalogue_gives_it(path: Path) -> None:
    read = names_read(path.read_text(encoding="utf-8"))

    assert read & set(ATTRIBUTES) <= READABLE, sorted(read & set(ATTRIBUTES) - READABLE)


def test_reading_by_name_is_found() -> None:
    assert names_read("envelope.payload.get('text')\nwrites['stage']") == {"text", "stage"}
