"""Answers questions on Telegram until SIGTERM, by webhook if TELEGRAM_WEBHOOK_URL is set, otherwise
by polling.
"""

import argparse
import asyncio
import re
import sys
from contextlib import AsyncExitStack

from pydantic import SecretStr

from cli.commands.serve import answering
from cli.printing import print_line
from config.settings import Settings, load_settings
from deploy.assembly.gateways.listening import add_place, limits_of, require_secret, serve_app
from deploy.assembly.observing import needs_meter
from deploy.assembly.runtime import make_meter
from deploy.errors import CommandError
from worker.process import collect_rarely
from worker.shutdown import stop_on_signals

PORT = 8443
_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}", re.ASCII)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk telegram`."""
    add_place(parser, PORT)


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk telegram`."""
    asyncio.run(_serve(load_settings(), chosen))
    return 0


async def _serve(settings: Settings, chosen: argparse.Namespace) -> None:
    token = require_secret(settings.telegram_bot_token, "TELEGRAM_BOT_TOKEN", "the bot's token")
    secret = _webhook_secret(settings.telegram_webhook_url, settings.telegram_webhook_secret)
    try:
        from gateway.telegram.bot_api import RATES, TelegramCalls
        from gateway.telegram.channel import TelegramChannel
        from gateway.telegram.connection import Webhook, connect_bot, make_bot, receive_updates
        from gateway.telegram.updates import TelegramAudience
    except ImportError as error:
        raise CommandError(
            "Telegram requires a package: pip install '.[telegram]' in the checkout"
        ) from error
    from deploy.assembly.gateways.chat_gateways import duty_of, run_chat_channel, turns_of
    from gateway.chat.platform_calls import Pacer

    stop = asyncio.Event()
    collect_rarely()
    async with AsyncExitStack() as stack:
        grace = await stack.enter_async_context(stop_on_signals(stop))
        bot = make_bot(token, url=settings.telegram_api_url)
        me = await stack.enter_async_context(connect_bot(bot))
        meter = (
            make_meter()
            if needs_meter(settings.otel_exporter_otlp_endpoint, settings.health_port)
            else None
        )
        post = await stack.enter_async_context(
            answering(settings, alone=chosen.gateway_only, grace=grace, meter=meter)
        )
        turns = await stack.enter_async_context(turns_of(post, "telegram"))
        calls = TelegramCalls(bot, Pacer(turns, RATES))
        channel = await stack.enter_async_context(
            run_chat_channel(
                post,
                lambda texts: TelegramChannel(calls, texts),
                secret=token,
                registry=None if meter is None else meter.registry,
            )
        )
        url = settings.telegram_webhook_url
        how = (
            await stack.enter_async_context(duty_of(post, "telegram", "polling"))
            if url is None
            else Webhook(url, secret)
        )
        audience = TelegramAudience(
            chats=frozenset(settings.telegram_allowed_chats),
            users=frozenset(settings.telegram_allowed_users),
        )
        app = await stack.enter_async_context(
            receive_updates(calls, me, channel, channel.texts, how=how, audience=audience)
        )
        if app is not None:
            await stack.enter_async_context(
                serve_app(
                    app,
                    chosen.host,
                    chosen.port,
                    trusted_proxies=settings.trusted_proxies,
                    limits=limits_of(settings),
                )
            )
        print_line(f"answering in Telegram as @{me.username}; stop with Ctrl-C")
        sys.stdout.flush()
        await stop.wait()
        print_line("stopping: unfinished answers are posted by another process or after a restart")
        sys.stdout.flush()


def _webhook_secret(url: str | None, stated: SecretStr | None) -> str:
    if url is None:
        return ""
    secret = require_secret(stated, "TELEGRAM_WEBHOOK_SECRET", "a secret for the webhook")
    if _SECRET.fullmatch(secret) is None:
        raise CommandError(
            "TELEGRAM_WEBHOOK_SECRET: expected 1 to 256 of the characters A-Z a-z 0-9 _ -"
        )
    return secret
