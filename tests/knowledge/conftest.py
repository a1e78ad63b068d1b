from collections.abc import Iterator

import pytest

from knowledge.isolation.messages import ReadingLimits
from knowledge.isolation.reader_process import ReaderProcess


@pytest.fixture(scope="session")
def reader() -> Iterator[ReaderProcess]:
    """Read documents in one process for all tests: starting one takes as long as ten of them."""
    with ReaderProcess(ReadingLimits()) as started:
        yield started


@pytest.fixture
def hasty() -> Iterator[ReaderProcess]:
    with ReaderProcess(ReadingLimits(seconds=1.0)) as started:
        yield started
