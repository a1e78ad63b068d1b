"""Serves the HTTP API and the widget, until SIGTERM."""

import argparse
import asyncio
import ipaddress
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from cli.model_in_use import describe_models
from cli.printing import print_line
from config.settings import Settings, load_settings
from deploy.assembly.assistant_prompts import TASK_OF_ROLE
from deploy.assembly.gateways.listening import limits_of, serve_probes
from deploy.assembly.job_reports import publishing_jobs
from deploy.assembly.model_choice import vendor_access
from deploy.assembly.models import check_keys
from deploy.assembly.observing import observing
from deploy.assembly.recording import recording
from deploy.assembly.runtime import (
    Runtime,
    connect_runtime,
    make_meter,
    run_desk,
    run_maintenance,
)
from deploy.assembly.webhooks import sending_webhooks
from worker.process import collect_rarely
from worker.shutdown import GracePeriod, stop_on_signals

if TYPE_CHECKING:
    from worker.metrics import PrometheusMeter

PORT = 8000
LOCAL = "127.0.0.1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk serve`."""
    parser.add_argument("--port", type=int, default=PORT, help=f"port (default {PORT}; 0: any)")
    parser.add_argument(
        "--host",
        default=LOCAL,
        help=f"address to listen on (default {LOCAL}: only local connections)",
    )
    parser.add_argument(
        "--gateway-only",
        action="store_true",
        help="do not run agents in this process; `refdesk up` or `refdesk worker` must use the "
        "same Redis",
    )


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk serve`."""
    asyncio.run(_serve(load_settings(), chosen.host, chosen.port, alone=chosen.gateway_only))
    return 0


@asynccontextmanager
async def answering(
    settings: Settings,
    *,
    alone: bool,
    grace: GracePeriod | None = None,
    records: bool = False,
    meter: "PrometheusMeter | None" = None,
) -> AsyncIterator[Runtime]:
    """Provide a runtime whose questions are answered by this process or, if `alone` is true, by
    workers on the same Redis. This process also writes the records and sends webhooks if `records`
    is true, if Redis belongs to the data folder, or if `RECORDS_URL` refers to a database, which
    all processes share. `meter` counts the work of this process and the finished questions.
    """
    grace = GracePeriod() if grace is None else grace
    async with AsyncExitStack() as stack:
        if alone:
            runtime = await stack.enter_async_context(connect_runtime(settings))
            await stack.enter_async_context(run_maintenance(runtime))
        else:
            runtime = await stack.enter_async_context(
                run_desk(settings, empty=True, meter=meter, grace=grace)
            )
        if records or settings.redis_url is None or settings.records_url is not None:
            await stack.enter_async_context(recording(runtime))
            await stack.enter_async_context(sending_webhooks(runtime))
        registry = None if meter is None else meter.registry
        await stack.enter_async_context(observing(runtime.broker, settings, registry, runtime.jobs))
        await stack.enter_async_context(publishing_jobs(runtime.endpoint, runtime.jobs))
        yield runtime


def why_keys(
    host: str, *, require_keys: bool, public_url: str | None, trusted_proxies: Sequence[str]
) -> str:
    """Return the reason why requests require a key even before one has been created, or "" if they
    do not.
    """
    reasons = {
        "REQUIRE_KEYS is set": require_keys,
        "PUBLIC_URL is set, so other machines can connect": public_url is not None,
        "TRUSTED_PROXIES is set, so other machines can connect": bool(trusted_proxies),
        "other machines can connect to this address": not is_local(host),
    }
    return next((reason for reason, is_true in reasons.items() if is_true), "")


def is_local(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _serve(settings: Settings, host: str, port: int, *, alone: bool) -> None:
    from deploy.assembly.gateways.http_gateway import open_http_app
    from gateway.connections.server import listening, serving

    stop = asyncio.Event()
    collect_rarely()
    async with AsyncExitStack() as stack:
        # The port is bound first, so that a port that is in use is reported immediately.
        listener = listening(host, port)
        stack.callback(listener.close)
        grace = await stack.enter_async_context(stop_on_signals(stop))
        if not alone:
            await check_keys(vendor_access(settings), map(settings.model_of, TASK_OF_ROLE.values()))
        meter = make_meter()
        runtime = await stack.enter_async_context(
            answering(settings, alone=alone, grace=grace, records=True, meter=meter)
        )
        stopping = asyncio.Event()
        reason = why_keys(
            host,
            require_keys=settings.require_keys,
            public_url=settings.public_url,
            trusted_proxies=settings.trusted_proxies,
        )
        app = await stack.enter_async_context(
            open_http_app(
                runtime,
                stopping,
                registry=meter.registry,
                keyless=not reason,
            )
        )
        await stack.enter_async_context(serve_probes(runtime, meter.registry))
        proxies, limits = settings.trusted_proxies, limits_of(settings)
        await stack.enter_async_context(
            serving(app, listener, stopping, trusted_proxies=proxies, limits=limits)
        )
        if not alone:
            from deploy.assembly.source_refresh import refresh

            await stack.enter_async_context(refresh(runtime, None))
        for line in await _startup_lines(runtime, host, listener.getsockname()[1], reason=reason):
            print_line(line)
        sys.stdout.flush()
        await stop.wait()
        print_line("stopping: finishing running work")
        sys.stdout.flush()


async def _startup_lines(runtime: Runtime, host: str, port: int, *, reason: str) -> list[str]:
    from cli.commands.status import describe_server
    from gateway.api_keys import KeyHistory, StoredKeys

    shown = f"[{host}]" if ":" in host else host
    lines = [f"serving on http://{shown}:{port}; stop with Ctrl-C"]
    client = runtime.endpoint.client()
    try:
        keyed = await StoredKeys(client).any()
    finally:
        await client.aclose()
    history = KeyHistory(runtime.settings.refdesk_data)
    if keyed:
        lines.append("every request requires a key; see: refdesk keys list")
    elif history.has_keys:
        lines.append(
            "every request requires a key, and Redis has lost all keys; create new ones "
            "with: refdesk keys create"
        )
    elif not reason:
        lines.append("no key is required, because no key exists and only this machine can connect")
    else:
        lines.append(
            f"every request requires a key ({reason}), and no key exists; create one with: refdesk "
            f"keys create"
        )
    lines.append(await describe_server(runtime))
    lines.append(describe_models(runtime.settings))
    return lines
