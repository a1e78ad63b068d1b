"""Lets a model describe the pages that are ingested."""

import structlog

from knowledge.documents.page import Page
from knowledge.rule_descriptions import Description, complete_description
from llm.errors import ModelError
from llm.port import Model
from llm.tasks.describe import TASK, Inputs

LONGEST_CONTENT = 12_000
"""Characters of a page that the model receives."""
VERSION = "1"

log = structlog.get_logger("ingestion")


class ModelDescriber:
    """Asks a model for a page's description; if it fails, the rules answer, which is logged."""

    def __init__(self, model: Model) -> None:
        self.name = f"{model.name}-{VERSION}"
        self._model = model

    async def describe(self, page: Page, language: str, by_rules: Description) -> Description:
        """Return the description in the page's language."""
        inputs = Inputs(
            title=page.title,
            crumbs=page.crumbs,
            content=page.content[:LONGEST_CONTENT],
            language=language,
        )
        try:
            output = (await self._model.ask(TASK, inputs)).output
        except ModelError as error:
            log.warning("description_fallback_used", page=page.title, error=str(error))
            return by_rules
        made = Description(output.description, output.summary, output.keypoints, output.keywords)
        return complete_description(page, made)
