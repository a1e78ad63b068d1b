"""Lists webhook events that could not be delivered, resends them, or drops them."""

import argparse
import asyncio
from datetime import UTC, datetime

from cli.printing import print_line, say_json
from config.settings import Settings, load_settings
from deploy.assembly.runtime import connect_runtime
from memory.webhook_queue import RedisWebhookQueue

ACTIONS = {
    "list": "list events that could not be delivered, with their last errors",
    "retry": "send all undeliverable events again",
    "drop": "delete all undeliverable events",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk webhooks`."""
    parser.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=[*ACTIONS],
        help="; ".join(f"{name}: {purpose}" for name, purpose in ACTIONS.items()),
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk webhooks`."""
    return asyncio.run(_act(load_settings(), chosen.action, as_json=chosen.json))


async def _act(settings: Settings, action: str, *, as_json: bool) -> int:
    async with connect_runtime(settings) as runtime:
        client = runtime.endpoint.client()
        try:
            queue = RedisWebhookQueue(client)
            if action == "drop":
                print_line(f"dropped {await queue.drop_dead()} events")
            elif action == "retry":
                print_line(f"sending {await _retry(queue)} events again")
            else:
                await _list(queue, as_json=as_json)
        finally:
            await client.aclose()
    return 0


async def _retry(queue: RedisWebhookQueue) -> int:
    dead = await queue.list_dead()
    for delivery in dead:
        await queue.revive(delivery)
    return len(dead)


async def _list(queue: RedisWebhookQueue, *, as_json: bool) -> None:
    dead, waiting = await queue.list_dead(), await queue.count_waiting()
    if as_json:
        say_json(
            {"waiting": waiting, "dead": [delivery.model_dump(mode="json") for delivery in dead]}
        )
        return
    print_line(f"{waiting} events wait; {len(dead)} were given up")
    for delivery in dead:
        at = f"{datetime.fromtimestamp(delivery.at, UTC):%Y-%m-%d %H:%M} UTC"
        print_line(
            f"{at}  {delivery.kind}  {delivery.endpoint}  {delivery.event_id}  {delivery.error}"
        )
