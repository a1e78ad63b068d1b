"""What a worker is told before it looks for anything."""

from collections.abc import Sequence

import pytest

from agents.swarm.work import Reads, WorkAgent
from knowledge.index.listing import ListedDocument
from llm.port import ModelMessage
from llm.tasks.swarm import WorkOnTaskInputs
from tests.agents.swarm.builders import make_worker
from tests.support.app_harness import PartlyScriptedModel
from tools.catalog import ToolCatalog

LANGUAGES = ("de", "cs", "de")


async def list_documents(_groups: Sequence[str]) -> Sequence[ListedDocument]:
    return [
        ListedDocument(f"d{at}", f"Page {at}", f"{at}.md", "/", language, 1)
        for at, language in enumerate(LANGUAGES)
    ]


@pytest.fixture
async def told() -> WorkOnTaskInputs:
    """The inputs of the first message of a worker."""
    model = PartlyScriptedModel(work_on_task=[ModelMessage(text="Nothing.")] * 2)
    agent = WorkAgent(model=model, tools=ToolCatalog(()), list_documents=list_documents)
    task = {"worker": make_worker("a").model_dump(mode="json")}
    await agent.work(Reads(worker_task=task, language="en", persona="a patient tutor"))
    prompt = model.find_asked("work_on_task")[0].prompt
    assert isinstance(prompt, WorkOnTaskInputs)
    return prompt


async def test_workers_know_the_persona_and_the_languages_of_the_documents(
    told: WorkOnTaskInputs,
) -> None:
    assert told.persona == "a patient tutor"
    assert told.document_languages == ("de", "cs")
    assert told.language == "en"
