"""Several assistants on one desk: each answers from its own documents alone."""

from pathlib import Path

import pytest
from fakeredis import FakeServer

from broker.embedded_redis import Endpoint
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.knowledge import open_knowledge
from deploy.assembly.runtime import ROLES, connect_runtime, desk, desks, run_workers
from gateway.desk import Message
from knowledge.errors import IndexOwned
from knowledge.ingestion_report import PlainReport
from tests.support.app_harness import settings_of

QUESTION = "How do I reset a password?"
PAGES = {
    ("default", "accounts"): "# Reset a password\n\nChoose Forgotten in the portal and wait.\n",
    ("other", "accounts"): "# Reset a password\n\nAsk Miss Marple at the xylophone desk.\n",
}
FURTHER = [
    {
        "tenant": tenant,
        "assistant": assistant,
        "domain_name": "Accounts",
        "domain_scope": "passwords and accounts",
    }
    for tenant, assistant in PAGES
]

pytestmark = pytest.mark.slow


async def test_an_assistant_answers_from_its_own_documents_alone(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "data", assistants=FURTHER)
    quiet = PlainReport(lambda _line: None)
    own = settings
    for (tenant, assistant), page in PAGES.items():
        folder = tmp_path / tenant
        folder.mkdir()
        (folder / "passwords.md").write_text(page)
        own = settings.model_copy(update={"tenant": tenant, "assistant": assistant})
        assert (await run_ingestion(own, [folder], quiet)).added == 1

    endpoint = Endpoint(url="", durable=False, played=FakeServer())
    async with (
        connect_runtime(settings, endpoint=endpoint) as post,
        open_knowledge(settings) as knowledge,
        run_workers(post, ROLES, knowledge),
    ):
        replies = {
            name: await one.ask(Message(QUESTION, "c1", "m1"))
            for name, one in desks(post, "test").items()
        }
        with pytest.raises(IndexOwned):
            async with open_knowledge(own, alone=True):
                pass
        stranger = settings.model_copy(update={"tenant": "nobody"})
        foreign = await desk(type(post)(post.endpoint, post.broker, stranger), "test").ask(
            Message(QUESTION, "c1", "m1")
        )

    assert "Forgotten" in str(replies["default", "accounts"]["text"])
    assert "Marple" in str(replies["other", "accounts"]["text"])
    assert "Marple" not in str(replies["default", "accounts"])
    assert "Forgotten" not in str(replies["other", "accounts"])
    assert replies["default", "default"]["outcome"] in {"refused", "clarification"}
    assert foreign["outcome"] == "failed"
    assert "Marple" not in str(foreign)
    assert "Forgotten" not in str(foreign)
