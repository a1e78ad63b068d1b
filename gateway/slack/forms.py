"""Validates the requests of Slack, as far as Bolt and this package rely on their form."""

import json
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import parse_qsl

from pydantic import BaseModel, Field, StrictBool, StrictStr

from gateway.chat.errors import reads_foreign_form

Object = dict[str, Any]
Place = Object | StrictStr | None


class _PressedAction(BaseModel, extra="ignore"):
    """A pressed button."""

    action_id: StrictStr
    block_id: StrictStr | None = None
    type: StrictStr | None = None


class _Form(BaseModel, extra="ignore"):
    """The common part of events and actions."""

    type: StrictStr | None = None
    token: StrictStr | None = None
    team_id: StrictStr | None = None
    enterprise_id: StrictStr | None = None
    enterprise: Place = None
    team: Place = None
    user: Place = None
    channel: Place = None
    user_id: StrictStr | None = None
    channel_id: StrictStr | None = None
    is_enterprise_install: StrictBool | StrictStr | None = None
    authorizations: list[Object] = []
    event: Object = {}
    actions: Annotated[list[_PressedAction], Field(min_length=1)] = []
    message: Object | None = None
    view: Object | None = None
    container: Object | None = None


def check_form(body: bytes, kind: str) -> None:
    """Raise `UnreadableError` unless a body is an event or an action, as JSON or as a form."""
    with reads_foreign_form("an event of Slack"):
        text = body.decode()
        if kind == "application/json" or text.startswith("{"):
            _Form.model_validate(_object(text))
            return
        fields = dict(parse_qsl(text, keep_blank_values=True))
        if "payload" in fields:
            _Form.model_validate(_object(fields["payload"]))


def check_press(body: Mapping[str, Any]) -> None:
    """Raise `UnreadableError` unless an action has its button, its message and its user."""
    with reads_foreign_form("a pressed button"):
        action, message = body["actions"][0], body.get("message") or {}
        float(action["action_ts"])
        str(body["channel"]["id"])
        str(body["user"]["id"])
        message.get("thread_ts")


def _object(text: str) -> object:
    try:
        found = json.loads(text)
        # JSON can escape lone surrogates, but they can be neither stored nor sent.
        json.dumps(found, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("too many levels") from error
    return found
