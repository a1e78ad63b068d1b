"""Lists gaps in the documents, or sets the state of a gap."""

import argparse
import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cli.printing import print_line
from config.settings import Settings, load_settings
from deploy.assembly.open_records import connect_records, finding_gaps
from deploy.assembly.recording import record_waiting
from deploy.assembly.runtime import connect_runtime
from deploy.errors import CommandError

if TYPE_CHECKING:
    from records.gaps import Gap, GapFinder

EXIT_NOTHING_FOUND = 3
LIST = "list"
ACTIONS = (LIST, "open", "writing", "done")
_SHOWN = 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk gaps`."""
    parser.add_argument(
        "action",
        nargs="?",
        choices=ACTIONS,
        default=LIST,
        help="list: list gaps, the largest first (default); a state: set the state of the gap "
        "with this ID",
    )
    parser.add_argument("id", nargs="?", help="id of a gap, as `list` prints it")
    parser.add_argument("--assistant", help="the assistant (default: the setting ASSISTANT)")
    parser.add_argument("--state", choices=ACTIONS[1:], help="list only gaps of this state")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="print JSON")
    forms.add_argument("--csv", action="store_true", help="print CSV")


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk gaps`."""
    if (chosen.action == LIST) != (chosen.id is None):
        raise CommandError("use `refdesk gaps`, or `refdesk gaps STATE ID` with the id of a gap")
    settings = load_settings()
    if not settings.keeps_records:
        raise CommandError(
            "gaps are found in the records, but RECORDS_DAYS is 0, so there are "
            "none; set RECORDS_DAYS"
        )
    return asyncio.run(_act(settings, chosen))


async def _act(settings: Settings, chosen: argparse.Namespace) -> int:
    name = (settings.tenant, chosen.assistant or settings.assistant)
    store = connect_records(settings.records_url, settings.refdesk_data)
    try:
        await asyncio.to_thread(store.prepare)
        async with connect_runtime(settings) as runtime:
            await record_waiting(runtime)
        async with finding_gaps(settings, store) as finder:
            if chosen.action == LIST:
                return await _list(finder, name, chosen)
            if not await asyncio.to_thread(finder.set_state, name, chosen.id, chosen.action):
                raise CommandError(
                    f"the gap {chosen.id!r} does not exist; `refdesk gaps` shows the ids"
                )
    finally:
        await asyncio.to_thread(store.close)
    print_line(f"set the state of the gap {chosen.id} to {chosen.action}")
    return 0


async def _list(finder: "GapFinder", name: tuple[str, str], chosen: argparse.Namespace) -> int:
    from gateway.console.gap_export import write_csv, write_json

    gaps = [gap for gap in await finder.find(name) if chosen.state in (None, gap.state)]
    if chosen.json or chosen.csv:
        print_line((write_json if chosen.json else write_csv)(gaps).decode().rstrip())
    else:
        for line in _describe(gaps):
            print_line(line)
    return 0 if gaps else EXIT_NOTHING_FOUND


def _describe(gaps: Sequence["Gap"]) -> list[str]:
    if not gaps:
        return ["there are no gaps: no question was refused, left without an answer, or rated down"]
    lines = []
    for gap in gaps[:_SHOWN]:
        grows = ", grows" if gap.grows else ""
        reasons = ", ".join(f"{count} {why}" for why, count in gap.reasons.items())
        lines.append(f"{gap.id}  {gap.size:>4}  {gap.state:<8} {gap.title[:80]}")
        lines.append(f"    {reasons}; {gap.last_week} in 7 days{grows}")
    left = len(gaps) - _SHOWN
    return [*lines, *([f"and {left} smaller gaps; --csv or --json prints all"] if left > 0 else [])]
