from pathlib import PurePosixPath

from knowledge.isolation.preparation import Preparation
from knowledge.isolation.reader_process import ReaderProcess
from knowledge.reading.formats import Item
from knowledge.reading.location import locate

ENDLESS = b"`a " * 40_000
"""What docutils reads in time that grows with the square of its length."""


def prepare(reader: ReaderProcess, name: str, data: bytes) -> Preparation:
    path = PurePosixPath(name)
    return reader.prepare(Item(name, data, name), path, locate(path, ()))
