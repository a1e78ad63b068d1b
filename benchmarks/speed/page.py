"""Writes `docs/internal/measurements/benchmarks.md` from a report."""

from pathlib import Path

from benchmarks.speed import tables
from benchmarks.speed.payload import HOPS
from benchmarks.speed.systems.port import SYSTEMS
from benchmarks.speed.tables import Report

PAGE = Path(__file__).parents[2] / "docs" / "internal" / "measurements" / "benchmarks.md"
COMMAND = "make bench"
DISTURBED = 0.1
"""If the share of waiting is higher, wall times are not reliable."""


def write(report: Report) -> None:
    """Write the document."""
    PAGE.write_text(document(report), "utf-8")


def document(report: Report) -> str:
    """Return the document."""
    first = next(iter(report.sizes))
    parts = (
        "# Benchmarks: the broker compared with others",
        f"Written by `{COMMAND}` (`python -m benchmarks.speed --full --write`); do not edit.",
        _how(report),
        _describe_disturbance(report),
        "## Goals",
        tables.goals(report, first),
        *_speeds(report),
        "## Round trips and recovery",
        ROUND_TRIPS,
        tables.broker(report),
        "## Load of Redis",
        _limit(report, first),
        tables.limit(report, first),
        "## Guarantees of the systems",
        tables.guarantees(report),
        "## Configuration of the systems",
        _describe_given(),
    )
    return "\n\n".join(part for part in parts if part) + "\n"


ROUND_TRIPS = f"""\
A proxy between the workers and Redis counts the round trips. The client connects directly, so its
own round trips are not counted. A pipeline or a blocking read is one round trip. A question takes
{HOPS} hops: the manager, then eight times a role and the manager again. If a system combines two
hops in one step, they still count as two. *Idle* is one second of a process with all nine roles
and no work.

Recovery: two processes wait on an idle queue. The process that holds a question in its first role
receives `SIGKILL`. The time until another process starts the role again is given in leases. Each
system has its own name for a lease (`idle_timeout`, `redelivery_timeout`); it is two seconds here.
*Not in 6* means that nothing happened for six leases."""


def _how(report: Report) -> str:
    sizes = "; ".join(f"*{name}* {size} bytes" for name, size in report.sizes.items())
    numbers = [len(row.turns.get(1, ())) for row in report.rows if row.turns.get(1)]
    turns, most = min(numbers, default=0), max(numbers, default=0)
    return f"""\
This run: {report.date}, `--{report.mode}`, {report.machine}, Redis {report.redis} with an
append-only file synced every second, on a Unix socket. The load average was {report.load:.1f} at
the start. Every measurement has a new, empty server. The systems take turns within each part, so
that a busy minute affects all of them. With one process and *4 kB*, each system has {turns}
turn(s), and the systems of the goals have {most}; the tables show the turn with the median speed.
The speed of a shared machine changes from turn to turn. Therefore the ratio of a goal is the median
of the ratios of turns that ran next to each other, shown with the smallest and the largest. Compare
ratios within this run, and compare processor time rather than wall time, because clients, Redis and
all other programs share the processors.

- Payloads, as JSON after every role has written: {sizes}. In *4 kB*, the payload is a
  text, and roles write almost nothing. *conversation* is a recording
  (`python -m benchmarks.speed.payload`) of the last question of a long conversation about the
  example documents, without a model, with the previous turns and the output of each role.
- A process contains a worker with the manager and all eight roles, and a client that sends
  questions. *q/s*: each process has 200 questions in flight, and each question that ends starts the
  next. Each role counts as an eighth of a question, because questions that advance together would
  otherwise all fall inside or outside of the measured interval. *Alone*: one question after the
  other. *Pick-up*: from the submission to the start of the manager.
- *client CPU* is the processor time of the processes, and *Redis CPU* that of the server, for each
  question. *waited* is the share of time in which the single process had work but no processor; it
  is near 0 if nothing else runs on the machine.
- Refdesk's client waits until Redis has stored the reply. It receives this information from the
  result of the settlement if that was made in its own process, otherwise from Redis. The clients of
  the other systems detect the end within the process, before it is stored, which favours them."""


def _describe_disturbance(report: Report) -> str:
    """Return a warning about a run on a busy machine, whose wall times are not meaningful."""
    waited = [row.speeds[1].waited_share for row in report.rows if 1 in row.speeds]
    if not waited or max(waited) < DISTURBED:
        return ""
    return f"""\
**The machine was busy in this run**: the single process of each system waited {min(waited):.0%} to
{max(waited):.0%} of its time for a processor, some more than others. Questions per second,
milliseconds and their ratios are therefore not reliable in this run; processor times, round trips
and recovery are reliable."""


def _speeds(report: Report) -> list[str]:
    parts = []
    for payload, size in report.sizes.items():
        parts += [f"## Speed: {payload} ({size} bytes)", tables.speed(report, payload)]
    return parts


def _limit(report: Report, payload: str) -> str:
    row = report.row("refdesk", payload)
    if row is None or not row.speeds:
        return ""
    most, one = max(row.speeds), row.speeds[min(row.speeds)]
    full, share = 1000 / one.redis_ms, row.speeds[most].redis_share
    needed = one.client_ms / one.redis_ms
    return f"""\
Redis works in one thread, so its limit is one processor. A question of Refdesk takes
{one.client_ms:.2f} ms of a client's processor and {one.redis_ms:.2f} ms of the Redis processor.
A single Redis therefore reaches its limit at about {full:.0f} questions per second, for which
workers need {needed:.1f} processors. In this run, {most} processes and Redis share the processors
of the machine, so the workers are the limit: Redis used {share:.0%} of a processor with {most}
processes. Higher rates need shards on several Redis servers."""


def _describe_given() -> str:
    return "\n".join(f"- **{system.name}**: {system.given}" for system in SYSTEMS)
