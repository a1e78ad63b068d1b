"""A redis-server that lets in the users of the product alone."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from broker.embedded_redis import Endpoint
from deploy.generate.redis_users import FILE, RedisUser
from tests.conftest import start_redis


class GuardedRedis:
    """A redis-server with the drawn users, and who looks after it."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.clients: list[Redis] = []
        self.operator: Any = Redis(unix_socket_path=str(socket), username="test", password="test")  # noqa: S106 - of this test

    def client(self, user: RedisUser) -> Any:
        """A client of a user, which the fixture closes."""
        self.clients.append(Redis.from_url(self.endpoint(user).url))
        return self.clients[-1]

    def endpoint(self, user: RedisUser) -> Endpoint:
        return Endpoint(f"unix://{user.name}:PASSWORD-OF-{user.name}@{self.socket}", durable=True)

    async def refusals(self) -> list[tuple[str, str]]:
        """Who was refused what; naming the library at a connection is not ours to need."""
        rows = await self.operator.acl_log()
        denied = [(str(row["username"]), str(row["object"])) for row in rows]
        return [(name, what) for name, what in denied if not what.startswith("client")]


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[GuardedRedis]:
    socket = tmp_path / "r.sock"
    users = tmp_path / "users.acl"
    users.write_text("user default on nopass ~* &* +@all\n")  # until the server is seen to answer
    server = start_redis(socket, "--aclfile", str(users))
    users.write_text(FILE.read_text() + "user test on >test ~* &* +@all\n")
    stranger: Any = Redis(unix_socket_path=str(socket))
    await stranger.execute_command("ACL LOAD")
    await stranger.aclose()
    made = GuardedRedis(socket)
    yield made
    for client in (*made.clients, made.operator):
        await client.aclose()
    server.terminate()
    server.wait()
