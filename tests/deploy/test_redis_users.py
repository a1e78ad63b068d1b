"""The whole product works for users of Redis who may do nothing that harms the server."""

import ast
import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trustme
from pydantic import SecretStr
from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, NoPermissionError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError

from broker.errors import BrokerUnavailableError
from deploy.assembly.knowledge import Knowledge
from deploy.assembly.recording import make_conversation_records, recording
from deploy.assembly.runtime import (
    ROLES,
    connect_runtime,
    desk,
    run_maintenance,
    run_workers,
)
from deploy.generate.redis_users import (
    BACKUP,
    CHAT,
    COMMANDS,
    FILE,
    GATEWAY,
    OPERATOR,
    READER,
    SCALER,
    USERS,
    WORKER,
    WRITER,
    RedisUser,
    draw_users,
)
from gateway.api_keys import StoredKeys, make_key
from gateway.conversations import Conversations
from gateway.desk import Message, erase
from memory.budgets import Amounts, RedisBudgets
from memory.chat_state import RedisPushMemory
from memory.http_state import Feedback, RedisRates
from memory.presence import RedisDuty
from memory.work_store import RedisAttachments
from records.store import Selection, connect_store
from tests.support.app_harness import ROOT, settings_of
from tests.support.broker_harness import question
from tests.support.guarded_redis import GuardedRedis, guarded
from tests.support.waiting import wait_until

__all__ = ["guarded"]
pytestmark = pytest.mark.redis


CLEAR = "How do I configure SMS routing rules?"


COPIES = frozenset({"scan", "dump", "restore"})
"""What only the user of backups may do."""


HARMFUL = (
    "CONFIG GET *", "CONFIG SET maxmemory 1", "FLUSHALL", "FLUSHDB", "KEYS *", "SCAN 0",
    "DEBUG SLEEP 0", "MODULE LIST", "SCRIPT FLUSH", "SCRIPT KILL", "SHUTDOWN NOSAVE", "MONITOR",
    "REPLICAOF NO ONE", "SLAVEOF NO ONE", "MIGRATE h 1 k 0 1", "ACL LIST", "ACL SETUSER x on",
    "CLIENT LIST", "CLIENT KILL TYPE normal", "SAVE", "BGSAVE", "SWAPDB 0 1", "RENAME a b",
    "DUMP rd:shards", "RESTORE k 0 x", "SORT rd:shards", "SUBSCRIBE x", "LATENCY RESET",
    "SLOWLOG GET", "FUNCTION LIST", "CLUSTER RESET", "RANDOMKEY", "OBJECT FREQ rd:shards",
)  # fmt: skip


def test_the_drawn_list_is_fresh() -> None:
    assert FILE.read_text() == draw_users(), "stale: run python -m deploy.generate.redis_users"


@pytest.mark.slow
async def test_a_question_is_answered_by_users_who_may_do_no_harm(
    guarded: GuardedRedis, knowledge: Knowledge, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path)
    worker, gateway, operator = map(guarded.endpoint, (WORKER, GATEWAY, OPERATOR))
    async with (
        connect_runtime(settings, endpoint=worker) as working,
        run_workers(working, ROLES, knowledge),
        connect_runtime(settings, endpoint=gateway) as serving,
        run_maintenance(serving),
        connect_runtime(settings, endpoint=operator) as operating,
    ):
        asking = desk(serving, "http")
        answer = await asking.ask(Message(CLEAR, "c", "m1"))
        vague = await asking.ask(Message("How do I set it up?", "d", "m2"))
        question = asking.question(Message(CLEAR, "c", "m1"))
        await operating.broker.admin.read_status(ROLES)
        questions = await operating.broker.admin.find_questions("m1")
        journal = await operating.broker.replies.read_journal(question)

    assert (answer["outcome"], vague["outcome"]) == ("answered", "clarification")
    assert (questions, journal[-1].kind) == ([question], "finished")
    assert await guarded.refusals() == []


async def test_gateways_and_operators_can_access_the_keys_that_they_store(
    guarded: GuardedRedis,
) -> None:
    client = guarded.endpoint(GATEWAY).client()
    chat = guarded.endpoint(CHAT).client()
    keys = StoredKeys(client)

    assert await keys.all() == []
    assert not await keys.any()
    assert await keys.link_secret()
    key = make_key("secret", tenant="acme")[0]
    await keys.note_use(key)
    assert list(await keys.uses()) == [key.id]
    assert await RedisRates(client).admit("owner", []) is None
    assert await RedisDuty(chat, "slack", "poll", "me").keep(1.0)
    await client.aclose()
    await chat.aclose()
    assert await guarded.refusals() == []


async def test_workers_reserve_the_budgets_of_questions_and_of_tenants(
    guarded: GuardedRedis,
) -> None:
    client = guarded.endpoint(WORKER).client()
    budgets = RedisBudgets(client, shards=1)
    asked, amounts = question(), Amounts({"micro_usd": 1}, {"micro_usd": 9})

    assert await budgets.reserve(asked, "a", amounts) is None
    assert await budgets.settle(asked, "a", {"micro_usd": 1})
    assert await budgets.reserve_of_tenant("acme", "2026-11-23", "a", amounts) is None
    assert await budgets.settle_of_tenant("acme", "2026-11-23", "a", {"micro_usd": 1})
    await client.aclose()
    assert await guarded.refusals() == []


@pytest.mark.parametrize("user", USERS, ids=lambda user: user.name)
async def test_nobody_may_empty_reconfigure_halt_or_copy_the_server(
    user: RedisUser, guarded: GuardedRedis
) -> None:
    client = guarded.client(user)
    newer = await at_least_7(guarded.operator)
    for words in HARMFUL:
        if words.startswith("FUNCTION") and not newer:
            continue
        if user is BACKUP and words.split()[0].lower() in COPIES:
            continue
        with pytest.raises(ResponseError, match=r"no permissions|not allowed"):
            await client.execute_command(*words.split())

    for script in ("redis.call('FLUSHALL')", "redis.call('CONFIG', 'GET', '*')"):
        with pytest.raises(Exception, match=r"(?i)can't run|permission|not allowed"):
            await client.execute_command("EVAL", f"return {script}", 0)
    assert await guarded.operator.ping()


async def at_least_7(client: Redis) -> bool:
    info = await client.info("server")
    return int(str(info["redis_version"]).split(".")[0]) >= 7


async def test_workers_reach_neither_keys_nor_posts_and_the_scaler_reads_lengths_alone(
    guarded: GuardedRedis,
) -> None:
    worker = guarded.client(WORKER)
    scaler = guarded.client(SCALER)
    chat = guarded.client(CHAT)

    for client, key in ((worker, "rd:keys"), (worker, "rd:push:x"), (chat, "rd:keys"), (chat, "x")):
        with pytest.raises(NoPermissionError):
            await client.hgetall(key)
    assert await scaler.xlen("rd:{0}:stream:lang") == 0
    for words in ("XRANGE rd:{0}:stream:lang - +", "XLEN rd:{0}:journal:x", "GET rd:shards"):
        with pytest.raises(NoPermissionError):
            await scaler.execute_command(*words.split())


async def test_those_who_ingest_reach_no_conversations_and_who_reads_no_paid_answers(
    guarded: GuardedRedis,
) -> None:
    reader, writer = guarded.client(READER), guarded.client(WRITER)

    await reader.get("rd:parcel:x:0")
    await writer.get("rd:paid:x")
    memory = "rd:{0}:mem:acme/docs/c:history"
    for client, key in (
        (reader, "rd:paid:x"),
        (reader, "rd:limit:x"),
        (reader, memory),
        (writer, memory),
        (writer, "rd:keys"),
    ):
        with pytest.raises(NoPermissionError):
            await client.get(key)


async def test_nobody_comes_in_without_a_name(guarded: GuardedRedis) -> None:
    stranger = Redis(unix_socket_path=str(guarded.socket))

    with pytest.raises((AuthenticationError, RedisConnectionError), match="authenticated"):
        await stranger.ping()
    await stranger.aclose()


def read_sent_commands() -> Iterator[str]:
    """Commands that scripts call, and that Python sends by their name."""
    for path in [*ROOT.glob("broker/**/*"), *ROOT.glob("memory/**/*"), *ROOT.glob("deploy/*.py")]:
        if path.suffix not in (".py", ".lua"):
            continue
        text = path.read_text()
        yield from re.findall(r"redis\.p?call\(\s*['\"](\w+)", text)
        if path.suffix == ".py":
            yield from read_methods(text)


def read_methods(source: str) -> Iterator[str]:
    """What is called on a client or a pipeline, and words that are executed as a command."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        receiver = ast.unparse(node.func.value).rpartition(".")[2]
        if receiver not in ("client", "_client", "pipeline", "node"):
            continue
        if node.func.attr != "execute_command":
            yield node.func.attr.partition("_")[0]
        elif node.args and isinstance(node.args[0], ast.Constant):
            yield str(node.args[0].value)


SENT = {name.lower() for name in read_sent_commands()}


async def test_every_command_that_the_code_sends_is_allowed(guarded: GuardedRedis) -> None:
    rows = await guarded.operator.execute_command("COMMAND")
    known = {row[0].decode() for row in rows} if isinstance(rows, list) else set(rows)

    allowed = {name.partition("|")[0] for name in (*COMMANDS, *BACKUP.commands)}
    assert {"xadd", "zadd", "xread", "hget", "evalsha"} <= SENT
    # A restore reports that it may not have Redis check the structure of values.
    assert (SENT & known) - allowed == {"config"}


MEMORY = "rd:{0}:mem:acme/docs/c1"


FRAME = "rd:{0}:frames:acme/docs/c1/m1"


ALLOWED = (
    (WORKER, f"HGETALL {MEMORY}:attachments"), (WORKER, f"LRANGE {MEMORY}:history 0 -1"),
    (WORKER, "XADD rd:{0}:stream:search * a b"), (WORKER, "SET rd:shards 1 NX"),
    (WORKER, "HGETALL rd:{0}:controls"), (WORKER, "SET rd:cache:acme/docs:x 1"),
    (GATEWAY, "HGET rd:keys k"), (GATEWAY, "HSET rd:keys k v"), (GATEWAY, "GET rd:shards"),
    (GATEWAY, f"GET {MEMORY}:visit"), (GATEWAY, f"HSET {MEMORY}:feedback a b"),
    (GATEWAY, f"HSET {MEMORY}:attachments a b"),
    (CHAT, "HGETALL rd:push:{slack/acme/docs/c1}:about"), (CHAT, f"HSET {MEMORY}:feedback a b"),
    (CHAT, f"HGETALL {MEMORY}:feedback"),
    (CHAT, f"XRANGE {FRAME.replace('frames', 'journal')} - +"), (CHAT, "GET rd:shards"),
    (OPERATOR, "HSET rd:keys k v"), (OPERATOR, "HSET rd:{0}:controls a b"),
    (SCALER, "XLEN rd:{0}:stream:search"),
)  # fmt: skip


REFUSED = (
    (WORKER, "DEL rd:shards"), (WORKER, "HGET rd:keys k"), (WORKER, "GET rd:keys:links"),
    (WORKER, f"GET {MEMORY}:visit"), (WORKER, "HSET rd:{0}:controls a b"),
    (WORKER, "HGETALL rd:push:{slack/acme/docs/c1}:about"), (WORKER, "DEL rd:rate:{k}:minute"),
    (GATEWAY, "DEL rd:shards"), (GATEWAY, "SET rd:shards 2"), (GATEWAY, "HDEL rd:keys k"),
    (GATEWAY, "DEL rd:keys"), (GATEWAY, "GET rd:cache:acme/docs:x"),
    (GATEWAY, "DEL rd:budget:acme:d"), (GATEWAY, "HSET rd:{0}:controls a b"),
    (GATEWAY, "HGETALL rd:limit:m"),
    (CHAT, f"HGETALL {MEMORY}:attachments"), (CHAT, f"LRANGE {MEMORY}:history 0 -1"),
    (CHAT, f"HGETALL {MEMORY}:kept"), (CHAT, f"HGETALL {MEMORY}:preferences"),
    (CHAT, f"HGETALL {MEMORY}:work"), (CHAT, f"HGETALL {MEMORY}:calls"), (CHAT, "DEL rd:shards"),
    (CHAT, "HGET rd:keys k"), (CHAT, f"GET {MEMORY}:visit"), (CHAT, "HGETALL rd:{0}:controls"),
    (CHAT, "GET rd:cache:acme/docs:x"), (CHAT, "GET rd:thread:acme/docs:x"),
    (SCALER, "XRANGE rd:{0}:stream:search - +"), (SCALER, "DEL rd:{0}:stream:search"),
    *((user, "GET another-application") for user in USERS),
    *((user, "FLUSHALL") for user in USERS),
)  # fmt: skip


async def try_dry(guarded: GuardedRedis, user: RedisUser, words: str) -> str:
    if not await at_least_7(guarded.operator):
        pytest.skip("ACL DRYRUN needs Redis 7")
    said = await guarded.operator.execute_command("ACL DRYRUN", user.name, *words.split())
    return said.decode() if isinstance(said, bytes) else str(said)


async def test_each_part_reaches_the_keys_that_it_needs_and_no_others(
    guarded: GuardedRedis,
) -> None:
    allowed = [await try_dry(guarded, *item) for item in ALLOWED]
    refused = [await try_dry(guarded, *item) for item in REFUSED]

    assert [case for case, said in zip(ALLOWED, allowed, strict=True) if said != "OK"] == []
    assert [case for case, said in zip(REFUSED, refused, strict=True) if said == "OK"] == []


@pytest.mark.slow
async def test_a_chat_is_answered_rated_and_cancelled_within_the_reach_of_its_user(
    guarded: GuardedRedis, knowledge: Knowledge, tmp_path: Path
) -> None:
    place = f"sqlite:///{tmp_path / 'shared.sqlite3'}"
    settings = settings_of(tmp_path).model_copy(update={"records_url": SecretStr(place)})
    worker, chat = map(guarded.endpoint, (WORKER, CHAT))
    store = connect_store(place)

    def is_recorded() -> bool:
        return [record.rating for record in store.find(Selection())] == ["up"]

    async with (
        connect_runtime(settings, endpoint=worker) as working,
        run_workers(working, ROLES, knowledge),
        connect_runtime(settings, endpoint=chat) as serving,
        run_maintenance(serving),
        recording(serving),
    ):
        asking = desk(serving, "slack", result_list="slack")
        answer = await asking.ask(Message(CLEAR, "c", "m1"))
        asked = asking.question(Message(CLEAR, "c", "m1"))
        client = chat.client()
        announcing = make_conversation_records(settings, serving.broker)
        stored = Conversations(
            client,
            shards=1,
            ttl_seconds=60,
            on_rated=announcing.announce_rating,
            forget_recorded=announcing.forget,
        )
        await stored.give_feedback(asked, Feedback(rating="up"))
        memory = RedisPushMemory(client, "slack", question_seconds=60, conversation_seconds=60)
        await memory.note(asked, posted="1")
        await memory.open(asked, 1.0)
        await memory.close(asked)
        await memory.forget_words(asked)
        await wait_until(is_recorded)
        await client.aclose()

    store.close()
    assert answer["outcome"] == "answered"
    assert await guarded.refusals() == []


@pytest.mark.slow
async def test_a_conversation_is_continued_and_erased_within_the_reach_of_the_gateway(
    guarded: GuardedRedis, knowledge: Knowledge, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path)
    worker, gateway = map(guarded.endpoint, (WORKER, GATEWAY))
    async with (
        connect_runtime(settings, endpoint=worker) as working,
        run_workers(working, ROLES, knowledge),
        connect_runtime(settings, endpoint=gateway) as serving,
        run_maintenance(serving),
    ):
        asking = desk(serving, "http")
        answer = await asking.ask(Message(CLEAR, "c", "m1"))
        await asking.ask(Message("/clear_all", "d", "m1", command="clear_all"))
        asked = asking.question(Message(CLEAR, "c", "m1"))
        client = gateway.client()
        stored = Conversations(client, shards=1, ttl_seconds=60)
        await stored.open_session(asked, "digest")
        await stored.session(asked)
        await stored.put_thread(asked, "digest")
        await stored.turns(asked)
        await stored.recent_messages(asked, limit=5)
        await stored.give_feedback(asked, Feedback(rating="up"))
        await RedisAttachments(client, shards=1, ttl_of=lambda _: 60).put(asked, "a", b"text")
        erased = await erase(serving.broker.eraser, stored, asked)
        await client.aclose()

    assert answer["outcome"] == "answered"
    assert erased.found
    assert await guarded.refusals() == []


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
        async with connect_runtime(settings_of(tmp_path, redis_url=url)) as runtime:
            broker = runtime.broker
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
            async with connect_runtime(settings_of(tmp_path, redis_url=url)):
                pass
