from typing import Any

import hiredis
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.transport.encode_command import HEADS, encode_command

LONG = st.binary(min_size=len(HEADS) - 1, max_size=len(HEADS) + 2)
ARGUMENT = st.binary() | LONG | st.text() | st.integers() | st.floats()
QUICK = settings(derandomize=True, deadline=None, database=None)


@QUICK
@given(st.lists(ARGUMENT, min_size=1))
def test_commands_are_packed_as_hiredis_packs_them(arguments: list[Any]) -> None:
    assert encode_command(arguments) == hiredis.pack_command(tuple(arguments))
