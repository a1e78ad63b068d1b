"""The Lua that reads a settlement is written from the layout by which it is packed."""

import re
from importlib.resources import files

import pytest

from broker import settle_script
from broker.keys import shard_keys
from broker.settle_script import (
    KINDS,
    RECORD_FIELDS,
    Group,
    names_of,
    pack_letters,
    pack_streams,
)

FOLDER = files("broker") / "lua"
CLOSING = (FOLDER / "closing.lua").read_text("utf-8")
BODY = "\n".join(
    (FOLDER / f"{name}.lua").read_text("utf-8")
    for name in ("settle", "forward", "other_settlements")
)
PRELUDE = (FOLDER / "prelude.lua").read_text("utf-8")
GROUPS = [name for name in vars(settle_script) if name.startswith("pack_")]


def names_after(variable: str) -> set[str]:
    """Return what the script reads of a variable by name."""
    return set(re.findall(rf"(?<![\w.]){variable}\.(\w+)", BODY))


def test_the_streams_and_the_shard_are_read_in_the_order_in_which_they_are_packed() -> None:
    streams = body_of(PRELUDE, "local function read_streams")
    shard = body_of(CLOSING, "local function read_whole")
    lines = [line for line in shard.splitlines() if line.endswith("key()")]
    keys = [name for line in lines for name in re.findall(r"shard\.(\w+)", line)]

    assert (*re.findall(r"(\w+) = arg\(\)", streams), "roles") == names_of(pack_streams)
    assert [getattr(shard_keys(0), name) for name in keys] == list(shard_keys(0).all)
    assert "shard.cap, shard.letters_ttl = arg(), arg()" in shard
    assert names_of(pack_letters) == ("cap", "letters_ttl")


def body_of(source: str, head: str) -> str:
    """Return the lines of a function of a script."""
    body = source[source.index(head) :]
    return body[: body.index("\nend")]


@pytest.mark.parametrize(
    ("variable", "groups"),
    [
        ("one", [settle_script.pack_header]),
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
    used = names_after(variable) - {"first_key", "first_arg"}  # places that the script adds

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
    # `forward`, `retry`, `finish` and `bury` are functions of the table `settle`.
    assert set(re.findall(r"^function settle\.(\w+)", BODY, re.MULTILINE)) == {
        kind.name for kind in KINDS.values()
    }
