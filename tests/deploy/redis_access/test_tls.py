"""Redis is reached over TLS, by those that can check its certificate, and by nobody else."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trustme

from broker.errors import BrokerUnavailableError
from deploy.assembly.runtime import ROLES, connect_broker
from tests.support.app_harness import settings_of

pytestmark = pytest.mark.redis


class TlsTerminator:
    """Accepts TLS connections and hands what comes to a redis-server on a socket."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self.connections = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry bytes both ways until either end closes."""
        self.connections += 1
        inner, outer = await asyncio.open_unix_connection(self._socket)
        with suppress(ConnectionError, ssl.SSLError, ExceptionGroup):
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(copy(reader, outer))
                tasks.create_task(copy(inner, writer))


async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        target.write(data)
        await target.drain()
    target.close()


@asynccontextmanager
async def serve_tls(socket: str, authority: trustme.CA, host: str) -> AsyncIterator[int]:
    """Serve a redis-server over TLS, with a certificate for `host`; the port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(context)
    terminator = TlsTerminator(socket)
    server = await asyncio.start_server(terminator.handle, "127.0.0.1", 0, ssl=context)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()


@pytest.fixture
def authority(tmp_path: Path) -> tuple[trustme.CA, Path]:
    made, path = trustme.CA(), tmp_path / "ca.crt"
    made.cert_pem.write_to_path(str(path))
    return made, path


async def test_the_desk_reaches_redis_over_tls_with_the_authority_that_its_address_names(
    redis_url: str, authority: tuple[trustme.CA, Path], tmp_path: Path
) -> None:
    made, path = authority
    async with serve_tls(redis_url.removeprefix("unix://"), made, "localhost") as port:
        url = f"rediss://localhost:{port}/0?ssl_ca_certs={path}"
        async with connect_broker(settings_of(tmp_path, redis_url=url)) as broker:
            assert len(await broker.admin.read_status(ROLES)) == len(ROLES)


@pytest.mark.parametrize("host", ["localhost", "redis.other.example"])
async def test_a_redis_with_another_certificate_is_not_spoken_to(
    host: str, redis_url: str, authority: tuple[trustme.CA, Path], tmp_path: Path
) -> None:
    made, path = authority
    signer = trustme.CA() if host == "localhost" else made
    async with serve_tls(redis_url.removeprefix("unix://"), signer, host) as port:
        url = f"rediss://localhost:{port}/0?ssl_ca_certs={path}"
        with pytest.raises(BrokerUnavailableError, match="certificate"):
            async with connect_broker(settings_of(tmp_path, redis_url=url)):
                pass
