from pathlib import PurePosixPath

from knowledge.documents.formats import Item
from knowledge.documents.location import locate
from knowledge.isolation.preparation import Preparation
from knowledge.isolation.reader_process import ReaderProcess

ENDLESS = b"`a " * 40_000
"""What docutils reads in time that grows with the square of its length."""


def prepare(reader: ReaderProcess, name: str, data: bytes) -> Preparation:
    path = PurePosixPath(name)
    return reader.prepare(Item(name, data, name), path, locate(path, ()))
