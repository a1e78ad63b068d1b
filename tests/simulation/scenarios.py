"""The scenarios: small ones to be visited whole, and any number of drawn ones."""

import random
from dataclasses import replace

from tests.simulation.branch_moves import Branching
from tests.simulation.comparison import PROCESSES
from tests.simulation.expected_state import MANAGER, SEARCH, Rules
from tests.simulation.scenario import Scenario, ask, question

APP = {"A": SEARCH, "B": SEARCH, "M": MANAGER}
"""Two workers and a manager; the timer and the sweeper are always there."""

ORDERED = Scenario(
    submissions=(ask(question("m1"), seconds=20.0), ask(question("m2"), seconds=20.0)),
    actors=APP,
    times={"lapse": 2},
)
"""Two messages of one conversation; leases run out, and so do the deadlines."""

CANCELLED = Scenario(
    submissions=(ask(question("m1"), seconds=45.0, chat="chat"),),
    actors=APP,
    times={"lapse": 3},
    cancels=((question("m1"), False),),
)
"""A message is cancelled while workers lose their leases."""

LATE = Scenario(
    submissions=(ask(question("m1"), seconds=40.0, chat="chat"),),
    actors=APP,
    times={"crash": 1, "lapse": 1, "until_due": 1, "retry": 1},
)
"""A worker dies or sleeps past its lease, retries, and meets the deadline."""

POISON = Scenario(
    submissions=(ask(question("m1"), seconds=100.0),),
    actors=APP,
    times={"lapse": 4, "until_due": 1},
    fused=True,
)
"""Leases run out again and again."""

LONG = Scenario(
    submissions=(ask(question("m1"), seconds=45.0),),
    actors=APP,
    times={"crash": 1, "lapse": 2, "give_back": 1},
    cancels=((question("m1"), False),),
    long=True,
)
"""Frames travel in part while a worker dies, hands back, or the question is cancelled."""

HANDED = Scenario(
    submissions=(ask(question("m1"), seconds=45.0), ask(question("m1", "c2"), seconds=45.0)),
    actors={"A": SEARCH, "M": MANAGER},
    times={"crash": 1, "lapse": 1, "doze": 1, "ask_unnotified": 1, "recover": 1},
    handed=True,
)
"""The client hands over to the manager of its process; an answer gets lost, or the manager dies."""

FORGOTTEN = Scenario(
    submissions=(
        ask(question("m1"), seconds=40.0, later=5.0, chat="chat"),
        ask(question("m2"), seconds=40.0, later=5.0, chat="chat"),
    ),
    actors=APP,
    times={"until_due": 1, "lapse": 1},
    cancels=((question("m1"), True), (question("m2"), True)),
)
"""Messages merge, and are cancelled and forgotten while they wait or travel."""

BRANCHED = Scenario(
    submissions=(ask(question("m1"), seconds=40.0),),
    actors=APP,
    times={"crash": 1, "lapse": 1, "until_due": 1},
    branching=Branching(branches=2, need=1, at_once=1, seconds=20.0),
)
"""Branches whose workers die, of which one is enough, and whose join may end before them."""

WATCHED = Scenario(
    submissions=(ask(question("m1"), seconds=40.0), ask(question("m2"), seconds=40.0)),
    actors={"A": SEARCH, "M": MANAGER},
    times={"crash": 1, "lapse": 1},
    branching=Branching(branches=2, need=2, at_once=1, seconds=20.0, watches=True),
)
"""A message behind the branches of another one ends their work."""

PAUSED = Scenario(
    submissions=tuple(ask(question(name), seconds=90.0) for name in ("p1", "r2", "r3")),
    actors={"A": SEARCH, "M": MANAGER, "N": MANAGER},
    times={"crash": 1, "lapse": 1, "until_over": 1},
    cancels=((question("r2"), False),),
    pausing=True,
)
"""A pause and two replies, of which one is cancelled: a worker or a manager dies at any step, a
lease runs out, the pause expires."""

SMALL = {
    "branched": BRANCHED,
    "watched": WATCHED,
    "ordered": ORDERED,
    "cancelled": CANCELLED,
    "late": LATE,
    "poison": POISON,
    "long": LONG,
    "handed": HANDED,
    "forgotten": FORGOTTEN,
    "paused": PAUSED,
}


BRANCHES = "b"
"""Seeds that begin so draw a scenario with branches."""


WATCHES = "bw"
"""Seeds that begin so draw one whose messages are shown those that wait behind them."""


PAUSES = "p"
"""Seeds that begin so draw a scenario with pauses."""


def drawn(seed: str) -> Scenario:
    """Return the scenario of this seed."""
    if seed.startswith(PAUSES):
        return _draw_paused(seed)
    return _draw_branched(seed) if seed.startswith(BRANCHES) else _draw_plain(seed)


def _draw_paused(seed: str) -> Scenario:
    """Draw a pause, replies to it, other messages and another pause, in any order after it."""
    rng = random.Random(seed)
    later = [*rng.choices(("r", "r", "r", "t", "p"), k=rng.randrange(1, 5))]
    names = [f"{kind}{number}" for number, kind in enumerate(("p", *later), 1)]
    return Scenario(
        submissions=tuple(
            ask(question(name), seconds=rng.choice((20.0, 40.0, 100.0))) for name in names
        ),
        actors={"A": SEARCH, "M": MANAGER, "N": MANAGER},
        times={
            "crash": rng.randrange(3),
            "lapse": rng.randrange(4),
            "doze": rng.randrange(2),
            "until_due": rng.randrange(3),
            "until_over": rng.randrange(2),
            "renew": rng.randrange(2),
            "give_back": rng.randrange(2),
            "retry": rng.randrange(2),
            "sweep_early": rng.randrange(2),
        },
        cancels=tuple((question(name), False) for name in names[1:] if rng.random() < 0.4),
        fused=rng.random() < 0.5,
        long=rng.random() < 0.3,
        pausing=True,
    )


def _draw_branched(seed: str) -> Scenario:
    rng = random.Random(seed)
    branches = rng.randrange(1, 4)
    branching = Branching(
        branches=branches,
        need=rng.choice((branches, branches, rng.randrange(1, branches + 1))),
        at_once=rng.randrange(1, branches + 1),
        seconds=rng.choice((10.0, 30.0, 1000.0)),
        depth=rng.choice((1, 1, 2, 3)),
    )
    if seed.startswith(WATCHES):
        branching = replace(branching, watches=True, ends=rng.random() < 0.6)
    plain = _draw_plain(seed)
    one = [ask(question("m1"), seconds=rng.choice((20.0, 40.0, 100.0)))]
    if seed.startswith(WATCHES):
        one += [ask(question("m3"), seconds=60.0), ask(question("m4"), seconds=60.0)]
    return replace(
        plain,
        submissions=rng.choice((tuple(one), (*one, ask(question("m2"), seconds=40.0)))),
        cancels=rng.choice(((), (), ((question("m1"), rng.random() < 0.5),))),
        branching=branching,
    )


def _draw_plain(seed: str) -> Scenario:
    rng = random.Random(seed)
    tenants = rng.choice((("acme",), ("acme", "umbrella")))
    later = rng.choice(((0.0,), (0.0, 5.0), (5.0, 30.0)))
    asked = [
        ask(
            question(f"m{rng.randrange(4)}", rng.choice(("c1", "c1", "c2")), rng.choice(tenants)),
            seconds=rng.choice((20.0, 40.0, 100.0)),
            later=rng.choice(later),
            chat=rng.choice(("", "chat")),
        )
        for _ in range(rng.randrange(1, 5))
    ]
    rare = ("crash", "renew", "give_back", "leave", "retry", "fail", "bury", "bury_alone")
    cancels = [
        (rng.choice(asked).question, rng.random() < 0.5) for _ in range(rng.choice((0, 0, 1, 2)))
    ]
    scenario = Scenario(
        submissions=tuple(asked),
        actors={**APP, **({"N": MANAGER} if rng.random() < 0.3 else {})},
        times={
            **{what: rng.randrange(1, 3) for what in rare if rng.random() < 0.4},
            "die": rng.randrange(2),
            "lapse": rng.choice((0, 1, 2, 3, 4, 6, 6)),
            "sweep_early": rng.choice((0, 0, 1)),
            "doze": rng.choice((0, 0, 2)),
            "until_due": rng.randrange(3),
        },
        cancels=tuple(cancels),
        processes=PROCESSES[: rng.choice((1, 2))],
        forgets=rng.random() < 0.2,
        fused=rng.random() < 0.5,
        slots=rng.choice((1, 1, 2)),
        rules=Rules(quota=rng.choice((2, 4, 8)), longest_queue=rng.choice((1, 3))),
        long=rng.random() < 0.4,
    )
    if rng.random() < 0.5:
        return scenario
    unnotified = {"ask_unnotified": rng.randrange(3), "recover": rng.randrange(1, 3)}
    return replace(scenario, handed=True, times={**scenario.times, **unnotified})
