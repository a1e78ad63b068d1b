"""Shows the outcomes of an assistant's swarms, or deletes them."""

import argparse
import asyncio
import textwrap
from collections.abc import Callable, Coroutine, Iterator
from typing import TypeVar

from agents.swarm.learning import (
    OutcomeHistory,
    QuestionKind,
    advise,
    describe_memory,
    read_history,
)
from cli.arguments import add_action
from cli.printing import WIDTH, print_line, say_json
from config.settings import Settings, load_settings
from deploy.assembly.runtime import connect_runtime
from memory.learned_outcomes import RedisOutcomeLog

_CHOICE_WIDTH = 30
T = TypeVar("T")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk swarm`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    stats = _add_action(actions, "stats", "show how strategies and numbers of workers performed")
    stats.add_argument("--json", action="store_true", help="print JSON")
    _add_action(actions, "reset", "delete the outcomes of an assistant")


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk swarm`."""
    settings = load_settings()
    tenant = settings.tenant if chosen.tenant is None else chosen.tenant
    assistant = settings.assistant if chosen.assistant is None else chosen.assistant
    if chosen.action == "reset":
        asyncio.run(_with_log(settings, lambda log: log.forget(tenant, assistant)))
        print_line(f"deleted the outcomes of {tenant}/{assistant}")
        return 0
    history = read_history(
        asyncio.run(_with_log(settings, lambda log: log.load(tenant, assistant)))
    )
    if chosen.json:
        say_json(
            {
                "tenant": tenant,
                "assistant": assistant,
                "is_on": settings.swarm_learning,
                "outcomes": history.outcomes,
                "thumbs": history.thumbs,
                "unreadable": history.unreadable,
                "choices": describe_memory(history.memory),
                "advice": _list_advice(history),
            }
        )
        return 0
    for line in format_stats(f"{tenant}/{assistant}", history, is_on=settings.swarm_learning):
        print_line(line)
    return 0


def format_stats(name: str, history: OutcomeHistory, *, is_on: bool) -> Iterator[str]:
    """Yield the lines of `refdesk swarm stats`, each of at most 80 columns."""
    state = "" if is_on else "; SWARM_LEARNING is off: outcomes are not used"
    counted = f"{history.outcomes} outcomes, {history.thumbs} rated{state}"
    yield from textwrap.wrap(f"{name}: {counted}", WIDTH)
    if history.unreadable:
        yield f"{history.unreadable} outcomes of another version are left out"
    if not history.outcomes:
        return
    yield ""
    yield f"{'question':<12}{'choice':<{_CHOICE_WIDTH}}{'outcomes':>9}{'value':>9}{'error':>9}"
    for row in describe_memory(history.memory):
        choice = textwrap.shorten(str(row["choice"]), _CHOICE_WIDTH - 1, placeholder="…")
        yield (
            f"{row['kind']:<12}{choice:<{_CHOICE_WIDTH}}{row['outcomes']:>9}"
            f"{row['mean']:>9.3f}{row['error']:>9.3f}"
        )
    advice = _list_advice(history)
    yield ""
    yield from textwrap.wrap(
        "value: 0 to 1, from the judge's score, ratings, cost and time; recent outcomes count "
        "more. A choice is recommended if it did better than chance explains:",
        WIDTH,
    )
    yield from (f"  {reason}" for one in advice.values() for reason in one)
    if not advice:
        yield "  none yet"


def _add_action(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, purpose: str
) -> argparse.ArgumentParser:
    parser = add_action(actions, name, purpose)
    parser.add_argument("--tenant", help="tenant (default: the setting TENANT)")
    parser.add_argument("--assistant", help="assistant (default: the setting ASSISTANT)")
    return parser


def _list_advice(history: OutcomeHistory) -> dict[str, list[str]]:
    found = {kind.value: list(advise(history.memory, kind)) for kind in QuestionKind}
    return {kind: reasons for kind, reasons in found.items() if reasons}


async def _with_log(
    settings: Settings, use: Callable[[RedisOutcomeLog], Coroutine[None, None, T]]
) -> T:
    async with connect_runtime(settings) as runtime:
        client = runtime.endpoint.client()
        try:
            return await use(RedisOutcomeLog(client, shards=settings.shards))
        finally:
            await client.aclose()
