"""An owner operates the desk from the console; nobody else does."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import Request

from broker.values import DeadLetter
from envelope.question import Question
from gateway.console.access import (
    OPERATOR,
    Assistant,
    ConsoleRefusedError,
    ConsoleRole,
    ConsoleUser,
)
from gateway.console.attention import (
    Concern,
    find_in_jobs,
    find_turned_away,
)
from gateway.console.frame import ConsolePart, Frame
from gateway.console.operation_pages import (
    Budgets,
    OperationPages,
    ShownSetting,
    read_file,
)
from gateway.console.source_pages import SourcePages
from gateway.http.context import HttpMeter
from gateway.port import CatalogEntry, CatalogSelection, CatalogUpload
from gateway.sources import NewSource, SourceState
from memory.job_reports import JobReport
from tests.support.console import (
    DESK,
    HOSTILE,
    FakeSessions,
    browser_of,
    find_faults,
    make_console,
    open_records,
    owner_of,
    post,
    send_form,
    sign_in,
)

SOURCE = SourceState(DESK, "/srv/handbook", 1_000.0, 1, ("leave.pdf: it is encrypted",))
OTHERS = Question(tenant="other", assistant="desk", conversation_id="c2", message_id="m2")
OWN = Question(tenant="acme", assistant="desk", conversation_id="c1", message_id="m1")
LETTER = DeadLetter(
    id="0-1",
    role="response",
    shard=0,
    question=OWN,
    reason="worker_died",
    error="it died with it",
    attempts=3,
    worker="w",
    at=1_000.0,
    frame=b"",
)
MULTIPART = (
    b"--line\r\nContent-Disposition: form-data; name=\"file\"; filename=\"leave.md\"\r\n"
    b"Content-Type: text/markdown\r\n\r\n# Leave\r\n\xff\x00\r\n--line--\r\n"
)  # fmt: skip


@dataclass
class FakeDesk:
    """Sources, documents and dead letters in memory."""

    letters: list[DeadLetter] = field(
        default_factory=lambda: [LETTER, replace(LETTER, id="0-2", question=OTHERS)]
    )
    done: list[tuple[Any, ...]] = field(default_factory=list)
    source: SourceState = SOURCE

    def list_sources(self, assistant: Assistant) -> Sequence[SourceState]:
        return [self.source]

    def read_again(self, assistant: Assistant, place: str) -> bool:
        self.done.append(("read", assistant, place))
        return True

    def stop_reading(self, assistant: Assistant, place: str) -> bool:
        self.done.append(("stop", assistant, place))
        return True

    async def upload(self, assistant: Assistant, name: str, data: bytes) -> None:
        if not name.endswith(".md"):
            raise ValueError("Expected a document.")
        self.done.append(("upload", assistant, name, data))

    def forget_source(self, assistant: Assistant, place: str) -> bool:
        self.done.append(("forget", assistant, place))
        return True

    async def remove_source(self, assistant: Assistant, place: str) -> int:
        self.done.append(("remove", assistant, place))
        return 1

    def list_settings(self) -> Sequence[ShownSetting]:
        return [ShownSetting("DOMAIN_NAME", HOSTILE, "environment", "what it is about")]

    async def find(
        self, tenant: str, assistant: str, selection: CatalogSelection, *, after: str = "",
        limit: int,
    ) -> tuple[Sequence[CatalogEntry], int]:  # fmt: skip
        return [CatalogEntry("hr/leave", HOSTILE, HOSTILE, "en", 3, groups=(HOSTILE,))], 1

    async def remove(self, tenant: str, assistant: str, selection: CatalogSelection) -> int:
        self.done.append(("remove", (tenant, assistant), selection.ids))
        return 1

    async def choose_groups(
        self, tenant: str, assistant: str, document_id: str, groups: Sequence[str] | None
    ) -> bool:
        self.done.append(("groups", (tenant, assistant), document_id, groups))
        return document_id == "hr/leave"

    async def add_source(self, assistant: Assistant, wanted: NewSource) -> SourceState:
        if wanted.source.startswith("/"):
            raise ValueError(f"{wanted.source} may not be added over HTTP")
        self.done.append(("add", assistant, wanted.source, wanted.schedule))
        return replace(SOURCE, place=wanted.source, schedule=wanted.schedule)

    async def write(self, tenant: str, assistant: str, name: str, data: bytes) -> CatalogUpload:
        raise NotImplementedError

    async def list_dead_letters(self, *, limit: int = 100) -> Sequence[DeadLetter]:
        return self.letters

    async def read_dead_letter(self, letter_id: str) -> DeadLetter | None:
        return next((letter for letter in self.letters if letter.id == letter_id), None)

    async def drop_dead_letter(self, letter_id: str) -> bool:
        self.done.append(("drop", letter_id))
        return True

    async def retry(self, letter: DeadLetter) -> str:
        self.done.append(("retry", letter.id))
        return "m1-retry"


@pytest.fixture
def desk() -> FakeDesk:
    return FakeDesk()


@pytest.fixture
def pages(desk: FakeDesk) -> OperationPages:
    admin: Any = desk  # the parts of `broker.ports.Admin` that the pages use
    return OperationPages(
        Frame(None, 90.0), desk, desk, admin, desk.retry, Budgets(0.1, 5.0), lambda: 2_000.0
    )


@pytest.fixture
def parts(pages: OperationPages, desk: FakeDesk) -> list[ConsolePart]:
    return [pages, SourcePages(Frame(None, 90.0), desk)]


@pytest.fixture
async def owner(parts: list[ConsolePart]) -> AsyncIterator[httpx.AsyncClient]:
    async with owner_of(make_console(None, parts=parts)) as client:
        yield client


@pytest.fixture
async def editor(parts: list[ConsolePart]) -> AsyncIterator[httpx.AsyncClient]:
    sessions = FakeSessions()
    app = make_console(None, sessions, roles={DESK: {"ada": ConsoleRole.EDITOR}}, parts=parts)
    async with browser_of(app) as client:
        await sign_in(client, sessions, "ada")
        yield client


async def test_sources_show_their_failures_and_when_they_are_read(
    editor: httpx.AsyncClient, desk: FakeDesk
) -> None:
    left_out = ("2 hidden sheets left out (Old, Costs): hidden in the workbook",)
    desk.source = replace(SOURCE, schedule="0 6 * * *", next_at=86_400.0, left_out=left_out)

    shown = (await editor.get("/console/sources")).text

    for part in ("1 failed", "leave.pdf: it is encrypted", "What was read before is still used",
                 *left_out, "0 6 * * *", "1970-01-01 00:16",
                 "1970-01-02 00:00"):  # fmt: skip
        assert part in shown


async def test_an_editor_adds_reads_and_removes_sources(
    editor: httpx.AsyncClient, desk: FakeDesk
) -> None:
    page, docs = "/console/sources", "https://docs.example.com/"
    sent = await send_form(editor, page, f"{page}/add", source=docs, schedule="0 5 * * *")
    await send_form(editor, page, f"{page}/add", source=f"{docs}b/", schedule="")
    await send_form(editor, page, f"{page}/read", place=docs)
    await send_form(editor, page, f"{page}/stop", place=docs)
    await send_form(editor, page, f"{page}/remove", place=docs)

    assert desk.done == [
        ("add", DESK, docs, "0 5 * * *"),
        ("add", DESK, f"{docs}b/", ""),
        ("read", DESK, f"{docs}b/"),
        ("read", DESK, docs),
        ("stop", DESK, docs),
        ("remove", DESK, docs),
    ]
    assert "The source is read on its schedule" in (await editor.get(sent.headers["location"])).text


@pytest.mark.parametrize("source", ["/etc/passwd", ""])
async def test_a_source_that_may_not_be_added_is_refused_with_the_reason(
    editor: httpx.AsyncClient, desk: FakeDesk, source: str
) -> None:
    refused = await send_form(
        editor, "/console/sources", "/console/sources/add", source=source, schedule=""
    )

    assert refused.status_code == 400
    assert ("may not be added" in refused.text) or ("Enter the address" in refused.text)
    assert desk.done == []


@pytest.mark.parametrize(
    ("fields", "groups"),
    [
        ({"groups": "hr, Board ,hr"}, ("Board", "hr")),
        ({"groups": ""}, ()),
        ({"groups": "hr", "by": "source"}, None),
    ],
)
async def test_an_editor_chooses_who_may_read_a_document(
    editor: httpx.AsyncClient, desk: FakeDesk, fields: dict[str, str],
    groups: tuple[str, ...] | None,
) -> None:  # fmt: skip
    page = "/console/documents"
    sent = await send_form(editor, page, f"{page}/groups", id="hr/leave", **fields)

    assert desk.done == [("groups", DESK, "hr/leave", groups)]
    said = (
        "the source determines" if groups is None else "applies to searches and answers from now on"
    )
    assert said in (await editor.get(sent.headers["location"])).text


async def test_a_document_that_is_gone_or_a_group_without_a_name_changes_nothing(
    editor: httpx.AsyncClient, desk: FakeDesk
) -> None:
    page = "/console/documents"
    gone = await send_form(editor, page, f"{page}/groups", id="hr/gone", groups="hr")
    bad = await send_form(editor, page, f"{page}/groups", id="hr/leave", groups="h\nr")

    assert "Nothing was changed" in (await editor.get(gone.headers["location"])).text
    assert bad.status_code == 400
    assert [item[2] for item in desk.done] == ["hr/gone"]


async def test_an_uploaded_file_arrives_byte_for_byte(
    owner: httpx.AsyncClient, desk: FakeDesk
) -> None:
    page = (await owner.get("/console/documents")).text
    address = page.partition('action="/console/documents/upload')[2].partition('"')[0]
    sent = await owner.post(
        "/console/documents/upload" + address.replace("&amp;", "&"),
        content=MULTIPART,
        headers={"origin": "http://desk", "content-type": "multipart/form-data; boundary=line"},
    )

    assert sent.status_code == 303
    assert desk.done == [("upload", DESK, "leave.md", b"# Leave\r\n\xff\x00")]


def make_upload(content_type: str, body: bytes) -> Request:
    """A request with a form, as the server gives it to a route."""

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    headers = [(b"content-type", content_type.encode("latin-1"))]
    return Request({"type": "http", "headers": headers, "app": None}, receive)


@pytest.mark.parametrize("data", [bytes(range(256)) * 4, b"\r\n\r\n--lin\r\n", b"\r\r\n\n\r"])
async def test_a_file_of_any_bytes_is_read_from_a_form(data: bytes) -> None:
    request = make_upload("multipart/form-data; boundary=line",
                          MULTIPART.replace(b"# Leave\r\n\xff\x00", data))  # fmt: skip

    assert await read_file(request) == ("leave.md", data)


async def test_a_form_without_a_file_says_so() -> None:
    with pytest.raises(ValueError, match="Choose a file"):
        await read_file(make_upload("application/x-www-form-urlencoded", b"a=b"))


@pytest.mark.parametrize(
    "stated",
    [
        "multipart/form-data; boundary=line; a*",
        "multipart/form-data; boundary*0=line; boundary*=line",
        "multipart/form-data; boundary*1*=x'y'z; boundary*=x",
        "message/rfc822",
    ],
)
async def test_an_odd_form_is_refused_with_a_reason(stated: str) -> None:
    request = make_upload(stated, b"Content-Type: message/rfc822\r\n\r\n" * 20_000)

    with pytest.raises(ValueError, match=r"^(Choose a file first|The form cannot be read)"):
        await read_file(request)


async def test_documents_are_removed(owner: httpx.AsyncClient, desk: FakeDesk) -> None:
    page = "/console/documents"
    await send_form(owner, page, "/console/documents/remove", id="hr/leave")

    assert desk.done == [("remove", DESK, ("hr/leave",))]


async def test_dead_letters_are_sent_again_or_dropped(
    owner: httpx.AsyncClient, desk: FakeDesk
) -> None:
    page = (await owner.get("/console/health")).text
    await send_form(owner, "/console/health", "/console/dead/retry", id="0-1")
    await send_form(owner, "/console/health", "/console/dead/drop", id="0-1")

    assert "worker died" in page
    assert "m2" not in page
    assert desk.done == [("retry", "0-1"), ("drop", "0-1")]


async def test_a_letter_of_another_tenant_is_out_of_reach(
    owner: httpx.AsyncClient, desk: FakeDesk
) -> None:
    for action in ("retry", "drop"):
        refused = await send_form(owner, "/console/health", f"/console/dead/{action}", id="0-2")

        assert refused.status_code == 404
    assert desk.done == []


@pytest.mark.parametrize("role", [ConsoleRole.VIEWER, ConsoleRole.EDITOR])
async def test_only_an_owner_operates(
    parts: list[ConsolePart], desk: FakeDesk, role: ConsoleRole
) -> None:
    sessions = FakeSessions()
    app = make_console(None, sessions, roles={DESK: {"ada": role}}, parts=parts)
    async with browser_of(app) as client:
        await sign_in(client, sessions, "ada")
        for path in ("health", "settings"):
            assert (await client.get(f"/console/{path}")).status_code == 403
        for path in ("documents/remove", "dead/retry", "dead/drop"):
            fields = {"tenant": "acme", "assistant": "desk", "id": "0-1", "place": "/srv/handbook"}
            assert (await post(client, f"/console/{path}", fields)).status_code == 403

    assert desk.done == []


async def test_foreign_text_on_operation_pages_is_never_rendered_as_markup(
    owner: httpx.AsyncClient, desk: FakeDesk
) -> None:
    desk.source = replace(SOURCE, place=HOSTILE, reasons=(HOSTILE,))
    desk.letters = [replace(LETTER, error=HOSTILE)]

    for path in ("documents", "sources", "health", "settings"):
        shown = await owner.get(f"/console/{path}")

        assert shown.status_code == 200
        assert "<script" not in shown.text
        assert "<img" not in shown.text


async def test_failed_sources_and_dead_letters_are_concerns(
    pages: OperationPages, desk: FakeDesk, tmp_path: Path
) -> None:
    with open_records(tmp_path) as store:
        app = make_console(store, parts=[pages], concerns=[pages.find_concerns])
        async with owner_of(app) as owner:
            shown = (await owner.get("/console")).text

    assert "Some documents of a source could not be read" in shown
    assert "1 messages could not be answered" in shown


async def test_requests_that_were_turned_away_are_a_concern_of_who_owns_the_desk() -> None:
    meter = HttpMeter()
    find = find_turned_away(meter.began_at, meter.count_turned_away)
    owner = ConsoleUser(OPERATOR, {DESK: ConsoleRole.OWNER}, "t", owns_all=True)
    assert await find(owner) == []

    for route, status in (("/v1/responses", 503), ("", 503), ("/healthz", 503), ("", 404)):
        meter.count_request(route, status, 0.1)

    (concern,) = await find(owner)
    assert concern.text.startswith("2 since ")
    assert await find(replace(owner, owns_all=False)) == []


async def test_a_failed_examination_is_reported_and_hides_no_other_concern(
    pages: OperationPages, desk: FakeDesk, tmp_path: Path
) -> None:
    async def fail(_user: object) -> list[Concern]:
        raise ConsoleRefusedError(503, "The index is away", "")

    with open_records(tmp_path) as store:
        concerns = [fail, pages.find_concerns]
        async with owner_of(make_console(store, parts=[pages], concerns=concerns)) as owner:
            shown = (await owner.get("/console")).text

    assert "The index is away" in shown
    assert "Some documents of a source could not be read" in shown


@pytest.mark.slow
async def test_the_pages_are_readable_for_everybody(parts: list[ConsolePart]) -> None:
    app = make_console(None, parts=parts)
    async with owner_of(app) as owner:
        paths = [f"/console/{path}" for path in ("documents", "sources", "health", "settings")]

        assert await find_faults(app, owner, paths, scheme="light") == []


async def test_a_failed_background_job_is_a_concern_of_who_owns_the_desk() -> None:
    failed = JobReport(
        process="desk:7", name="webhook_deliveries", failures=2, error="KeyError: x", failed_at=60.0
    )
    unread = JobReport(process="desk:7", name="mail_replies", notice="1 e-mail was not read.")

    async def list_reports() -> list[JobReport]:
        return [failed, unread]

    find = find_in_jobs(list_reports)
    owner = ConsoleUser(OPERATOR, {DESK: ConsoleRole.OWNER}, "t", owns_all=True)

    texts = [concern.text for concern in await find(owner)]

    assert texts[0].startswith("webhook_deliveries of process desk:7 failed 2 times")
    assert "1970-01-01 00:01 UTC: KeyError: x" in texts[0]
    assert texts[1] == "1 e-mail was not read."
    assert await find(replace(owner, owns_all=False)) == []
