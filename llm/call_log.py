"""Collects every model call made inside a block, the failed ones too, for the journal."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from llm.port import ModelCall

_calls: ContextVar[tuple[list[ModelCall], ...]] = ContextVar("model_calls", default=())


@contextmanager
def record_calls() -> Iterator[list[ModelCall]]:
    """Yield a list that every call made inside is appended to, also from tasks started inside.

    Blocks nest: a call is in the list of each block around it. The list stays readable after an
    error, which is when the calls matter most.
    """
    calls: list[ModelCall] = []
    token = _calls.set((*_calls.get(), calls))
    try:
        yield calls
    finally:
        _calls.reset(token)


def record(call: ModelCall) -> None:
    """Append a call to the lists of the blocks around this point; without one it is dropped."""
    for calls in _calls.get():
        calls.append(call)
