"""The script that settles, with the part that reads its keys and arguments by the layout."""

from collections.abc import Iterable

from broker.settle.layout import (
    KINDS,
    RECORD_FIELDS,
    Group,
    names_of,
    pack_base,
    pack_branch,
    pack_demand,
    pack_forgotten_keys,
    pack_frames_key,
    pack_header,
    pack_memory_key,
    pack_memory_write,
    pack_send,
)
from broker.transport.scripts import LuaScript


def render_header() -> str:
    """Return Lua that follows the prelude: places, record fields, and one reader for each group."""
    kinds = tuple(KINDS.values())
    header = names_of(pack_header)
    return "\n".join((
        "-- Written by broker/settle/script.py from broker/settle/layout.py.",
        f"local HEADER = {_places(header)}",
        f"local HEADER_LENGTH = {len(header)}",
        f"local RECORD = {_places(RECORD_FIELDS)}",
        _table("RECORD_FIELDS", ((kind.name, _texts(kind.record_fields)) for kind in kinds)),
        _table("CLOSES", ((kind.name, "true") for kind in kinds if kind.closes)),
        _table("read_keys", ((kind.name, _question_reader(kind.keys)) for kind in kinds)),
        _table("read_arguments", ((kind.name, _reader(kind.arguments)) for kind in kinds)),
        _function("read_branch", _values(pack_branch)),
        _function("read_demand", _values(pack_demand)),
        _function("read_memory_write", _values(pack_memory_write, pack_memory_key)),
        _function("read_forgotten", _values(keys=pack_forgotten_keys)),
        _send_reader(),
        "",
    ))  # fmt: skip


def _send_reader() -> str:
    """Return the reader of a send, whose form says which groups follow it."""
    return "\n".join((
        "local function read_send()",
        f"  local send = {_values(pack_send)}",
        "  if send.form ~= 'whole' then",
        *(f"    send.{name} = arg()" for name in names_of(pack_base)),
        "  end",
        "  if send.form == 'kept' then",
        *(f"    send.{name} = key()" for name in names_of(pack_frames_key)),
        "  end",
        "  return send",
        "end",
    ))  # fmt: skip


def _places(names: Iterable[str]) -> str:
    pairs = (f"{name} = {index}" for index, name in enumerate(names, 1))
    return f"{{ {', '.join(pairs)} }}"


def _texts(names: Iterable[str]) -> str:
    return f"{{ {', '.join(repr(name) for name in names)} }}"


def _values(arguments: Group | None = None, keys: Group | None = None) -> str:
    """Return a table by name, whose values Lua reads in the order in which they stand here."""
    read = [f"{name} = arg()" for name in names_of(arguments)] if arguments is not None else []
    read += [f"{name} = key()" for name in names_of(keys)] if keys is not None else []
    return f"{{ {', '.join(read)} }}"


def _reader(arguments: Group) -> str:
    return f"function() return {_values(arguments)} end"


def _question_reader(keys: Group) -> str:
    """Return the reader of a question's keys, with room for the values that the script adds.

    A Lua table that grows is allocated again, which shows in `INFO commandstats` of Redis.
    """
    read = ", ".join(f"{name} = key()" for name in names_of(keys))
    return f"function(name) return {{ name = name, keep = false, {read} }} end"


def _table(name: str, rows: Iterable[tuple[str, str]]) -> str:
    lines = (f"  {kind} = {value}," for kind, value in rows)
    return "\n".join((f"local {name} = {{", *lines, "}"))


def _function(name: str, values: str) -> str:
    return f"local function {name}()\n  return {values}\nend"


SETTLE = LuaScript("settle", needs=["branches"], header=render_header())
