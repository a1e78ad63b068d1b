"""The route that opens a conversation."""

from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel, Field

from gateway.api_keys import Scope
from gateway.http.access import Principal
from gateway.http.context import AssistantName, HttpChannel, identify_caller, open_session


class Opened(BaseModel):
    """A new conversation."""

    conversation_id: str = Field(examples=["c-7f3a"])
    assistant: str
    token: str | None = Field(
        None,
        description="token, with a public key: send it in the header X-Conversation-Token "
        "with every request. It is returned only here",
    )


def opening_router(channel: HttpChannel) -> APIRouter:
    """Return the route that opens a conversation."""
    router = APIRouter(tags=["conversations"])

    @router.post("/v1/conversations", status_code=201, summary="Open a conversation")
    async def open_conversation(
        caller: Annotated[Principal, Depends(identify_caller(channel, Scope.ASK))],
        response: Response,
        assistant: AssistantName = None,
    ) -> Opened:
        """Return a new id. With a secret key you may also choose the ids yourself; with a public
        key this is the only way, and the conversation gets a separate token."""
        access = channel.enter(caller, assistant, f"c-{uuid4().hex}")
        await channel.guard.admit_opening(caller)
        token = await open_session(channel, access) if caller.public else None
        response.headers["Location"] = f"/v1/conversations/{access.conversation_id}"
        return Opened(
            conversation_id=access.conversation_id,
            assistant=access.question().assistant,
            token=token,
        )

    return router
