"""Hostile requests: none breaks the server, and none shows what is another's.

The generated ones are the same in every run; `REFDESK_HOSTILE_REQUESTS` is another number of those
of `make test-all`. Twenty thousand on the wire are sent by `python -m tests.gateway.hostile`.
"""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast
from urllib.parse import urlsplit

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.generation import GenerationMode

from tests.gateway.hostile.wire import send_all
from tests.gateway.http.server_process import WORD, ServerProcess, serve_http

FEW_REQUESTS = 60
REQUESTS = int(os.environ.get("REFDESK_HOSTILE_REQUESTS", "400"))
SEED = 2026
WIRE_REQUESTS = 300
FERTILE = 20
"""Kinds of requests, right and wrong ones of each route, of which there is no end."""
KNOWN = {"conversation_id": "c1", "message_id": "m1", "model": "docs"}
load_all_checks()
CONFORMS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
]
MESSAGES = "/v1/conversations/c1/messages"
COMPLETIONS = "/v1/chat/completions"
JSON = {"Content-Type": "application/json"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600 if REQUESTS > 1000 else 240)]


@pytest.fixture(scope="module")
def server_process(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[ServerProcess]:
    """One server for all of them: it must live through everything."""
    url = request.getfixturevalue("redis_url") if REQUESTS > 1000 else ""
    with serve_http(tmp_path_factory.mktemp("server"), url) as opened:
        yield opened
        assert opened.process.poll() is None
        log = opened.log.read_text()
        assert "Traceback" not in log
        assert "request_failed" not in log
        assert opened.token not in log
        assert WORD not in log


@pytest.mark.parametrize("requests", [FEW_REQUESTS, pytest.param(REQUESTS, marks=pytest.mark.long)])
def test_generated_requests_never_break_the_server_nor_show_what_is_anothers(
    server_process: ServerProcess, requests: int
) -> None:
    schema = schemathesis.openapi.from_url(f"{server_process.url}/openapi.json")
    operations = [cast("Any", result).ok() for result in schema.get_all_operations()]
    assert len(operations) >= 12
    share = 1 + requests // FERTILE
    sent: list[int] = []
    for operation in operations:
        for mode in GenerationMode:
            _send(server_process, operation, mode, share, sent)
    assert len(sent) >= requests
    print(f"{len(sent)} generated requests; statuses {sorted(set(sent))}")  # noqa: T201


@pytest.mark.parametrize("seed_", [1, 2])
def test_malformed_requests_on_the_wire_never_break_the_server_nor_show_what_is_anothers(
    server_process: ServerProcess, seed_: int
) -> None:
    port = urlsplit(server_process.url).port
    assert port is not None

    verdict = asyncio.run(
        send_all(port, WIRE_REQUESTS, seed=seed_, token=server_process.token, secrets=(WORD,))
    )

    assert verdict.wrong == []
    assert verdict.sent == WIRE_REQUESTS
    assert {200, 400, 401, 404, 405} <= set(verdict.statuses)


def _send(
    server_process: ServerProcess, operation: Any, mode: GenerationMode, share: int, sent: list[int]
) -> None:
    headers = {"Authorization": f"Bearer {server_process.token}"}
    right = mode is GenerationMode.POSITIVE
    # Made-up names lead nowhere: right requests are about what is there.
    names = {name: KNOWN[name] for name in KNOWN if f"{{{name}}}" in operation.path}
    known = {"path_parameters": names} if right and names else {}

    @seed(SEED)
    @settings(
        max_examples=share,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode, **known))
    def send(case: Any) -> None:
        answer = case.call(base_url=server_process.url, headers=headers, timeout=None)
        sent.append(answer.status_code)
        assert WORD not in answer.text, operation.label
        case.validate_response(answer, checks=CHECKS.get_by_names(CONFORMS))

    with suppress(Unsatisfiable):  # a route without parameters has nothing that could be wrong
        send()


HOSTILE: list[tuple[str, str, dict[str, Any]]] = [
    # other tenants' ids, and tricks with paths
    ("GET", "/v1/conversations/c1", {}),
    ("GET", f"{MESSAGES}/m1/events", {}),
    ("DELETE", "/v1/conversations/c1", {}),
    ("GET", "/v1/conversations/..%2f..%2fother%2fdocs%2fc1", {}),
    ("GET", "/v1/conversations/other%2Fdocs%2Fc1", {}),
    ("GET", "/v1/conversations/c1%00", {}),
    ("GET", "/v1/conversations/%7B0%7D:journal", {}),
    ("GET", "/v1/conversations/c1?assistant=..%2Fother", {}),
    ("GET", "/v1/conversations/c1?assistant=docs&tenant=other", {}),
    ("GET", "/v1/conversations/*", {}),
    ("GET", f"/v1/conversations/{'a' * 5000}", {}),
    ("GET", "/v1/documents/..%2f..%2fetc%2fpasswd", {}),
    ("GET", "/v1/documents/other%2Fdocs%2Fx.md", {}),
    ("GET", f"/v1/documents/{'e30=.' * 3000}", {}),
    ("GET", "/v1/documents/eyJ0ZW5hbnQiOiJvdGhlciJ9.AAAA", {}),
    ("GET", "/v1/conversations//messages", {}),
    ("GET", "/v1/../v1/conversations/c1", {}),
    ("GET", "/%2e%2e/etc/passwd", {}),
    ("GET", "//evil.test/v1/models", {}),
    ("GET", "/v1/models/../../metrics", {}),
    ("GET", "/v1/models/%F0%9F%92%A3", {}),
    ("GET", "/v1/conversations/%ff%fe", {}),
    ("TRACE", MESSAGES, {}),
    ("OPTIONS", "/*", {}),
    ("PUT", MESSAGES, {"content": b"{}"}),
    # bodies that are none
    ("POST", MESSAGES, {"content": b"", "headers": JSON}),
    ("POST", MESSAGES, {"content": b"{", "headers": JSON}),
    ("POST", MESSAGES, {"content": b"null", "headers": JSON}),
    ("POST", MESSAGES, {"content": b"[" * 100_000, "headers": JSON}),
    ("POST", MESSAGES, {"content": b'{"text":' * 20_000, "headers": JSON}),
    ("POST", MESSAGES, {"content": b'{"text": NaN}', "headers": JSON}),
    ("POST", MESSAGES, {"content": b'{"text": ' + b"9" * 10_000 + b"}", "headers": JSON}),
    ("POST", MESSAGES, {"content": b'{"text": "\\ud800"}', "headers": JSON}),
    ("POST", MESSAGES, {"content": b'{"text": "\xff\xfe"}', "headers": JSON}),
    ("POST", MESSAGES, {"content": b'{"text": "a", "text": "b", "x": 1}', "headers": JSON}),
    ("POST", MESSAGES, {"content": b'{"text":"Hi"}', "headers": {"Content-Type": "text/plain"}}),
    ("POST", MESSAGES, {"content": b"text=Hi", "headers": {"Content-Type": "multipart/form-data"}}),
    ("POST", MESSAGES, {"content": b"\x1f", "headers": {**JSON, "Content-Encoding": "gzip"}}),
    ("POST", MESSAGES, {"content": b" " * 2_000_000, "headers": JSON}),
    ("POST", MESSAGES, {"json": {"text": "x" * 8_001}}),
    ("POST", MESSAGES, {"json": {"text": "\u0000\u202e"}}),
    ("POST", MESSAGES, {"json": {"text": ["a"]}}),
    ("POST", MESSAGES, {"json": {"text": "Hi", "tenant": "other"}}),
    ("POST", MESSAGES, {"json": {"text": "Hi", "result_list": "slack"}}),
    ("POST", MESSAGES, {"json": {"text": "Hi", "message_id": "../m1"}}),
    ("POST", MESSAGES, {"json": {"text": "Hi", "message_id": "m\r\nX: 1"}}),
    ("POST", MESSAGES, {"json": {"text": "Hi", "language": "'; DROP"}}),
    ("POST", MESSAGES, {"json": {"text": "/clear_all " + "x " * 3000}}),
    ("POST", MESSAGES, {"json": {"text": "/__class__"}}),
    ("POST", MESSAGES, {"json": {"text": "{{ 7 * 7 }} ${7*7} %s %n"}}),
    # headers
    ("POST", MESSAGES, {"json": {"text": "Hi"}, "headers": {"Idempotency-Key": "x" * 4000}}),
    ("POST", MESSAGES, {"json": {"text": "Hi"}, "headers": {"Accept": "text/event-stream," * 500}}),
    ("POST", MESSAGES, {"json": {"text": "Hi"}, "headers": {"Accept-Language": ";;;,=\\"}}),
    ("GET", f"{MESSAGES}/m1/events", {"headers": {"Last-Event-ID": "99999999999999999999-0.0"}}),
    ("GET", f"{MESSAGES}/m1/events", {"headers": {"Last-Event-ID": "-1--1.-1"}}),
    ("GET", "/v1/models", {"headers": {"X-Request-Id": "x" * 9000}}),
    ("GET", "/v1/models", {"headers": {"Authorization": "Bearer refdesk_secret_" + "0" * 12}}),
    ("GET", "/v1/models", {"headers": {"Authorization": "Bearer " + "x" * 9000}}),
    ("GET", "/v1/models", {"headers": {"Authorization": "Basic YTpi"}}),
    ("GET", "/v1/models", {"headers": {"Host": "evil.test", "X-Forwarded-Host": "x"}}),
    ("GET", "/v1/models", {"headers": {"Origin": "https://evil.test"}}),
    # completions
    ("POST", COMPLETIONS, {"json": {"model": "docs", "messages": []}}),
    ("POST", COMPLETIONS, {"json": {"model": "other/docs", "messages": [{"role": "user"}]}}),
    ("POST", COMPLETIONS, {"json": {"model": "docs", "messages": [{"role": 1, "content": 1}]}}),
    ("POST", COMPLETIONS, {"json": {"model": "docs", "messages": [{"role": "root"}] * 600}}),
    ("POST", COMPLETIONS, {"json": {"model": {"$gt": ""}, "messages": "Hi", "stream": "maybe"}}),
    ("POST", COMPLETIONS, {"json": {"model": "docs", "n": 10**9, "messages": [{"role": "user"}]}}),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "options"), HOSTILE)
def test_a_hostile_request_is_refused_or_answered_and_nothing_more(
    server_process: ServerProcess, method: str, path: str, options: dict[str, Any]
) -> None:
    headers = {"Authorization": f"Bearer {server_process.token}", **options.get("headers", {})}
    options = {name: value for name, value in options.items() if name != "headers"}

    with httpx.Client(timeout=None) as client:
        target = httpx.URL(server_process.url).copy_with(raw_path=path.encode())
        answer = client.request(method, target, headers=headers, **options)

    assert answer.status_code < 500
    assert WORD not in answer.text
    if answer.status_code >= 400 and answer.headers["content-type"] == "application/json":
        assert set(json.loads(answer.text)["error"]) == {
            "message", "type", "param", "code", "request_id",
        }  # fmt: skip
