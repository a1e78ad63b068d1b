"""Reads how sure a model says it is, on whichever scale it says so."""

from typing import Annotated

from pydantic import BeforeValidator, Field

_PERCENT = 100


def _read_confidence(value: object) -> object:
    """Return a percentage as a share, and 0 for what is on no scale: no answer is lost by it."""
    if isinstance(value, bool) or not isinstance(value, int | float) or 0 <= value <= 1:
        return value
    return value / _PERCENT if 1 < value <= _PERCENT else 0.0


Confidence = Annotated[float, Field(ge=0, le=1), BeforeValidator(_read_confidence)]
