"""Shows the entries of each role and the live workers, and controls all workers."""

import argparse
import asyncio
import textwrap
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from broker.ports import Admin, Broker
from broker.transport.cluster import ClusterClient
from broker.values import RoleStatus
from cli.arguments import add_action
from cli.printing import WIDTH, print_line, say_json
from config.settings import Settings, load_settings
from deploy.assembly.data_folder import open_source_registry
from deploy.assembly.runtime import ROLES, Runtime, connect_runtime
from deploy.errors import CommandError
from envelope.json_values import read_list
from knowledge.errors import IndexOwned, IndexUnavailable, KnowledgeError
from knowledge.source_registry import RegisteredSource
from memory.presence import LEVELS, LivingWorker, RedisControls, RedisPresence, WorkerControls

if TYPE_CHECKING:
    from knowledge.embedding_forms import VectorIdentity

NOBODY = "no worker is alive; start one with: refdesk up, or refdesk worker --role ROLE"
INDENT = "    "
OWNER_SECONDS = 3.0
"""Time limit for the process that owns the index to describe the index."""
DEFAULT_LEVEL = "default"
DRAIN_SECONDS = 180.0
"""The time limit for draining, which is longer than a question may take and than workers need to
notice the pause.
"""
LOOK_SECONDS = 0.5
LEARNED = "running workers apply the change within 15 seconds"


@dataclass(frozen=True, slots=True)
class DeskStatus:
    """The output of the command: the Redis server, the roles, and the live worker processes.

    `notes` lists limitations that reduce the quality of answers; `sources` contains the ingested
    sources in the data folder.
    """

    server: str
    roles: Sequence[RoleStatus]
    workers: Sequence[LivingWorker]
    notes: Sequence[str] = ()
    sources: Sequence[RegisteredSource] = ()


@dataclass(frozen=True, slots=True)
class _Fleet:
    """The workers on one Redis: their controls, their processes, and their queues."""

    controls: RedisControls
    presence: RedisPresence
    admin: Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk status`."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk status`."""
    status = asyncio.run(_status())
    if chosen.json:
        fields = asdict(status)
        shown = {name: fields[name] for name in ("roles", "workers", "notes")}
        say_json(
            {**shown, "sources": [source.model_dump(mode="json") for source in status.sources]}
        )
        return 0
    print_line(status.server)
    for note in status.notes:
        print_line(f"note: {note}")
    print_line(
        f"{'role':<14}{'depth':>8}{'in flight':>11}{'oldest':>10}{'dead':>6}{'consumers':>11}"
    )
    for role in status.roles:
        print_line(
            f"{role.role:<14}{role.depth:>8}{role.in_flight:>11}"
            f"{role.oldest_seconds:>9.1f}s{role.dead:>6}{role.consumers:>11}"
        )
    for line in (*worker_lines(status.workers), *source_lines(status.sources)):
        print_line(line)
    return 0


def source_lines(sources: Sequence[RegisteredSource]) -> Iterator[str]:
    """Yield the lines about the ingested sources, and why some documents could not be read."""
    if sources:
        yield from ("", "Sources")
    for source in sorted(sources, key=lambda item: item.spec.root):
        failed = f", {source.failed} failed" if source.failed else ""
        yield f"  {source.spec.root}"
        read = f"last read {_moment(source.read_at)}" if source.read_at else "not read yet"
        yield f"{INDENT}{read}{failed}"
        for reason in source.reasons:
            yield from textwrap.wrap(reason, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT)


def worker_lines(workers: Sequence[LivingWorker]) -> list[str]:
    """Return lines that list the live workers, or that explain how to start one."""
    lines = ["", "Workers"]
    if not workers:
        return [*lines, f"  {NOBODY}"]
    for worker in workers:
        lines += _describe_worker(worker)
    return lines


def describe_controls(controls: WorkerControls) -> Iterator[str]:
    """Yield a line for each setting that operators have changed in running workers."""
    if controls.paused:
        roles = (
            "every role" if set(ROLES) <= controls.paused else ", ".join(sorted(controls.paused))
        )
        yield f"paused: {roles}; resume with: refdesk workers resume"
    if controls.level:
        yield f"log level {controls.level}, set by refdesk workers level"


async def find_notes(settings: Settings, broker: Broker) -> list[str]:
    """Return notes for the operator about the index, from the process that owns it."""
    # Imports the search, which most commands never need.
    from deploy.assembly.ingestion_run import find_replacement_notes
    from deploy.assembly.knowledge import make_embedder, open_index
    from knowledge.calibration.calibrating import find_notes as find_notes_on_index

    embedder = make_embedder(settings)
    try:
        index = await open_index(settings, embedder)
    except IndexOwned:
        notes, vectors = await _ask_owner_for_notes(broker, settings.assistant_key)
        if vectors is None:
            return notes
        return [*notes, *(await find_replacement_notes(settings, vectors))]
    except KnowledgeError as error:
        return [str(error)]
    try:
        notes = [f"{source}: {reason}" for source, reason in await find_notes_on_index(index)]
        serving = (await index.info()).vectors
    finally:
        await index.close()
    return [*notes, *(await find_replacement_notes(settings, serving))]


async def describe_server(runtime: Runtime) -> str:
    """Return a line that states which Redis server is used, and whether its data is persistent."""
    if runtime.endpoint.played is not None:
        return "Redis is simulated inside this process; its data is lost when the process ends"
    client = runtime.endpoint.client()
    try:
        node = (await client.nodes())[0] if isinstance(client, ClusterClient) else client
        info = await node.info("server")
    finally:
        await client.aclose()
    is_own = runtime.settings.redis_url is None
    owner = "of the data folder, with data stored on disk" if is_own else "at REDIS_URL"
    valkey = info.get("valkey_version")
    server = f"Redis {info['redis_version']}" if valkey is None else f"Valkey {valkey}"
    return f"{server} {owner}"


def add_workers_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk workers`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    pause = add_action(actions, "pause", "stop workers from taking further entries of some roles")
    pause.add_argument("roles", nargs="+", choices=ROLES, metavar="ROLE", help=", ".join(ROLES))
    resume = add_action(actions, "resume", "let workers take entries of some roles again")
    resume.add_argument("roles", nargs="*", metavar="ROLE", help="paused roles (default: all)")
    drain = add_action(actions, "drain", "pause every role, and wait until no entry is running")
    drain.add_argument(
        "--timeout", type=float, default=DRAIN_SECONDS, metavar="SECONDS", help="default 180"
    )
    level = add_action(actions, "level", "set the log level of running workers")
    level.add_argument(
        "level",
        choices=(*LEVELS, DEFAULT_LEVEL),
        help=f"log level; `{DEFAULT_LEVEL}` restores the value of LOG_LEVEL",
    )
    add_action(actions, "reload-prompts", "make running workers reload their prompts")


def run_workers(chosen: argparse.Namespace) -> int:
    """Run `refdesk workers`."""
    asyncio.run(_act(chosen))
    return 0


def _describe_worker(worker: LivingWorker) -> Iterator[str]:
    """Yield the lines about a worker; a long host name gets a separate line."""
    every = set(ROLES) <= set(worker.roles)
    more = [role for role in worker.roles if role not in ROLES]
    roles = ", ".join(["every role", *more] if every else worker.roles)
    yield from textwrap.wrap(
        f"{worker.host}, pid {worker.pid}", WIDTH, initial_indent="  ", subsequent_indent=INDENT
    )
    yield f"{INDENT}since {_moment(worker.started_at)}, last seen {_moment(worker.seen_at)}"
    lines = [f"roles: {roles}"]
    lines += [f"paused: {', '.join(worker.paused)}"] if worker.paused else []
    for line in lines:
        yield from textwrap.wrap(line, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


async def _status() -> DeskStatus:
    settings = load_settings()
    async with connect_runtime(settings) as runtime:
        server = await describe_server(runtime)
        roles = await runtime.broker.admin.read_status(ROLES)
        client = runtime.endpoint.client()
        try:
            workers = await RedisPresence(client).living()
            controls = await RedisControls(client).read()
        finally:
            await client.aclose()
        notes = [*(await find_notes(settings, runtime.broker)), *describe_controls(controls)]
        sources = open_source_registry(settings.data_place).read().sources
        return DeskStatus(server, list(roles), workers, notes, sources)


async def _ask_owner_for_notes(
    broker: Broker, assistant_key: tuple[str, str]
) -> tuple[list[str], "VectorIdentity | None"]:
    """Return the notes from the process that owns the index, and the identity of its vectors.

    If it does not respond in time, a note states this.
    """
    from deploy.assembly.ingestion_run import read_vectors
    from gateway.documents.index_owner import ask_owner
    from knowledge.owner_requests import OwnerRequest

    try:
        async with asyncio.timeout(OWNER_SECONDS):
            reply = await ask_owner(broker, assistant_key, OwnerRequest(action="check").encode())
    except (IndexUnavailable, TimeoutError):
        return [
            "the process that owns the index did not answer in time, so it is unknown whether "
            "its embedding model is calibrated; try again"
        ], None
    notes = [": ".join(map(str, read_list(pair))) for pair in read_list(reply.get("notes"))]
    return notes, read_vectors(reply.get("vectors"))


async def _act(chosen: argparse.Namespace) -> None:
    async with _open_fleet() as fleet:
        match chosen.action:
            case "pause":
                await fleet.controls.pause(chosen.roles)
                print_line(f"paused: {', '.join(chosen.roles)}; {LEARNED}")
            case "resume":
                await _resume(fleet, chosen.roles)
            case "drain":
                await fleet.controls.pause(ROLES)
                print_line(f"every role is paused; {LEARNED}")
                await _wait_until_drained(fleet, chosen.timeout)
                print_line("no entry is running; resume with: refdesk workers resume")
            case "level":
                level = "" if chosen.level == DEFAULT_LEVEL else chosen.level
                await fleet.controls.set_level(level)
                print_line(f"log level: {chosen.level}; {LEARNED}")
            case _:
                await fleet.controls.reload_prompts()
                print_line(f"prompts will be read again; {LEARNED} and log prompts_reloaded")


async def _resume(fleet: _Fleet, roles: Collection[str]) -> None:
    paused = (await fleet.controls.read()).paused
    unknown = sorted(set(roles) - paused)
    if unknown or not paused:
        found = ", ".join(unknown) if unknown else "none"
        expected = ", ".join(sorted(paused)) or "no role is paused"
        raise CommandError(f"expected paused roles ({expected}), found {found}")
    await fleet.controls.resume(roles or paused)
    print_line(f"resumed: {', '.join(sorted(roles or paused))}; {LEARNED}")


async def _wait_until_drained(fleet: _Fleet, seconds: float) -> None:
    """Wait until every worker is paused and idle; raises `CommandError` after the timeout."""
    running = 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                workers = await fleet.presence.living()
                running = sum(status.in_flight for status in await fleet.admin.read_status(ROLES))
                if not running and all(map(_takes_nothing, workers)):
                    return
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError as error:
        raise CommandError(
            f"entries are still running after {seconds:g} s: {running}. The roles stay paused; "
            f"see: refdesk status"
        ) from error


def _takes_nothing(worker: LivingWorker) -> bool:
    return set(worker.roles) & set(ROLES) <= set(worker.paused)


@asynccontextmanager
async def _open_fleet() -> AsyncIterator[_Fleet]:
    async with connect_runtime(load_settings()) as runtime:
        client = runtime.endpoint.client()
        try:
            yield _Fleet(RedisControls(client), RedisPresence(client), runtime.broker.admin)
        finally:
            await client.aclose()
