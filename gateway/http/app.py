"""Puts the HTTP door together."""

import asyncio
from collections.abc import Sequence

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp

from gateway.http.door import Door
from gateway.http.failures import Failure, tell_failures
from gateway.http.messages import Messages
from gateway.http.opening import opening_router
from gateway.http.reception import BodyLimit, Meter, Reception

BODY_BYTES = 512 * 1024
DESCRIPTION = """\
Ask the desk, and get answers that say only what the documents say, with the place for every claim.
See docs/http.md for events, keys and limits.
"""


def make_app(
    door: Door,
    *,
    meter: Meter,
    stopping: asyncio.Event,
    unavailable: Sequence[type[Exception]] = (),
    others: Sequence[APIRouter] = (),
) -> ASGIApp:
    """Return the application; `others` are routes of further doors.

    `unavailable` are errors of stores that do not answer. When `stopping` is set, what waits ends,
    so that clients go on elsewhere.
    """
    app = FastAPI(
        title="Refdesk",
        version="1",
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        responses={"default": {"model": Failure, "description": "an error"}},
    )
    tell_failures(app, unavailable=unavailable)
    for router in (opening_router(door), Messages(door, stopping).router(), *others):
        app.include_router(router)
    limited = BodyLimit(app, bytes_=BODY_BYTES)
    return Reception(limited, meter=meter)
