"""Describes the HTTP API as OpenAPI."""

from typing import Any

from fastapi import FastAPI

REFUSALS = ("400", "401", "403", "404", "408", "409", "410", "413", "414", "415", "429", "503")
"""Error statuses of every route."""


def describe_api(app: FastAPI) -> dict[str, Any]:
    """Return the description, with all errors in their one form.

    The framework's description of an invalid request, 422 in another form, is removed.
    """
    schema: dict[str, Any] = FastAPI.openapi(app)
    for path in schema["paths"].values():
        for operation in path.values():
            responses = operation["responses"]
            responses.pop("422", None)
            general = responses.pop("default", None)
            for status in REFUSALS if general else ():
                responses.setdefault(status, general)
    for name in ("HTTPValidationError", "ValidationError"):
        schema["components"]["schemas"].pop(name, None)
    return schema
