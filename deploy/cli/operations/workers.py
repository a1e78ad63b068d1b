"""Pauses and resumes roles, sets the log level, and reloads prompts, in all workers."""

import argparse
import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass

from broker.ports import Admin
from config.settings import load_settings
from deploy.assembly.runtime import ROLES, connect_runtime
from deploy.cli.arguments import format_sentence
from deploy.cli.printing import print_line
from deploy.errors import CommandError
from memory.presence import LEVELS, LivingWorker, RedisControls, RedisPresence

DEFAULT_LEVEL = "default"
DRAIN_SECONDS = 180.0
"""Longer than a question may take, and longer than workers need to notice the pause."""
LOOK_SECONDS = 0.5
LEARNED = "running workers follow within 15 seconds"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk workers`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    pause = _add_action(actions, "pause", "stop workers from taking further entries of some roles")
    pause.add_argument("roles", nargs="+", choices=ROLES, metavar="ROLE", help=", ".join(ROLES))
    resume = _add_action(actions, "resume", "let workers take entries of some roles again")
    resume.add_argument(
        "roles", nargs="*", metavar="ROLE", help="paused roles (default: all of them)"
    )
    drain = _add_action(actions, "drain", "pause every role, and wait until nothing runs")
    drain.add_argument(
        "--timeout", type=float, default=DRAIN_SECONDS, metavar="SECONDS", help="default 180"
    )
    level = _add_action(actions, "level", "set the log level of running workers")
    level.add_argument(
        "level", choices=(*LEVELS, DEFAULT_LEVEL), help=f"`{DEFAULT_LEVEL}`: that of LOG_LEVEL"
    )
    _add_action(actions, "reload-prompts", "make running workers read their prompts again")


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk workers`."""
    asyncio.run(_act(chosen))
    return 0


@dataclass(frozen=True, slots=True)
class _Fleet:
    """The workers of one Redis: their controls, their processes and their queues."""

    controls: RedisControls
    presence: RedisPresence
    admin: Admin


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
                running = sum(one.in_flight for one in await fleet.admin.read_status(ROLES))
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


def _add_action(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, purpose: str
) -> argparse.ArgumentParser:
    return actions.add_parser(name, help=purpose, description=format_sentence(purpose))
