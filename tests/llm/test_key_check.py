"""A key that a vendor refuses ends the start by name; whatever proves nothing does not."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import structlog

from llm.errors import MissingKey
from llm.vendors.catalogue import VendorAccess, check_key, vendors_by_name

VENDORS = vendors_by_name()
KEY = "sk-secret-of-this-test"


class VendorServer(ThreadingHTTPServer):
    """Answers every list of models in one way, and keeps who asked with which key."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(("127.0.0.1", 0), ModelList)
        self.status = status
        self.body = body
        self.asked: list[tuple[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class ModelList(BaseHTTPRequestHandler):
    """One request for the list of models."""

    server: VendorServer

    def do_GET(self) -> None:
        names = ("Authorization", "x-goog-api-key", "x-api-key", "api-key")
        key = next((self.headers[name] for name in names if name in self.headers), "")
        self.server.asked.append((self.path, key))
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.body.encode())

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@pytest.fixture
def vendor(request: pytest.FixtureRequest) -> Iterator[VendorServer]:
    server = VendorServer(*request.param)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


INVALID = '{"error": {"details": [{"reason": "API_KEY_INVALID"}]}}'


@pytest.mark.parametrize(
    ("vendor", "provider", "path"),
    [
        ((401, "{}"), "openai", "/models"),
        ((401, "{}"), "google", "/v1beta/models?pageSize=1"),
        ((401, "{}"), "anthropic", "/models"),
        ((401, "{}"), "azure", "/models"),
        ((401, "{}"), "deepinfra", "/models"),
        ((400, INVALID), "google", "/v1beta/models?pageSize=1"),
    ],
    indirect=["vendor"],
)
async def test_a_refused_key_is_named_by_its_variable_and_not_shown(
    vendor: VendorServer, provider: str, path: str
) -> None:
    with pytest.raises(MissingKey, match=f"{provider.upper()}_API_KEY") as raised:
        await check_key(VENDORS[provider], VendorAccess(KEY, vendor.url))

    assert KEY not in str(raised.value)
    [(asked, key)] = vendor.asked
    assert (asked, key.removeprefix("Bearer ")) == (path, KEY)


@pytest.mark.parametrize(
    "vendor", [(200, "{}"), (403, "{}"), (404, "x"), (400, "{}"), (500, "")], indirect=True
)
@pytest.mark.parametrize("provider", ["openai", "google"])
async def test_errors_unrelated_to_the_key_do_not_stop_the_start(
    vendor: VendorServer, provider: str
) -> None:
    await check_key(VENDORS[provider], VendorAccess(KEY, vendor.url))

    assert len(vendor.asked) == 1


async def test_a_vendor_that_is_away_is_a_warning() -> None:
    with structlog.testing.capture_logs() as logs:
        await check_key(VENDORS["openai"], VendorAccess(KEY, "http://127.0.0.1:9"))

    assert [(log["event"], log["vendor"]) for log in logs] == [("api_key_check_failed", "openai")]


async def test_no_request_is_sent_without_a_key() -> None:
    await check_key(VENDORS["openai"], VendorAccess(None, "http://127.0.0.1:9"))


@pytest.mark.parametrize("vendor", [(401, "{}")], indirect=True)
async def test_a_refused_key_of_a_named_server_is_reported_by_its_name(
    vendor: VendorServer,
) -> None:
    [server] = [vendor for vendor in vendors_by_name(["local"]).values() if vendor.is_configured]

    with pytest.raises(MissingKey, match="rejected the key in COMPATIBLE_SERVERS"):
        await check_key(server, VendorAccess(KEY, vendor.url))
