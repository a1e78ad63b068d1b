"""Runs a long simulation: `python -m tests.simulation --interleavings 1000000 --seed 1`."""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from tests.simulation.exploration import BrokenPromiseError, Tally, interleave
from tests.simulation.pause_moves import make_play
from tests.simulation.scenarios import SMALL
from tests.simulation.simulated_redis import SimulatedClock, simulate
from tests.simulation.state_graph import Visited, visit

PER_TASK = 1000
PAGE = Path(__file__).parents[2] / "docs" / "internal" / "measurements" / "simulation.md"


def main() -> int:
    """Return 0 when every promise held, else 1."""
    options = _options()
    began = time.monotonic()
    tally = Tally()
    try:
        for part in _explore(options.seed, options.interleavings, options.processes):
            tally.add(part)
            _print_progress(f"{tally.interleavings} interleavings, {tally.moves} steps", began)
        graphs = {name: _visit(name) for name in SMALL} if options.graphs else {}
    except BrokenPromiseError as broken:
        _print_progress(f"BROKEN: {broken}", began)
        return 1
    _print_progress(f"all guarantees held; {dict(tally.seen)}", began)
    if options.write:
        text = page(tally, graphs, options.seed, options.processes, time.monotonic() - began)
        options.write.write_text(text, "utf-8")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument(
        "--interleavings",
        type=int,
        default=1_000_000,
        help="the number of interleavings to execute",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--graphs", action="store_true", help="also explore the small scenarios completely"
    )
    parser.add_argument(
        "--write", type=Path, nargs="?", const=PAGE, help="write the results to this page"
    )
    return parser.parse_args()


def _explore(seed: int, interleavings: int, processes: int) -> Iterator[Tally]:
    """Share the work among processes; raises `BrokenPromiseError` as soon as one is found."""
    shares = [
        (f"{seed}.{place}", min(PER_TASK, interleavings - place))
        for place in range(0, interleavings, PER_TASK)
    ]
    with ProcessPoolExecutor(processes) as pool:
        running = [pool.submit(interleave, name, share) for name, share in shares]
        try:
            for done in as_completed(running):
                yield done.result()
        except BrokenPromiseError:
            pool.shutdown(cancel_futures=True)
            raise


def _visit(name: str) -> Visited:
    clock = SimulatedClock()
    with simulate(clock):
        return visit(make_play(SMALL[name], clock))


def _print_progress(what: str, began: float) -> None:
    sys.stdout.write(f"{time.monotonic() - began:8.0f} s  {what}\n")
    sys.stdout.flush()


HEAD = """# The broker under a simulated clock

Written by `python -m tests.simulation --seed {seed} --interleavings {asked} --graphs --write`;
every figure comes from that run. The scripts of the broker run on fakeredis, whose clock is
controlled by the simulation. Two workers, one or two managers, sweepers, timers and the client are
interleaved in any order, between any two round trips; workers crash, sleep past their leases, and
wake up late. In half of the scenarios the client passes submissions directly to a manager, whose
notification may be lost; in two of five, frames are long and sent as deltas. After every step, the
reply and the complete content of Redis are compared with a reference model in plain Python, and
checked against the guarantees (one location for each open question, one outcome, order within a
conversation, counts on submission). The run stops at the first difference or violation, without
writing a page.

## Executed interleavings

Each interleaving was executed from its first step to its end; all interleavings of a scenario
differ. A common beginning was executed once and then restored, so fewer steps were executed than
the interleavings contain in total.
"""

GRAPHS = """
## Complete state graphs

In these small scenarios, every state was reached, and every step out of every state was executed
once. The interleavings are the paths through these states; they were counted exactly, not executed
individually.

| scenario | states | executed steps | interleavings | steps of the longest interleaving |
|---|---:|---:|---:|---:|
"""


def page(
    tally: Tally, graphs: Mapping[str, Visited], seed: int, processes: int, seconds: float
) -> str:
    """Return the page in Markdown."""
    rows = {
        "executed interleavings": tally.interleavings,
        "total steps of these interleavings": tally.lengths,
        "executed steps": tally.moves,
        "steps of the longest interleaving": tally.longest,
        "scenarios, each derived from a seed": tally.scenarios,
        "final states without remaining entries after all deadlines": tally.drained,
        **{label: tally.seen[event] for event, label in _EVENTS.items()},
        f"seconds, with {processes} processes": round(seconds),
    }
    text = HEAD.format(seed=seed, asked=tally.interleavings)
    text += "\n| figure | count |\n|---|---:|\n"
    text += "".join(f"| {what} | {count:,} |\n" for what, count in rows.items())
    if graphs:
        text += GRAPHS + "".join(_row(name, visited) for name, visited in graphs.items())
    return text


_EVENTS = {
    "accepted": "messages accepted",
    "duplicate": "messages duplicate",
    "merged": "messages merged",
    "busy": "messages busy",
    "handed over on submission": "passed directly to a manager on submission",
    "settled": "settlements",
    "late, refused": "late results, rejected",
    "taken back": "entries recovered",
    "poison buried": "poison entries buried",
    "ended at the deadline": "questions ended at their deadline",
    "compared with the model": "comparisons with the model",
    "held to every promise": "checks of all guarantees",
}
"""The labels of the page, by event of the tally."""


def _row(name: str, visited: Visited) -> str:
    counts = (visited.states, visited.moves, visited.interleavings, visited.longest)
    return f"| {name} | " + " | ".join(f"{count:,}" for count in counts) + " |\n"


if __name__ == "__main__":
    sys.exit(main())
