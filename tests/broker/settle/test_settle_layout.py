"""The keys and arguments of every kind of settlement, byte by byte."""

import hashlib
import json
from pathlib import Path
from typing import Any

import hiredis
import pytest

from broker.settlement import ScriptCall
from tests.broker.settle.settlement_examples import examples, pack

GOLDEN = Path(__file__).parent / "golden" / "settlements.json"
EACH = pytest.mark.parametrize("name", list(examples()))


def to_json_value(value: object) -> object:
    """Return an argument for a JSON file: long ones by their size and digest."""
    if isinstance(value, list | tuple):
        return [to_json_value(each) for each in value]
    if isinstance(value, bytes):
        if len(value) > 200:
            return f"{len(value)} bytes, sha256 {hashlib.sha256(value).hexdigest()}"
        return f"bytes {value.decode()}"
    return value


def describe(call: ScriptCall) -> dict[str, object]:
    """Return everything that one call sends."""
    command: tuple[Any, ...] = ("EVALSHA", "digest", len(call.keys), *call.keys, *call.args)
    wire = hiredis.pack_command(command)
    return {
        "keys": call.keys,
        "args": to_json_value(call.args),
        "wire": hashlib.sha256(wire).hexdigest(),
        "wire_bytes": len(wire),
    }


@EACH
def test_a_settlement_is_sent_as_it_always_was(name: str) -> None:
    golden = json.loads(GOLDEN.read_text("utf-8"))

    assert describe(pack(examples()[name])[1]) == golden[name]


def test_no_golden_settlement_is_left_over() -> None:
    assert sorted(json.loads(GOLDEN.read_text("utf-8"))) == sorted(examples())
