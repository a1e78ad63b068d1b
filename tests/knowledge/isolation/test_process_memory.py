"""A process with keys is read by no other process of its user."""

import ctypes
import subprocess
import sys
from collections.abc import Iterator

import pytest

from cli.main import main

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="asks the kernel of Linux"
)
GET_DUMPABLE, SET_DUMPABLE = 3, 4
GET_NO_NEW_PRIVILEGES = 39
SHOW = (
    "import ctypes; from knowledge.isolation import child, process_memory as one;"
    "child._own_streams = lambda: print(ctypes.CDLL(None).prctl({option}, 0, 0, 0, 0)) or exit();"
    "child.main()"
)
"""Starts the process that reads, and asks the kernel about it before the first document."""


@pytest.fixture
def kernel() -> Iterator[ctypes.CDLL]:
    """The kernel, which reads this process again after the test."""
    kernel = ctypes.CDLL(None)
    kernel.prctl(SET_DUMPABLE, 1, 0, 0, 0)
    yield kernel
    kernel.prctl(SET_DUMPABLE, 1, 0, 0, 0)


def test_a_command_hides_its_memory_and_environment(kernel: ctypes.CDLL) -> None:
    assert kernel.prctl(GET_DUMPABLE, 0, 0, 0, 0) == 1

    assert main([]) == 2

    assert kernel.prctl(GET_DUMPABLE, 0, 0, 0, 0) == 0


@pytest.mark.parametrize(
    ("option", "expected"), [(GET_DUMPABLE, "0"), (GET_NO_NEW_PRIVILEGES, "1")]
)
def test_the_process_that_reads_hides_itself_and_gains_no_rights(
    option: int, expected: str
) -> None:
    shown = subprocess.run(
        [sys.executable, "-c", SHOW.format(option=option), "64"], capture_output=True, check=False
    )

    assert shown.stdout.decode().strip() == expected, shown.stderr.decode()
