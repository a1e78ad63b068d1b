"""Runs servers of stores on this machine: S3 (moto), WebDAV (wsgidav) and SFTP (asyncssh)."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import asyncssh
import pytest
from cheroot.wsgi import Server
from moto.server import ThreadedMotoServer
from wsgidav.wsgidav_app import WsgiDAVApp

USER, PASSWORD = "reader", "correct horse"


@contextmanager
def serve_s3(patch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve an empty bucket `docs`; set the environment of its clients; yield its address."""
    import s3fs

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", USER)
        patch.setenv("AWS_SECRET_ACCESS_KEY", PASSWORD)
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        # What it keeps belongs to the process and not to this server.
        urlopen(Request(f"http://{host}:{port}/moto-api/reset", method="POST")).close()
        s3fs.S3FileSystem(skip_instance_cache=True).mkdir("docs")
        yield "s3://docs"
    finally:
        server.stop()


@contextmanager
def serve_webdav(patch: pytest.MonkeyPatch, folder: Path) -> Iterator[str]:
    """Serve a folder to the one user; set the environment of the client; yield its address."""
    app = WsgiDAVApp(
        {
            "provider_mapping": {"/dav": str(folder)},
            "simple_dc": {"user_mapping": {"*": {USER: {"password": PASSWORD}}}},
            "http_authenticator": {"accept_digest": False, "default_to_digest": False},
            "verbose": 0,
        }
    )
    server = Server(("127.0.0.1", 0), app)
    server.prepare()
    thread = threading.Thread(target=server.serve)
    thread.start()
    patch.setenv("WEBDAV_USERNAME", USER)
    patch.setenv("WEBDAV_PASSWORD", PASSWORD)
    try:
        yield f"webdav://127.0.0.1:{server.bind_addr[1]}/dav"
    finally:
        server.stop()
        thread.join()


class _OneUser(asyncssh.SSHServer):
    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return (username, password) == (USER, PASSWORD)


@contextmanager
def serve_sftp(patch: pytest.MonkeyPatch, folder: Path) -> Iterator[str]:
    """Serve a folder to the one user; set the environment of the client; yield its address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    key = asyncssh.generate_private_key("ssh-ed25519")

    def make_sftp(channel: Any) -> asyncssh.SFTPServer:
        return asyncssh.SFTPServer(channel, chroot=str(folder).encode())

    async def listen() -> asyncssh.SSHAcceptor:
        return await asyncssh.listen(
            "127.0.0.1", 0, server_host_keys=[key], server_factory=_OneUser, sftp_factory=make_sftp
        )

    async def close(server: asyncssh.SSHAcceptor) -> None:
        server.close()
        await server.wait_closed()

    server = asyncio.run_coroutine_threadsafe(listen(), loop).result()
    known = folder.parent / "known_hosts"
    port = server.get_port()
    known.write_text(f"[127.0.0.1]:{port} {key.export_public_key().decode()}")
    patch.setenv("SFTP_PASSWORD", PASSWORD)
    patch.setenv("SFTP_KNOWN_HOSTS", str(known))
    try:
        yield f"sftp://{USER}@127.0.0.1:{port}/"
    finally:
        asyncio.run_coroutine_threadsafe(close(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
