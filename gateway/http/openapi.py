"""Describes the HTTP door as OpenAPI."""

from typing import Any

from fastapi import FastAPI

REFUSALS = ("400", "401", "403", "404", "408", "409", "410", "413", "415", "429", "503")
"""What any route may answer."""


def describe_api(app: FastAPI) -> dict[str, Any]:
    """Return the description, with errors in the one form that they have here.

    The framework's own idea of an invalid request, 422 in a form of its own, never comes.
    """
    schema: dict[str, Any] = FastAPI.openapi(app)
    for path in schema["paths"].values():
        for operation in path.values():
            responses = operation["responses"]
            responses.pop("422", None)
            told = responses.pop("default", None)
            for status in REFUSALS if told else ():
                responses.setdefault(status, told)
    for name in ("HTTPValidationError", "ValidationError"):
        schema["components"]["schemas"].pop(name, None)
    return schema
