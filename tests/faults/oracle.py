"""Says what was lost, doubled, late or illegal: compares what happened with the flow table.

Pure: it is handed what the processes noted and what Redis still knows, and returns findings. A
`Finding` is a sentence about one message, conversation or key, and the kind of promise it breaks.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain

from broker.values import JournalEntry
from tests.faults.desk_client import APPROVALS
from tests.faults.finding import Evidence, Finding
from tests.faults.journal_checker import is_closed_by_manager, problems
from tests.faults.ledger import Noted
from tests.faults.memory_checker import memory_findings

STARTS = 3
LATE_SECONDS = 0.25
_Delivery = tuple[str, str, str, int]
_Hop = tuple[str, str, str]


def findings(evidence: Evidence) -> list[Finding]:
    """Return every broken promise."""
    return list(
        chain(
            _outcomes(evidence),
            _transitions(evidence),
            _lateness(evidence),
            _starts(evidence),
            _bills(evidence),
            memory_findings(evidence),
            _pauses(evidence),
            (
                Finding("left over", "left", key, _describe_left(evidence, key, count))
                for key, count in evidence.leftovers.items()
            ),
        )
    )


def lateness(entries: Sequence[JournalEntry], deadline_seconds: float) -> float:
    """Return by how many seconds a question ended after its deadline; negative when before."""
    return entries[-1].at - entries[0].at - deadline_seconds


def _outcomes(evidence: Evidence) -> Iterator[Finding]:
    """Every accepted message has one outcome: in its journal, on its list, and for its user."""
    reported: dict[str, list[Noted]] = defaultdict(list)
    for line in evidence.lines("reported"):
        reported[line["name"]].append(line)
    forgotten = evidence.forgotten()
    for line in evidence.lines("accepted"):
        name = line["name"]
        answers = reported.get(name, [])
        if len(answers) != 1:
            kind = "doubled" if answers else "lost"
            yield Finding(
                kind, "reported", name, f"was reported {len(answers)} outcomes to its client"
            )
        if name in forgotten:
            continue
        finished = [entry for entry in evidence.journals.get(name, ()) if entry.kind == "finished"]
        listed = evidence.results.get(name, 0)
        for where, count in (("its journal", len(finished)), ("the result list", listed)):
            if count != 1:
                kind = "doubled" if count else "lost"
                yield Finding(kind, "ends", name, f"ended {count} times in {where}")
        if finished and answers and answers[0]["outcome"] != finished[0].fields.get("outcome"):
            yield Finding(
                "illegal", "ends", name, "was reported another outcome than its journal has"
            )


def _transitions(evidence: Evidence) -> Iterator[Finding]:
    forgotten = evidence.forgotten()
    for name, entries in evidence.journals.items():
        if name not in forgotten:
            yield from (Finding(kind, "steps", name, what) for kind, what in problems(entries))


def _pauses(evidence: Evidence) -> Iterator[Finding]:
    """One reply goes on with a pause; one of several does, where nobody said anything else."""
    replies: dict[str, list[str]] = defaultdict(list)
    others = Counter[str]()
    conversations: dict[str, str] = {}
    for line in evidence.lines("accepted"):
        what, _, pause = line["text"].partition(" ")
        conversations[line["name"]] = line["conversation"]
        if what in APPROVALS:
            replies[pause].append(line["name"])
        else:
            others[line["conversation"]] += 1
    for pause, names in replies.items():
        journals = [evidence.journals.get(name, ()) for name in names]
        resumed = sum(any(entry.fields.get("resumed") for entry in each) for each in journals)
        if resumed > 1:
            yield Finding("doubled", "pauses", pause, f"was resumed by {resumed} replies")
        is_alone = others[conversations.get(pause, "")] == 1
        if not resumed and is_alone and all(map(is_closed_by_manager, journals)):
            yield Finding("lost", "pauses", pause, "was resumed by no reply")


def _lateness(evidence: Evidence) -> Iterator[Finding]:
    for line in evidence.lines("accepted"):
        entries = evidence.journals.get(line["name"], ())
        if not entries or entries[-1].kind != "finished":
            continue
        late = lateness(entries, line["deadline_seconds"])
        if late > LATE_SECONDS:
            problem = f"ended {late:.3f} s after its deadline"
            yield Finding("late", "late", line["name"], problem)


def _starts(evidence: Evidence) -> Iterator[Finding]:
    """One delivery is started once, and a hop three times at most for each of its attempts."""
    deliveries, hops = Counter[_Delivery](), Counter[_Hop]()
    for sign, kind in ((1, "started"), (-1, "set back")):
        for line in evidence.lines(kind):
            deliveries[line["name"], line["role"], line["entry"], line["count"]] += sign
            hops[line["name"], line["role"], line["hop"]] += sign
    hops.subtract(_find_handed_back(evidence))
    for (name, role, entry, count), starts in deliveries.items():
        if starts > 1:
            problem = f"was started {starts} times in delivery {count} of {role} {entry}"
            yield Finding("doubled", "starts", name, problem)
    # Of the ledger, not of the journal: that one may be forgotten.
    waits = Counter((line["name"], line["role"]) for line in evidence.lines("put off"))
    for (name, role, hop), starts in hops.items():
        if starts > STARTS * (1 + waits[name, role]):
            problem = f"was started {starts} times at hop {hop}, {role}"
            yield Finding("overspent", "starts", name, problem)


def _find_handed_back(evidence: Evidence) -> list[_Hop]:
    """Return what processes that ended in order handed back: none of the three starts."""
    faulty = evidence.faulty | {line.pid for line in evidence.lines("lost")}
    lines = (line for line in evidence.lines("cancelled") if line.pid not in faulty)
    return [(line["name"], line["role"], line["hop"]) for line in lines]


def _describe_left(evidence: Evidence, key: str, count: int) -> str:
    waiting = evidence.waiting.get(key)
    return f"holds {count}" if waiting is None else f"holds {count}: {waiting}"


def _bills(evidence: Evidence) -> Iterator[Finding]:
    """A call is billed again only when whoever paid it died or stopped before it was stored."""
    looked: dict[tuple[int, str], int] = {}
    stored: dict[str, int] = {}
    billed: dict[str, list[int]] = defaultdict(list)
    for place, line in enumerate(evidence.ledger):
        if line.kind == "looked":
            looked[line.pid, line["call"]] = place
        elif line.kind == "stored":
            stored.setdefault(line["call"], place)
        elif line.kind == "billed":
            call = line["call"]
            billed[call].append(line.pid)
            if looked.get((line.pid, call), place) > stored.get(call, place):
                problem = f"was billed for {call} after its answer was stored"
                yield Finding("overspent", "bills", call.split("/")[0], problem)
    # A machine may be too busy to renew a lease in time: whoever lost one is notified.
    lost = chain(evidence.lines("cancelled"), evidence.lines("refused"))
    excused = evidence.faulty | {line.pid for line in lost}
    for call, pids in billed.items():
        healthy = [pid for pid in pids if pid not in excused]
        if len(healthy) > 1:
            problem = f"was billed {len(healthy)} times for {call} without a fault"
            yield Finding("overspent", "bills", call.split("/")[0], problem)
