"""Answers on Slack, until SIGTERM: over HTTP, or in Socket Mode when SLACK_APP_TOKEN is set."""

import argparse
import asyncio
import sys
from contextlib import AsyncExitStack

from config.settings import Settings, load_settings
from deploy.command import CommandError
from deploy.commands.serve import answering
from deploy.printing import say
from deploy.serving import add_place, budget_of, required, served
from worker.process import collect_rarely
from worker.shutdown import stop_on_signals

PORT = 3000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk slack`."""
    add_place(parser, PORT)


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk slack`."""
    asyncio.run(_serve(load_settings(), chosen))
    return 0


async def _serve(settings: Settings, chosen: argparse.Namespace) -> None:
    token = required(settings.slack_bot_token, "SLACK_BOT_TOKEN", "the app's bot token")
    socket_token = settings.slack_app_token
    secret = (
        required(settings.slack_signing_secret, "SLACK_SIGNING_SECRET", "the app's signing secret")
        if socket_token is None
        else ""
    )
    try:
        from gateway.slack.app import SlackEvents, known, made_app
        from gateway.slack.audience import SlackAudience
        from gateway.slack.calls import RATES, SlackCalls
        from gateway.slack.channel import SlackChannel
        from gateway.slack.serving import PATH, made_client, slack_webhook, socket_mode
    except ImportError as error:
        raise CommandError("Slack needs: pip install '.[slack]' in the checkout") from error
    from deploy.pushing import push_door, turns_of
    from gateway.pushing.pacing import Pacer

    stop = asyncio.Event()
    collect_rarely()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(stop_on_signals(stop))
        client = made_client(token, url=settings.slack_api_url)
        me = await known(client, frozenset(settings.slack_channels))
        post = await stack.enter_async_context(answering(settings, alone=chosen.gateway_only))
        turns = await stack.enter_async_context(turns_of(post, "slack"))
        calls = SlackCalls(client, Pacer(turns, RATES))
        door = await stack.enter_async_context(
            push_door(post, lambda texts: SlackChannel(calls, texts), secret=token)
        )
        audience = SlackAudience(
            channels=frozenset(settings.slack_allowed_channels),
            users=frozenset(settings.slack_allowed_users),
            teams=frozenset(settings.slack_allowed_teams),
            external=settings.slack_external_people,
        )
        events = SlackEvents(calls, me, door, audience)
        app = made_app(client, events, signing_secret=secret)
        if socket_token is not None:
            await stack.enter_async_context(socket_mode(app, socket_token.get_secret_value()))
            say("answering on Slack in Socket Mode; stop with Ctrl-C")
        else:
            web = slack_webhook(
                app,
                signing_secret=secret,
                unavailable=door.unavailable,
                budget=budget_of(settings),
            )
            port = await stack.enter_async_context(served(web, chosen.host, chosen.port, settings))
            say(f"answering on Slack, events at port {port}{PATH}; stop with Ctrl-C")
        sys.stdout.flush()
        await stop.wait()
        say("stopping: what is not shown yet is left to another process")
        sys.stdout.flush()
