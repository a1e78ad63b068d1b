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
            _print_progress(f"{tally.interleavings} interleavings, {tally.moves} moves", began)
        graphs = {name: _visit(name) for name in SMALL} if options.graphs else {}
    except BrokenPromiseError as broken:
        _print_progress(f"BROKEN: {broken}", began)
        return 1
    _print_progress(f"all promises held; {dict(tally.seen)}", began)
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


if __name__ == "__main__":
    sys.exit(main())


HEAD = """# The broker under a simulated clock

Written by `python -m tests.simulation --seed {seed} --interleavings {asked} --graphs --write`;
every figure is of that run. The scripts are the broker's own, on fakeredis, whose clock moves only
when the simulation says so. Two workers, one or two managers, sweepers, timers and the client take
their turns in any order, between any two round trips; workers crash, sleep past their leases and
wake late. In half of the scenarios the client hands what it submits to a manager, which may not be
notified; in two of five frames are long and travel in part. After every single move the answer and
all that Redis holds are compared with a reference model in plain Python, and held to the promises
(one place for each open question, one outcome, order in a conversation, counts on submission). The
first difference, or the first promise that does not hold, ends the run: then no page is written.

## Made for real

Each interleaving was made from its first move to its end; no two of a scenario are the same. What
several have in common at the beginning was made once and put back, so that there are fewer moves
than the lengths of all interleavings together.
"""

GRAPHS = """
## Visited whole

Small scenarios of which every state was reached and every move out of every state was made once.
The interleavings are the ways through these states: counted exactly, not walked one by one.

| scenario | states | moves made | interleavings through them | moves of the longest |
|---|---:|---:|---:|---:|
"""


def page(
    tally: Tally, graphs: Mapping[str, Visited], seed: int, processes: int, seconds: float
) -> str:
    """Return the page in Markdown."""
    rows = {
        "interleavings, made for real": tally.interleavings,
        "their lengths together, in moves": tally.lengths,
        "moves made": tally.moves,
        "longest interleaving, in moves": tally.longest,
        "scenarios, each drawn by its seed": tally.scenarios,
        "ends after which every deadline passed and nothing was left over": tally.drained,
        **{
            f"messages {what}" if what in _SUBMISSIONS else what: tally.seen[what]
            for what in _EVENTS
        },
        f"seconds, with {processes} processes": round(seconds),
    }
    text = HEAD.format(seed=seed, asked=tally.interleavings)
    text += "\n| what | count |\n|---|---:|\n"
    text += "".join(f"| {what} | {count:,} |\n" for what, count in rows.items())
    if graphs:
        text += GRAPHS + "".join(_row(name, visited) for name, visited in graphs.items())
    return text


_SUBMISSIONS = ("accepted", "duplicate", "merged", "busy")
_EVENTS = (
    *_SUBMISSIONS, "handed over on submission", "settled", "late, refused", "taken back",
    "poison buried", "ended at the deadline", "compared with the model", "held to every promise",
)  # fmt: skip


def _row(name: str, visited: Visited) -> str:
    counts = (visited.states, visited.moves, visited.interleavings, visited.longest)
    return f"| {name} | " + " | ".join(f"{count:,}" for count in counts) + " |\n"
