"""Reviews over a real HTTP server and a whole desk: from the upload to the report and its links."""

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from selectolax.lexbor import LexborHTMLParser

from broker.embedded_redis import Endpoint
from deploy.assembly.gateways.http_gateway import open_http_app
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.knowledge import Knowledge, open_index
from deploy.assembly.runtime import ROLES, connect_runtime, run_workers
from gateway.api_keys import Scope, StoredKeys, make_key
from gateway.connections.server import listening, serving
from knowledge.embedding import Embedder
from knowledge.ingestion_report import PlainReport
from knowledge.search.searcher import LevelSearcher
from llm.port import Model
from tests.desk.test_groups import remove_volatile
from tests.support.app_harness import settings_of
from tests.support.http_server import events
from tests.support.review_server import FAULTY, LAW
from tests.support.reviewing_model import ReviewingModel
from tests.support.shared_folder import provide_folder

pytestmark = pytest.mark.slow

REVIEWS = "/v1/reviews"
TITLE = "Register Data Protection Act of Nordmark"
UPLOAD: dict[str, Any] = {
    "params": {"name": "contract.md", "against": TITLE},
    "headers": {"Content-Type": "application/octet-stream"},
}
HANDBOOK = (
    "# Handbook\n\n## Leave\n\nEvery employee has thirty days of leave in a year.\n\n"
    "## Contracts\n\nContracts are kept in the archive for ten years.\n"
)


@dataclass
class ReviewApp:
    """An open server with its address and keys."""

    url: str
    keys: StoredKeys
    clients: AsyncExitStack

    async def client(self, **fields: Any) -> httpx.AsyncClient:
        """Return a client with a new secret key."""
        key, token = make_key("secret", tenant="default", scopes=frozenset(Scope), **fields)
        await self.keys.put(key)
        made = httpx.AsyncClient(
            base_url=self.url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=None,
        )
        return await self.clients.enter_async_context(made)


OpenReviewApp = Callable[..., AbstractAsyncContextManager[ReviewApp]]


@pytest.fixture(scope="session")
def laws(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the law and a handbook."""
    return provide_folder(tmp_path_factory, "laws", ingest_laws)


def ingest_laws(folder: Path) -> None:
    pages = folder / "pages"
    pages.mkdir()
    (pages / "law.md").write_bytes(LAW)
    (pages / "handbook.md").write_text(HANDBOOK, "utf-8")
    quiet = PlainReport(lambda _line: None)
    asyncio.run(run_ingestion(settings_of(folder), [pages], quiet))


@pytest.fixture
async def open_app(
    laws: Path, endpoint: Endpoint, embedder: Embedder
) -> AsyncIterator[OpenReviewApp]:
    """Opens the whole desk behind a real socket; several servers may share it."""
    settings = settings_of(laws)
    index = await open_index(settings, embedder)

    @asynccontextmanager
    async def open_server(model: Model | None = None) -> AsyncIterator[ReviewApp]:
        models = None if model is None else lambda _task: model
        own = settings if model is None else settings.model_copy(update={"gen_model": model.name})
        async with AsyncExitStack() as stack:
            knowledge = Knowledge(
                index,
                embedder,
                LevelSearcher(index, embedder),
            )
            connected = await stack.enter_async_context(connect_runtime(own, endpoint=endpoint))
            runtime = replace(connected, knowledge=knowledge)
            await stack.enter_async_context(run_workers(runtime, ROLES, knowledge, models=models))
            stopping = asyncio.Event()
            app = await stack.enter_async_context(open_http_app(runtime, stopping))
            client = endpoint.client()
            stack.push_async_callback(client.aclose)
            listener = listening("127.0.0.1", 0)
            stack.callback(listener.close)
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            await stack.enter_async_context(serving(app, listener, stopping))
            clients = await stack.enter_async_context(AsyncExitStack())
            yield ReviewApp(url, StoredKeys(client), clients)

    yield open_server
    await index.close()


async def review(client: httpx.AsyncClient, contract: bytes, **params: str) -> dict[str, Any]:
    """Start a review, follow it to its end, and return it."""
    options = {**UPLOAD, "params": {**UPLOAD["params"], **params}}
    started = await client.post(REVIEWS, content=contract, **options)
    assert started.status_code == 202, started.text
    path = f"{REVIEWS}/{started.json()['id']}"
    seen = await events(client, "GET", f"{path}/events")
    assert seen[-1].name == "done"
    plans = [requests.data.get("plan") for requests in seen if requests.name == "stage"]
    labels = {str(label) for plan in plans if isinstance(plan, list) for label in plan}
    assert {"compliance", "report generator"} <= labels
    found: dict[str, Any] = (await client.get(path)).json()
    # The ticket of a link has the second in which it was made.
    assert remove_links(found["answer"]) == remove_links(seen[-1].data)
    return found


async def test_a_contract_is_reviewed_and_the_links_of_its_report_open_at_the_place(
    open_app: OpenReviewApp,
) -> None:
    async with open_app(ReviewingModel()) as app:
        client = await app.client()

        result = await review(client, FAULTY)
        base = f"{REVIEWS}/{result['id']}/report"
        markdown = await client.get(base)
        page = await client.get(base, params={"format": "html"})
        files = {
            form: (await client.get(base, params={"format": form})).content
            for form in ("pdf", "docx", "json")
        }
        listed = (await client.get(f"{REVIEWS}/{result['id']}/checklist")).json()

        assert listed["target_law"] == TITLE
        assert [item["id"] for item in listed["checklist"]] == [f"REQ-{n:03}" for n in range(1, 9)]
        assert listed["checklist"][1] == {
            "id": "REQ-002",
            "requirement": "The processor shall notify the keeper of a breach of register data "
            "within 48 hours.",
            "source_section": "Article 3 Notice of a breach",
            "severity": "mandatory",
            "applicability": "The processor",
        }
        assert result["answer"]["checklist"]["requirements"] == len(listed["checklist"])
        assert result["answer"]["outcome"] == "answered"
        assert result["counts"] == {
            "requirements": 8, "compliant": 3, "violations": 3, "gaps": 2, "undecided": 0,
            "confidence": 0.9,
        }  # fmt: skip
        answer = result["answer"]
        assert [item["title"] for item in answer["against"]] == [TITLE]
        assert [document["language"] for document in answer["documents"]] == ["en"]
        assert answer["review_report"]["violations"] == 3
        assert {"reference", "report"}.isdisjoint(answer["review_report"])
        assert markdown.headers["content-type"].startswith("text/markdown")
        assert markdown.text.count("\n## ") == 7
        assert files["pdf"].startswith(b"%PDF")
        assert files["docx"].startswith(b"PK")
        report = json.loads(files["json"])
        assert [requirement["status"] for requirement in report["requirements"]] == [
            "COMPLIANT", "VIOLATION", "VIOLATION", "VIOLATION", "COMPLIANT", "COMPLIANT", "GAP",
            "GAP",
        ]  # fmt: skip
        assert report["requirements"][3]["evidence"][0]["link"].startswith(f"{app.url}/v1/reader/")
        links = [node.attributes["href"] or "" for node in LexborHTMLParser(page.text).css("a")]
        assert links
        assert all(link.startswith(f"{app.url}/v1/reader/") for link in links)
        texts = [(await client.get(link)).text for link in dict.fromkeys(links)]
        assert any("Processor" in text or "processor" in text for text in texts)
        opened = [text for text in texts if "may sell register data" in text]
        assert opened, "no link opens the contract"
        assert all("<mark" in text or "cited" in text for text in opened)


async def test_a_review_over_http_has_its_violations_gaps_risks_and_classes(
    open_app: OpenReviewApp,
) -> None:
    async with open_app(ReviewingModel()) as app:
        client = await app.client()

        report = await review(client, FAULTY)

    [sale] = [violation for violation in report["violations"] if "sell" in violation["requirement"]]
    assert len(report["violations"]) == 3
    assert sale["law"]["words"] == "The processor shall not sell register data to third parties."
    assert sale["evidence"][0]["words"] == "The processor may sell register data to third parties."
    assert sale["recommendation"] == 'Write "as the law says" there.'
    assert (sale["risk"]["category"], sale["risk"]["score"]) == ("Legal", 12)
    assert [gap["law"]["heading"] for gap in report["gaps"]] == [
        "Article 8 Training", "Article 9 Records"
    ]  # fmt: skip
    classes = [item["classes"]["document_type"] for item in report["classification"]]
    assert classes == ["contract", "law"]
    assert "current_agent" not in report, "it has ended"
    assert report["sections"]["gaps"]["state"] == "nothing"
    assert report["further_gaps"] == []
    assert report["counts"]["confidence"] == 0.9


async def test_a_review_of_a_file_takes_specialists_and_says_which_parts_were_not_asked_for(
    open_app: OpenReviewApp,
) -> None:
    async with open_app(ReviewingModel()) as app:
        client = await app.client()

        report = await review(client, FAULTY, specialists="compliance,report_generator")
        options = {**UPLOAD, "params": {**UPLOAD["params"], "specialists": "compliance,lawyer"}}
        refused = await client.post(REVIEWS, content=FAULTY, **options)

    assert report["answer"]["agent_sequence"] == [
        "extractor", "requirement_extractor", "compliance", "report_generator"
    ]  # fmt: skip
    assert report["sections"]["risks"]["state"] == "not_requested"
    assert "further_gaps" not in report, "nobody looked for them"
    assert refused.status_code == 422 or refused.status_code == 400, refused.text
    assert "specialists" in refused.text


async def test_specialists_in_the_address_hold_for_a_review_that_names_its_document(
    open_app: OpenReviewApp,
) -> None:
    async with open_app(ReviewingModel()) as app:
        client = await app.client()
        options = {"params": {"name": "contract.md"}, "headers": UPLOAD["headers"]}
        given = await client.post("/v1/conversations/c-4/documents", content=FAULTY, **options)
        body = {"document": given.json()["id"], "against": [TITLE], "conversation_id": "c-4"}
        started = await client.post(REVIEWS, json=body, params={"specialists": "compliance"})
        path = f"{REVIEWS}/{started.json()['id']}"
        await events(client, "GET", f"{path}/events")
        result = (await client.get(path)).json()

    assert result["answer"]["agent_sequence"] == [
        "extractor",
        "requirement_extractor",
        "compliance",
    ]


async def test_an_attached_file_never_takes_the_place_of_the_law(open_app: OpenReviewApp) -> None:
    harmless = f"# {TITLE}\n\n## Article 1\n\nThe processor may do anything.\n".encode()
    async with open_app() as app:
        client = await app.client()
        talk = "/v1/conversations/c-2"
        given = {"params": {"name": "harmless.md"}, "headers": UPLOAD["headers"]}
        attached = (await client.post(f"{talk}/documents", content=harmless, **given)).json()
        params = {**UPLOAD["params"], "conversation_id": "c-2"}

        refused = await client.post(REVIEWS, content=FAULTY, **{**UPLOAD, "params": params})
        params["against"] = "law.md"
        by_file = await client.post(REVIEWS, content=FAULTY, **{**UPLOAD, "params": params})

    assert refused.status_code == 404, refused.text
    assert "a document of the index and a document of this conversation" in refused.text
    assert attached["id"] in refused.text
    [law] = by_file.json()["against"]
    assert (by_file.status_code, law["name"]) == (202, "law.md")
    assert not law["id"].startswith("attached:")


async def test_the_report_of_a_review_in_a_conversation_is_linked_in_its_answer(
    open_app: OpenReviewApp,
) -> None:
    async with (
        open_app(ReviewingModel()) as app,
        httpx.AsyncClient(timeout=None) as browser,
    ):
        client = await app.client()
        talk = "/v1/conversations/c-1"
        given = {"params": {"name": "contract.md"}, "headers": UPLOAD["headers"]}
        assert (await client.post(f"{talk}/documents", content=FAULTY, **given)).is_success
        asked = {
            "text": "Write a compliance report: does the Brandt contract comply with the "
            "Register Data Protection Act?",
            "message_id": "m-1",
            "way": "specialists",
        }

        answer = (await client.post(f"{talk}/messages", json=asked)).json()
        [page] = [action for action in answer["suggested_actions"] if action["kind"] == "source"]
        shown = await browser.get(page["link"])
        report = await client.get(f"{REVIEWS}/c-1~m-1/report")
        links = [node.attributes["href"] or "" for node in LexborHTMLParser(shown.text).css("a")]
        opened = [(await browser.get(link)).status_code for link in dict.fromkeys(links)]
        await client.delete(talk)
        gone = await browser.get(page["link"])

    assert answer["outcome"] == "answered", answer
    assert page["label"] == answer["review_report"]["title"]
    [review_itself] = [
        source for source in answer["sources"] if source["chunk_id"].startswith("tool:")
    ]
    assert review_itself.get("link") is None, "the result of a tool has no page"
    assert shown.status_code == 200
    assert "frame-ancestors 'none'" in shown.headers["content-security-policy"]
    assert shown.text.count("<section>") == report.text.count("\n## ") == 7
    assert opened
    assert set(opened) == {200}
    assert gone.status_code == 404


async def test_a_document_changes_no_byte_of_another_conversation(
    open_app: OpenReviewApp, endpoint: Endpoint
) -> None:
    questions = (
        "How long are contracts kept in the archive?",
        "Does the Brandt contract comply with the Register Data Protection Act?",
        "What does attached: say about selling register data?",
    )

    async def record(client: httpx.AsyncClient, conversation_id: str) -> list[str]:
        results = []
        for number, text in enumerate(questions):
            for way in ("search", "specialists"):
                sent = {"text": text, "way": way, "message_id": f"m{number}-{way}"}
                path = f"/v1/conversations/{conversation_id}/messages"
                reply = await client.post(path, json=sent)
                shown = json.dumps(remove_links(remove_volatile(reply.json())))
                results.append(shown.replace(conversation_id, "c"))
        return results

    async with open_app() as app:
        client = await app.client()
        without = await record(client, "c-before")
        await review(client, FAULTY, conversation_id="c-1")

        beside = await record(client, "c-beside")

    assert beside == without
    assert all("Brandt Datacentre" not in text for text in beside)


def remove_links(value: object) -> object:
    """Return a reply without what differs from run to run: tickets, ids of errors, times."""
    if isinstance(value, dict):
        return {
            name: remove_links(one)
            for name, one in value.items()
            if name not in {"link", "duration_ms", "error_id"}
        }
    return [remove_links(item) for item in value] if isinstance(value, list) else value


async def test_a_document_of_a_conversation_is_reviewed_as_a_job_and_forgotten_with_it(
    open_app: OpenReviewApp, endpoint: Endpoint
) -> None:
    asked = (
        "Does the contract between Harbour Registry and Brandt Datacentre comply with the "
        "Register Data Protection Act of Nordmark?"
    )
    async with open_app(ReviewingModel()) as app:
        client = await app.client()
        base = "/v1/conversations/c-job"
        contract = FAULTY + b"\n## 9 Mark\n\nThe canary4711word is void.\n"
        await client.post(f"{base}/documents", params={"name": "brandt.md"}, content=contract)
        sent = {"text": asked, "way": "specialists"}

        waited = await client.post(f"{base}/messages", json=sent)
        started = await client.post(
            f"{base}/messages", json=sent, headers={"Prefer": "respond-async"}
        )
        seen = await events(client, "GET", f"{started.headers['location']}/events")
        kept = await find_word(endpoint, b"canary4711word")
        listed = (await client.get(f"{base}/documents")).json()
        removed = await client.delete(base)

        assert (waited.status_code, started.status_code) == (200, 202)
        assert waited.json()["verdicts"]["violations"] == 3
        assert seen[-1].data["verdicts"] == waited.json()["verdicts"]
        assert "brandt.md" in str(listed)
        assert kept, "the document is stored with its conversation"
        assert removed.status_code in {200, 204}
        assert "brandt.md" not in (await client.get(f"{base}/documents")).text
        assert await find_word(endpoint, b"canary4711word") == []


async def find_word(endpoint: Endpoint, word: bytes) -> list[bytes]:
    """Return the keys of Redis whose stored documents have a word."""
    client = endpoint.client()
    found = []
    async for key in client.scan_iter("*attach*"):
        values = (await client.hgetall(key)).values()
        texts = [zlib.decompress(value) for value in values if isinstance(value, bytes)]
        found += [key for text in texts if word in text]
    await client.aclose()
    return found
