"""Answers questions on Slack until SIGTERM, over HTTP or, if SLACK_APP_TOKEN is set, in Socket
Mode.
"""

import argparse
import asyncio
import sys
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

from cli.commands.serve import answering
from cli.printing import print_line, say_json
from config.settings import Settings, load_settings
from deploy.assembly.gateways.listening import add_place, limits_of, require_secret, serve_app
from deploy.assembly.observing import needs_meter
from deploy.assembly.runtime import make_meter
from deploy.errors import CommandError
from worker.process import collect_rarely
from worker.shutdown import stop_on_signals

PORT = 3000
MISSING = "Slack needs: pip install '.[slack]' in the checkout"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk slack`."""
    add_place(parser, PORT)
    parser.add_argument(
        "--manifest",
        nargs="?",
        const="",
        metavar="URL",
        help="print the manifest of the Slack app and exit: for Socket Mode, or for events over "
        "HTTP with the public address of this server, such as https://desk.example.org",
    )


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk slack`."""
    if chosen.manifest is not None:
        _say_manifest(chosen.manifest)
        return 0
    asyncio.run(_serve(load_settings(), chosen))
    return 0


def _say_manifest(url: str) -> None:
    try:
        from gateway.slack.app import manifest
    except ImportError as error:
        raise CommandError(MISSING) from error
    parts = urlsplit(url)
    is_origin = parts.scheme == "https" and parts.hostname and parts.path in {"", "/"}
    if url and (not is_origin or parts.query or parts.fragment):
        raise CommandError(
            f"--manifest: expected an address such as https://desk.example.org, found {url!r}"
        )
    say_json(manifest(url or None))


async def _serve(settings: Settings, chosen: argparse.Namespace) -> None:
    token = require_secret(settings.slack_bot_token, "SLACK_BOT_TOKEN", "the app's bot token")
    socket_token = settings.slack_app_token
    secret = (
        require_secret(
            settings.slack_signing_secret, "SLACK_SIGNING_SECRET", "the app's signing secret"
        )
        if socket_token is None
        else ""
    )
    try:
        from gateway.slack.app import SlackEvents, identify, make_app
        from gateway.slack.audience import SlackAudience, SlackUserGroups
        from gateway.slack.channel import SlackChannel
        from gateway.slack.transport import PATH, make_client, slack_webhook, socket_mode
        from gateway.slack.web_api import RATES, SlackCalls
    except ImportError as error:
        raise CommandError(MISSING) from error
    from deploy.assembly.gateways.chat_gateways import run_chat_channel, turns_of
    from gateway.chat.platform_calls import Pacer

    stop = asyncio.Event()
    collect_rarely()
    async with AsyncExitStack() as stack:
        grace = await stack.enter_async_context(stop_on_signals(stop))
        client = make_client(token, url=settings.slack_api_url)
        me = await identify(client, frozenset(settings.slack_channels))
        meter = (
            make_meter()
            if needs_meter(settings.otel_exporter_otlp_endpoint, settings.health_port)
            else None
        )
        post = await stack.enter_async_context(
            answering(settings, alone=chosen.gateway_only, grace=grace, meter=meter)
        )
        turns = await stack.enter_async_context(turns_of(post, "slack"))
        calls = SlackCalls(client, Pacer(turns, RATES))
        channel = await stack.enter_async_context(
            run_chat_channel(
                post,
                lambda texts: SlackChannel(calls, texts),
                secret=token,
                make_user_groups=lambda ids: SlackUserGroups(calls, ids),
                registry=None if meter is None else meter.registry,
            )
        )
        audience = SlackAudience(
            channels=frozenset(settings.slack_allowed_channels),
            users=frozenset(settings.slack_allowed_users),
            teams=frozenset(settings.slack_allowed_teams),
        )
        events = SlackEvents(
            calls, me, channel, audience, handover_channel=settings.handover_slack_channel or ""
        )
        app = make_app(client, events, signing_secret=secret)
        if socket_token is not None:
            await stack.enter_async_context(socket_mode(app, socket_token.get_secret_value()))
            print_line("answering in Slack (Socket Mode); stop with Ctrl-C")
        else:
            web = slack_webhook(
                app,
                signing_secret=secret,
                unavailable=channel.unavailable,
            )
            port = await stack.enter_async_context(
                serve_app(
                    web,
                    chosen.host,
                    chosen.port,
                    trusted_proxies=settings.trusted_proxies,
                    limits=limits_of(settings),
                )
            )
            print_line(f"answering in Slack, events on port {port}{PATH}; stop with Ctrl-C")
        sys.stdout.flush()
        await stop.wait()
        print_line("stopping: unfinished answers are posted by another process or after a restart")
        sys.stdout.flush()
