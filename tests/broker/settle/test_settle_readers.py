"""The Lua that reads a settlement: written from the layout, and true to what is packed."""

import json
import re
from collections.abc import Collection
from importlib.resources import files
from typing import Any

import pytest
from fakeredis import FakeRedis

from broker import settle_script
from broker.keys import shard_keys
from broker.settle_script import (
    FORWARD,
    KINDS,
    RECORD_FIELDS,
    SETTLE,
    Group,
    SettlementKind,
    names_of,
    pack_header,
    pack_letters,
    pack_streams,
    render_header,
)
from broker.transport.scripts import LuaScript
from broker.values import Forward
from tests.broker.settle.settlement_examples import LIMITS, WANTS, delivery, examples, pack

FOLDER = files("broker") / "lua"
BODY = "".join(
    (FOLDER / f"{name}.lua").read_text("utf-8")
    for name in ("forward", "other_settlements", "settle")
)
PRELUDE = (FOLDER / "prelude.lua").read_text("utf-8")
CLOSING = (FOLDER / "closing.lua").read_text("utf-8")
GROUPS = [name for name in vars(settle_script) if name.startswith("pack_")]
READ = """
local shard = read_streams()
if WHOLE then
  read_whole(shard)
end
local demands, settlements, places = {}, {}, {}
for place = 1, tonumber(arg()) do
  demands[place] = read_demand()
end
while next_arg < #ARGV do
  local header = read_header()
  places[#places + 1] = { header, next_key, next_arg }
  next_key, next_arg = next_key + header.key_count, next_arg + header.argument_count
end
for place, one in ipairs(places) do
  local header = one[1]
  next_key, next_arg = one[2], one[3]
  local kind = header.kind
  local key_end, argument_end = next_key + header.key_count, next_arg + header.argument_count
  local keys = read_keys[kind](header.question)
  if header.branch ~= '' then
    keys.frames = keys.frames or key()
  end
  local found = { keys = keys, header = header, sends = {}, writes = {} }
  next_arg = next_arg + header.journal_fields
  found.arguments = read_arguments[kind]()
  for number = 1, tonumber(found.arguments.sends or 0) do
    found.sends[number] = read_send()
  end
  for number = 1, tonumber(found.arguments.branches or 0) do
    found.branches = found.branches or {}
    found.branches[number] = read_branch()
  end
  for number = 1, tonumber(found.arguments.memory_writes or 0) do
    local write = read_memory_write()
    found.writes[number] = write
    next_arg = next_arg + write.values
  end
  if kind == 'finish' and found.arguments.forget ~= '' then
    found.forgotten = {}
    for number = 1, tonumber(arg()) do
      found.forgotten[number] = read_forgotten()
    end
  end
  found.is_read_whole = next_key == key_end and next_arg == argument_end
  settlements[place] = found
end
return cjson.encode({ demands = demands, settlements = settlements, ttl = shard.ttl,
  cap = shard.cap, letters_ttl = shard.letters_ttl, letters = shard.letters })
"""
"""Reads a call with the readers of the script, as the script does, and returns all by name."""


def read_back(name: str) -> dict[str, Any]:
    """Return what the Lua readers find in the call of an example."""
    script, call = pack(examples()[name])
    whole = f"local WHOLE = {'true' if script is SETTLE else 'false'}"
    text = "\n".join((whole, PRELUDE, CLOSING, render_header(KINDS.values()), READ))
    answer: Any = FakeRedis().eval(text, len(call.keys), *call.keys, *call.args)
    found: dict[str, Any] = json.loads(answer)
    return found


def names_after(variable: str) -> set[str]:
    """Return what the script reads of a variable by name."""
    return set(re.findall(rf"(?<![\w.]){variable}\.(\w+)", BODY))


def read_record_fields(name: str, place: int = 0) -> dict[str, Any]:
    settlement: dict[str, Any] = read_back(name)["settlements"][place]
    return settlement


@pytest.mark.parametrize("name", list(examples()))
def test_lua_reads_every_settlement_to_its_end(name: str) -> None:
    settlements = read_back(name)["settlements"]

    assert len(settlements) == len(examples()[name])
    assert all(found["is_read_whole"] for found in settlements)


def test_lua_reads_the_shard_and_the_demands_under_their_names() -> None:
    found = read_back("finish")

    assert found["ttl"] == str(LIMITS.ttl_ms)
    assert (found["cap"], found["letters_ttl"]) == (
        str(LIMITS.dead_letters),
        str(LIMITS.dead_letter_ttl_ms),
    )
    assert found["letters"] == shard_keys(3).letters
    assert found["demands"] == [
        {"role": want.role, "consumer": want.consumer, "slots": str(want.slots)} for want in WANTS
    ]


def test_lua_reads_a_header_under_its_names() -> None:
    taken = delivery()

    header = read_record_fields("a mixed batch", 2)["header"]

    assert (header["kind"], header["role"], header["entry_id"]) == ("retry", "manager", "3-0")
    assert (header["consumer"], header["delivery_count"]) == (taken.consumer, str(taken.count))
    assert set(header) == set(names_of(pack_header))


def test_lua_reads_a_finish_under_its_names() -> None:
    found = read_record_fields("finish")

    assert found["arguments"]["reply"] == '{"outcome":"answered"}'
    assert found["keys"]["results"] == "rd:{3}:results:chat"
    assert found["keys"]["tombstone"].startswith("rd:{3}:tombstone:")
    assert [write["key"] for write in found["writes"]] == [f"rd:{{3}}:mem:{n}" for n in "abcd"]
    assert [write["keep"] for write in found["writes"]] == ["10", "0", "0", "0"]


def test_lua_reads_forgotten_messages_under_their_names() -> None:
    found = read_record_fields("finish that forgets")

    assert found["forgotten"][1] == {
        "record": "record-2", "journal": "journal-2", "results": "record-2",
    }  # fmt: skip


def test_lua_reads_a_scatter_and_its_branches_under_their_names() -> None:
    found = read_record_fields("scatter")

    assert found["arguments"] == {
        "join": "#0", "role": "manager", "frame": "goes on", "need": "1", "at_once": "1",
        "duration_ms": "2500", "watch": "", "watch_frame": "", "branches": "2",
    }  # fmt: skip
    assert found["branches"][1] == {"path": "t2", "role": "quality", "frame": "2"}
    assert found["keys"]["frames"].startswith("rd:{3}:frames:")


@pytest.mark.parametrize(
    "name", ["return of a result", "forward in a branch", "retry in a branch", "bury in a branch"]
)
def test_lua_reads_the_path_of_a_branch_and_the_key_that_keeps_it(name: str) -> None:
    found = read_record_fields(name)

    assert found["header"]["branch"] == "t1"
    assert found["keys"]["frames"].startswith("rd:{3}:frames:")


def test_lua_reads_a_burial_and_its_notice_under_their_names() -> None:
    found = read_record_fields("bury with a notice")

    assert found["arguments"]["deaths"] == "w8@1500 w9@2250"
    assert found["arguments"]["worker"] == "w9"
    assert found["sends"] == [{"role": "manager", "form": "whole", "frame": "notice"}]


@pytest.mark.parametrize(
    ("name", "form", "base"),
    [
        ("forward of a part", "part", "submitted"),
        ("forward that keeps its frame", "kept", "manager:1700000000000-7"),
    ],
)
def test_lua_reads_the_base_of_a_frame(name: str, form: str, base: str) -> None:
    (send,) = read_record_fields(name)["sends"]

    assert (send["form"], send["base"]) == (form, base)
    assert ("frames" in send) == (form == "kept")


@pytest.mark.parametrize(
    ("script", "kinds"), [(SETTLE, KINDS.values()), (FORWARD, [KINDS[Forward]])]
)
def test_the_readers_in_the_script_are_those_of_the_layout(
    script: LuaScript, kinds: Collection[SettlementKind]
) -> None:
    assert script.text.startswith(f"{PRELUDE}\n{render_header(kinds)}\n")


@pytest.mark.parametrize(
    ("name", "script"),
    [("forward", FORWARD), ("forward in a branch", FORWARD), ("retry", SETTLE),
     ("a mixed batch", SETTLE)],
)  # fmt: skip
def test_a_batch_that_only_forwards_is_settled_by_the_short_script(
    name: str, script: LuaScript
) -> None:
    assert pack(examples()[name])[0] is script


def test_lua_reads_the_shard_in_the_order_in_which_it_is_packed() -> None:
    streams = PRELUDE[PRELUDE.index("local function read_streams") :]
    shard = CLOSING[CLOSING.index("local function read_whole") :]
    shard = shard[: shard.index("\nend")]
    names = [
        name
        for line in re.findall(r"shard\..+ = ", shard)
        for name in re.findall(r"shard\.(\w+)", line)
    ]

    assert [getattr(shard_keys(0), name) for name in names[:-2]] == list(shard_keys(0).all)
    assert tuple(names[-2:]) == names_of(pack_letters)
    assert (*re.findall(r"(\w+) = arg\(\)", streams), "roles") == names_of(pack_streams)


@pytest.mark.parametrize(
    ("variable", "groups"),
    [
        ("one", [settle_script.pack_header, lambda first_key, first_arg: ()]),
        ("demand", [settle_script.pack_demand]),
        ("forward", [settle_script.pack_forward]),
        ("send", [settle_script.pack_send, settle_script.pack_base, settle_script.pack_frames_key]),
        ("scatter", [settle_script.pack_scatter]),
        ("branch", [settle_script.pack_branch]),
        ("returned", [settle_script.pack_return_result]),
        ("retry", [settle_script.pack_retry]),
        ("finish", [settle_script.pack_finish]),
        ("buried", [settle_script.pack_bury]),
        ("write", [settle_script.pack_memory_write, settle_script.pack_memory_key]),
        ("message", [settle_script.pack_forgotten_keys]),
    ],
)
def test_the_script_uses_no_name_that_the_layout_does_not_have(
    variable: str, groups: list[Group]
) -> None:
    used = names_after(variable)

    assert used
    assert used <= {name for group in groups for name in names_of(group)}


def test_the_script_reads_no_field_of_a_record_that_the_layout_does_not_have() -> None:
    assert names_after("RECORD") == set(RECORD_FIELDS)


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_is_sent_in_the_order_of_its_parameters(group: str) -> None:
    pack = getattr(settle_script, group)
    names = names_of(pack)

    assert pack(**{name: name for name in reversed(names)}) == names


def test_every_kind_of_settlement_has_its_lua() -> None:
    assert set(re.findall(r"^function settle\.(\w+)", BODY, re.MULTILINE)) == {
        kind.name for kind in KINDS.values()
    }
