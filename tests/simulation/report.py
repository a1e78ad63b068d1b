"""Writes what a long simulation counted."""

from collections.abc import Mapping

from tests.simulation.exploration import Tally
from tests.simulation.state_graph import Visited

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
