"""Reads what a played service has into an index of memory."""

from functools import partial
from pathlib import Path
from typing import Any

from deploy.assembly.source_opening import open_connector
from knowledge.connectors.connector import copy_service, survey_service
from knowledge.connectors.store_values import StoreOutcome
from knowledge.document import Document
from tests.knowledge.documents.conftest import Desk, desk
from tests.support.app_harness import settings_of
from tests.support.services import EMAIL, TOKEN, PlayedService

__all__ = ["desk"]


class Reading:
    """Reads one source of the service `scheme`; `part` is what follows its host."""

    def __init__(
        self, scheme: str, service: PlayedService, desk: Desk, folder: Path, part: str = ""
    ) -> None:
        self.place = f"{scheme}://{service.host}{part}"
        self.folder = folder
        self.desk = desk
        self.settings: dict[str, Any] = {
            f"{scheme}_url": f"http://{service.host}",
            f"{scheme}_email": EMAIL,
            f"{scheme}_api_token": TOKEN,
        }

    async def read(self, **further: Any) -> StoreOutcome:
        settings = settings_of(self.folder / "data", **{**self.settings, **further})
        async with open_connector(settings, self.place) as connector:
            outcome = await copy_service(connector, self.place, self.folder / "copy")
        await self.desk.ingest(partial(survey_service, self.place, self.folder / "copy", outcome))
        return outcome

    @property
    def documents(self) -> dict[str, Document]:
        return {document.title: document for document in self.desk.index.documents.values()}
