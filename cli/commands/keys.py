"""Creates, lists, and revokes HTTP API keys, and prints one-time links to the console."""

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import JsonValue, ValidationError

from cli.arguments import add_action, add_groups_argument, read_groups
from cli.printing import print_line, say_json
from config.settings import Settings, load_settings
from deploy.assembly.runtime import Runtime, connect_runtime
from deploy.errors import CommandError
from gateway.api_keys import (
    DEFAULT_SCOPES,
    PUBLIC_PER_MINUTE,
    Key,
    KeyHistory,
    Scope,
    StoredKeys,
    make_key,
    origin_in,
)
from memory.console_state import RedisConsoleSessions

DAY_SECONDS = 86_400
SHOWN_ONCE = "It is shown only now; Redis stores only its hash."
PORT = 8000


@dataclass(frozen=True, slots=True)
class _KeyAdmin:
    keys: StoredKeys
    runtime: Runtime


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk keys`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = add_action(actions, "create", "create a key and show it once")
    create.add_argument("--tenant", help="tenant of the key (default: the setting TENANT)")
    create.add_argument(
        "--assistant",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="limit the key to these assistants; repeatable",
    )
    create.add_argument(
        "--scope",
        nargs="+",
        action="extend",
        type=_read_scopes,
        metavar="SCOPE",
        help=f"permissions, from {', '.join(scope.value for scope in Scope)} "
        f"(default: {', '.join(sorted(DEFAULT_SCOPES))}); separated by spaces or commas; "
        "repeatable",
    )
    create.add_argument("--public", action="store_true", help="create a public key, for a web page")
    create.add_argument(
        "--origin",
        nargs="+",
        action="extend",
        default=[],
        metavar="ORIGIN",
        help="websites of a public key, such as https://www.acme.com, separated by blanks or "
        "commas; repeatable",
    )
    create.add_argument("--per-minute", type=int, metavar="N", help="maximum requests per minute")
    create.add_argument("--per-day", type=int, metavar="N", help="maximum questions per day")
    create.add_argument(
        "--visitor-per-day",
        type=int,
        metavar="N",
        help="maximum questions per day of one visitor (default: VISITOR_QUESTIONS_PER_DAY, "
        "and at most VISITOR_SHARE of the limit of the key)",
    )
    create.add_argument(
        "--days", type=float, metavar="N", help="days until the key expires (default: never)"
    )
    add_groups_argument(create, "groups of all users of this secret key")
    create.add_argument(
        "--person-groups",
        nargs="+",
        action="extend",
        default=[],
        metavar="GROUP",
        help="groups that person tokens may contain; the tokens are signed with a secret that is "
        "shown once; separated by spaces or commas; repeatable",
    )
    create.add_argument("--note", default="", help="a note that `keys list` shows")
    revoke = add_action(actions, "revoke", "revoke a key immediately")
    revoke.add_argument("id", help="id of the key, as `keys list` shows it")
    for action in (create, add_action(actions, "list", "list all keys"), revoke):
        action.add_argument("--json", action="store_true", help="print JSON")


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk keys`."""
    actions = {"create": _create, "list": _list, "revoke": _revoke}
    asyncio.run(actions[chosen.action](chosen))
    return 0


def add_console_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk console`."""
    parser.add_argument(
        "--port",
        type=int,
        default=PORT,
        help=f"port of `refdesk serve` on this machine, if PUBLIC_URL is unset (default {PORT})",
    )


def run_console(chosen: argparse.Namespace) -> int:
    """Run `refdesk console`."""
    asyncio.run(_print_link(load_settings(), chosen.port))
    return 0


@asynccontextmanager
async def _open_key_admin() -> AsyncIterator[_KeyAdmin]:
    async with connect_runtime(load_settings()) as runtime:
        if not runtime.endpoint.durable:
            raise CommandError(
                "keys require a Redis server that keeps running after this command: install "
                "redis-server, or set REDIS_URL"
            )
        client = runtime.endpoint.client()
        try:
            history = KeyHistory(runtime.settings.refdesk_data)
            yield _KeyAdmin(StoredKeys(client, history), runtime)
        finally:
            await client.aclose()


async def _create(chosen: argparse.Namespace) -> None:
    async with _open_key_admin() as admin:
        tenant = admin.runtime.settings.tenant if chosen.tenant is None else chosen.tenant
        key, token = _create_key(chosen, tenant)
        await admin.keys.put(key)
    if chosen.json:
        signing = {"person_secret": key.person_secret} if key.person_secret else {}
        say_json({"token": token, **signing, **_describe_key(key)})
        return
    print_line(token)
    sys.stderr.write(f"{key.kind} key {key.id} of tenant {key.tenant}. {SHOWN_ONCE}\n")
    if key.person_secret:
        print_line(f"secret for person tokens, shown only now: {key.person_secret}")


def _create_key(chosen: argparse.Namespace, tenant: str) -> tuple[Key, str]:
    public = chosen.public
    per_minute = chosen.per_minute
    if public and per_minute is None:
        per_minute = PUBLIC_PER_MINUTE
    try:
        return make_key(
            "public" if public else "secret",
            tenant=tenant,
            assistants=tuple(chosen.assistant),
            scopes=DEFAULT_SCOPES if chosen.scope is None else frozenset().union(*chosen.scope),
            origins=_origins(chosen.origin),
            note=chosen.note,
            requests_per_minute=per_minute,
            questions_per_day=chosen.per_day,
            groups=read_groups(chosen.groups),
            person_groups=read_groups(chosen.person_groups),
            visitor_questions_per_day=chosen.visitor_per_day,
            expires_at=None if chosen.days is None else time.time() + chosen.days * DAY_SECONDS,
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        problem = first["msg"].removeprefix("Value error, ")
        raise CommandError(f"{where}: {problem}" if where else problem) from error


def _read_scopes(text: str) -> frozenset[Scope]:
    """Return the scopes in a comma-separated argument."""
    known = [scope.value for scope in Scope]
    named = [part for part in text.split(",") if part]
    unknown = [name for name in named if name not in known]
    if unknown or not named:
        found = ", ".join(map(repr, unknown)) or repr(text)
        raise argparse.ArgumentTypeError(
            f"expected one or more of {', '.join(known)}; found {found}"
        )
    return frozenset(map(Scope, named))


def _origins(given: Sequence[str]) -> tuple[str, ...]:
    """Return the given website origins without duplicates; raises `CommandError`."""
    named = [part for text in given for part in text.split(",") if part]
    for text in named:
        as_sent = origin_in(text)
        if as_sent != text:
            instead = f"; write {as_sent}" if as_sent is not None else ""
            raise CommandError(
                f"{text!r} is not an origin as sent by browsers: scheme and host in lower case, "
                f"and a port only if it is not the default, such as https://www.acme.com{instead}"
            )
    return tuple(dict.fromkeys(named))


async def _list(chosen: argparse.Namespace) -> None:
    async with _open_key_admin() as admin:
        keys = await admin.keys.all()
    if chosen.json:
        say_json([_describe_key(key) for key in keys])
        return
    if not keys:
        print_line("there are no keys; create one with: refdesk keys create")
    for key in keys:
        print_line("  ".join(_line(key)))


async def _revoke(chosen: argparse.Namespace) -> None:
    async with _open_key_admin() as admin:
        key = await admin.keys.get(chosen.id)
        if key is None:
            raise CommandError(
                f"the key {chosen.id!r} does not exist; `refdesk keys list` shows all keys"
            )
        if key.revoked_at is None:
            key = key.model_copy(update={"revoked_at": time.time()})
            await admin.keys.put(key)
    if chosen.json:
        say_json(_describe_key(key))
        return
    print_line(f"key {key.id} is revoked")


def _describe_key(key: Key) -> dict[str, JsonValue]:
    shown: dict[str, JsonValue] = key.model_dump(mode="json", exclude={"digest", "person_secret"})
    scopes: list[JsonValue] = [scope.value for scope in sorted(key.scopes)]
    return {**shown, "scopes": scopes, "state": _state(key)}


def _state(key: Key) -> str:
    if key.revoked_at is not None:
        return "revoked"
    expired = key.expires_at is not None and key.expires_at <= time.time()
    return "expired" if expired else "good"


def _line(key: Key) -> list[str]:
    bound = ",".join(key.assistants) if key.assistants else "every assistant"
    made = time.strftime("%Y-%m-%d", time.gmtime(key.created_at))
    words = [key.id, key.kind, _state(key), made, f"{key.tenant} ({bound})"]
    words.append(",".join(sorted(key.scopes)))
    words += [f"groups: {','.join(key.groups)}"] if key.groups else []
    words += [f"groups of persons: {','.join(key.person_groups)}"] if key.person_groups else []
    return [*words, *key.origins, *([key.note] if key.note else [])]


async def _print_link(settings: Settings, port: int) -> None:
    if not settings.keeps_records:
        raise CommandError(
            "the console shows records, but RECORDS_DAYS is 0, so there are none; "
            "set RECORDS_DAYS and restart"
        )
    async with connect_runtime(settings) as runtime:
        if not runtime.endpoint.durable:
            raise CommandError(
                "this command requires the Redis server of `refdesk serve`; install "
                "redis-server, or set REDIS_URL"
            )
        client = runtime.endpoint.client()
        try:
            code = await RedisConsoleSessions(client).make_code()
        finally:
            await client.aclose()
    base = (settings.public_url or f"http://127.0.0.1:{port}").rstrip("/")
    print_line(f"{base}/console/login?code={code}")
    where = "" if settings.public_url else f" on port {port} (to change it: --port)"
    said = f"opens the console once, within ten minutes, while `refdesk serve` runs{where}\n"
    sys.stderr.write(said)
