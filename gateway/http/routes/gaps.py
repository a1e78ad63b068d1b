"""The route that lists what the documents lack, for programs of the owner."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from gateway.api_keys import Scope
from gateway.console.gap_export import GapList, report_gap
from gateway.http.access import Principal
from gateway.http.context import AssistantName, HttpChannel, require_scope
from records.gaps import STATES, GapFinder

State = Annotated[
    str, Query(pattern=f"^({'|'.join(STATES)})?$", description="only gaps of this state")
]


def gaps_router(channel: HttpChannel, gaps: GapFinder) -> APIRouter:
    """Return the route."""
    router = APIRouter(tags=["gaps"])
    operator = Depends(require_scope(channel, Scope.DOCUMENTS))

    @router.get("/v1/gaps", summary="List what the documents lack")
    async def list_gaps(
        caller: Annotated[Principal, operator], assistant: AssistantName = None, state: State = ""
    ) -> GapList:
        """Return the questions that were refused, asked back without a later answer, or rated down,
        grouped by what they mean."""
        question = channel.desk(caller, assistant).name_question("-", "-")
        found = await gaps.find((question.tenant, question.assistant))
        return GapList(gaps=[report_gap(gap) for gap in found if state in ("", gap.state)])

    return router
