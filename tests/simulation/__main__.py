"""Runs a long simulation: `python -m tests.simulation --interleavings 1000000 --seed 1`."""

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from tests.simulation.clock import SimulatedClock, simulate
from tests.simulation.exploration import BrokenPromiseError, Tally, interleave
from tests.simulation.pause_moves import make_play
from tests.simulation.report import page
from tests.simulation.scenarios import SMALL
from tests.simulation.state_graph import Visited, visit

PER_TASK = 1000
PAGE = Path(__file__).parents[2] / "docs" / "measurements" / "simulation.md"


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
