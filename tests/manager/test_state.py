"""What the manager may read and write, and what it makes of values of another type."""

import ast
from pathlib import Path

import pytest
from structlog.testing import capture_logs

import manager
from envelope.conversation import Preferences
from envelope.envelope import ContractError
from envelope.payload import ATTRIBUTES
from manager.flow import Flow, Return, Row, Scatter
from manager.flows import FLOWS
from manager.state import MANAGER_READS, MANAGER_WRITES, BranchItem, Json, Property, State

FOLDER = Path(manager.__file__).parent
OTHER_JSON = {"state.py", "released.py", "result_limits.py", "usage_totals.py"}
"""The state itself, and modules whose JSON is not a payload: the released flows, results of any
content, and sums of usage.
"""


def find_raw_reads(source: str) -> list[str]:
    """Return the places at which code reads a payload by name, or narrows JSON."""
    return [ast.unparse(node) for node in ast.walk(ast.parse(source)) if _is_raw_read(node)]


def _is_raw_read(node: ast.AST) -> bool:
    match node:
        case ast.Subscript(value=holder, slice=ast.Constant(value=str())):
            return _is_payload(holder)
        case ast.Call(
            func=ast.Attribute(attr="get" | "pop", value=holder),
            args=[ast.Constant(value=str()), *_],
        ):
            return _is_payload(holder)
        case ast.Compare(
            left=ast.Constant(value=str()), ops=[ast.In() | ast.NotIn()], comparators=[holder]
        ):
            return _is_payload(holder)
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, kind]):
            return bool({"dict", "list", "Mapping"} & set(ast.unparse(kind).split(" | ")))
    return False


def _is_payload(holder: ast.expr) -> bool:
    return ast.unparse(holder).split(".")[-1] in {"payload", "writes", "json"}


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(FOLDER.rglob("*.py")) if path.name not in OTHER_JSON],
    ids=lambda path: path.stem,
)
def test_only_the_state_reads_a_payload_by_name_or_narrows_its_json(path: Path) -> None:
    assert find_raw_reads(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "payload.get('peopel')",
        "envelope.payload['peopel']",
        "state.json['peopel']",
        "'peopel' in writes",
        "isinstance(value, dict)",
        "isinstance(value, str | list)",
    ],
)
def test_a_read_beside_the_state_is_found(source: str) -> None:
    assert find_raw_reads(source) == [source]


def test_the_manager_reads_and_writes_only_attributes_of_the_catalogue() -> None:
    assert ATTRIBUTES.keys() >= MANAGER_READS | MANAGER_WRITES


def list_named(row: Row) -> set[str]:
    """Return the attributes that the targets of a row name."""
    named = set[str]()
    for target in (row.go_to, row.at_limit):
        if isinstance(target, Return):
            named |= {*target.attributes}
        if isinstance(target, Scatter):
            named |= {*target.handed_over}
    return named


@pytest.mark.parametrize("flow", FLOWS.values(), ids=lambda flow: flow.identifier)
def test_branches_return_and_receive_only_attributes_of_the_catalogue(flow: Flow) -> None:
    assert {name for row in flow.rows for name in list_named(row)} <= ATTRIBUTES.keys()


def test_the_manager_writes_no_attribute_of_an_agent_or_of_the_gateway() -> None:
    foreign: Json = {"quality_score": 1.0}

    with pytest.raises(ContractError, match="quality_score"):
        State({}).changed(**foreign)  # type: ignore[arg-type] # what the types forbid


def test_the_manager_writes_only_its_own_attributes() -> None:
    state = State({"language": "de"})

    changed = state.changed(stage="search", preferences=Preferences(language="de"))

    assert changed.json == {
        "language": "de",
        "stage": "search",
        "preferences": {"language": "de", "explicit": False},
    }
    assert state.json == {"language": "de"}


def test_a_state_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        State({}).json = {}


def test_a_value_of_another_type_counts_as_absent_and_is_logged() -> None:
    state = State({"text": 7, "people": ["a", None, "b"], "within_scope": "yes", "triage": []})

    with capture_logs() as logs:
        values = state.text, state.people, state.within_scope, state.triage

    assert values == ("", ("a", "b"), None, None)
    assert [log["event"] for log in logs] == ["payload_value_invalid"] * 4


def test_an_absent_value_is_not_logged() -> None:
    with capture_logs() as logs:
        assert (State({}).text, State({"command": None}).command) == ("", None)

    assert logs == []


def test_an_attribute_that_a_hop_wrote_as_null_is_there() -> None:
    state = State({"quality_score": None})

    assert State.quality_score in state
    assert State.quality_decision not in state


def test_branches_that_wait_are_restored_as_they_were() -> None:
    item = BranchItem("b", {"tool_call": {"call_id": "b"}}, ("a",), 3, "search: b")

    assert State({}).changed(waiting_branches=[item]).waiting_branches == (item,)


def test_every_property_has_the_name_of_its_attribute() -> None:
    properties = {
        name: member for name, member in vars(State).items() if isinstance(member, Property)
    }

    assert {member.name for member in properties.values()} == MANAGER_READS
