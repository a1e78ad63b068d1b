"""Says what was lost, doubled, late or illegal: compares what happened with the flow table.

Pure: it is handed what the processes noted and what Redis still knows, and returns findings. A
`Finding` is a sentence about one message, conversation or key, and the kind of promise it breaks.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import inf

from broker.values import JournalEntry
from envelope.outcome import Outcome
from tests.faults.desk_client import APPROVALS
from tests.faults.journal_checker import is_closed_by_manager, problems, reply_of
from tests.faults.ledger import Evidence, Finding, Noted
from tests.faults.scripted_agents import KEEPS_TURNS

STARTS = 3
LATE_SECONDS = 0.25
UNWRITTEN_SECONDS = 3.0
"""At most a second is lost, and up to two more where the disk is slow."""
EXCUSED = {"ends", "starts", "bills", "late"}
_Delivery = tuple[str, str, str, int]
_Hop = tuple[str, str, str]
_Outage = tuple[float, float]
"""When Redis was killed, and when it answered again: it may have accepted until it was gone."""


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
    """One delivery is started once, and a hop by three processes at most for each attempt."""
    deliveries = Counter[_Delivery]()
    hops: dict[_Hop, list[Noted]] = defaultdict(list)
    for sign, kind in ((1, "started"), (-1, "set back")):
        for line in evidence.lines(kind):
            deliveries[line["name"], line["role"], line["entry"], line["count"]] += sign
    for (name, role, entry, count), times in deliveries.items():
        if times > 1:
            problem = f"was started {times} times in delivery {count} of {role} {entry}"
            yield Finding("doubled", "starts", name, problem)
    for line in evidence.lines("started"):
        hops[line["name"], line["role"], line["hop"]].append(line)
    leaving = {line.pid: line.at for line in evidence.lines("leaving")}
    # Of the ledger, not of the journal: that one may be forgotten.
    waits = Counter((line["name"], line["role"]) for line in evidence.lines("put off"))
    for (name, role, hop), starts in hops.items():
        processes = len(_find_processes(starts, leaving))
        if processes > STARTS * (1 + waits[name, role]):
            problem = f"was started by {processes} processes at hop {hop}, {role}"
            yield Finding("overspent", "starts", name, problem)


def _find_processes(starts: Sequence[Noted], leaving: Mapping[int, float]) -> set[int]:
    """Return the processes whose starts of one hop count.

    A process counts once: its other consumers may take the entry again after it lost the lease. It
    does not count if it left in order, because the entry was handed back then: the id of an entry
    states when it came to the stream.
    """
    following = [*starts[1:], None]
    return {
        start.pid
        for start, after in zip(starts, following, strict=True)
        if after is None
        or int(after["entry"].partition("-")[0]) < 1000 * leaving.get(start.pid, inf)
    }


def _arrival_seconds(start: Noted) -> float:
    return int(start["entry"].partition("-")[0]) / 1000


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


def excusing(
    found: Sequence[Finding], evidence: Evidence, outages: Sequence[_Outage]
) -> tuple[list[Finding], dict[str, int]]:
    """Return the findings that no outage excuses, and counts of what outages did.

    A Redis that dies may take with it what `appendfsync everysec` had not written: it comes back as
    it was a moment before. A message whose acceptance is gone gets its one answer from the client,
    at its deadline. What was done in that moment is done again. To messages that were open, or
    ended, in that moment (`exposed`) other promises hold all the same: one reply to the client, no
    step that the table does not have, no memory twice.
    """
    if not outages:
        return list(found), {}
    exposed = _find_exposed(evidence, outages)
    lost = {name for name in exposed if not evidence.journals.get(name)} - evidence.forgotten()
    counts: Counter[str] = Counter()
    counts["exposed to an outage"] = len(exposed)
    counts["lost by an outage and reported to its client"] = len(lost)
    left: list[Finding] = []
    for finding in found:
        if finding.about in exposed and finding.part in EXCUSED:
            counts[f"excused by an outage: {finding.part}"] += 1
        else:
            left.append(finding)
    return left, dict(counts)


def _find_exposed(evidence: Evidence, outages: Sequence[_Outage]) -> set[str]:
    reported = {line["name"]: line.at for line in evidence.lines("reported")}
    return {
        line["name"]
        for line in evidence.lines("accepted")
        if any(
            line.at <= back and reported.get(line["name"], gone) >= gone - UNWRITTEN_SECONDS
            for gone, back in outages
        )
    }


SAID_NOTHING = {Outcome.FAILED, Outcome.SUPERSEDED}


def memory_findings(evidence: Evidence) -> Iterator[Finding]:
    """A conversation remembers what was said in it, once and in order, and nothing else."""
    # Whoever forgets a message that has its outcome takes away what the journal said of it.
    unknown = {
        line["conversation"]
        for line in evidence.lines("cancelled_by_client")
        if line["forget"] and not line["ended"]
    } | _forgotten_meanwhile(evidence)
    expected, questions = _expect_histories(evidence), _questions(evidence)
    for conversation, turns in expected.items():
        if conversation in unknown:
            continue
        turns = turns[-KEEPS_TURNS:]
        results = [
            (who, _sort_lines(text)) for who, text in evidence.histories.get(conversation, ())
        ]
        if results != turns:
            kind = "doubled" if len(results) > len(turns) else "lost"
            problem = f"remembers {results}, where {turns} were said"
            yield Finding(kind, "memory", conversation, problem)
        counted = evidence.statistics.get(conversation, 0)
        if counted != questions[conversation]:
            problem = f"counts {counted} questions, where {questions[conversation]} ended"
            yield Finding("illegal", "memory", conversation, problem)


def _expect_histories(evidence: Evidence) -> dict[str, list[tuple[str, str]]]:
    expected: dict[str, list[tuple[str, str]]] = defaultdict(list)
    asked = _find_asked(evidence)
    for conversation, name in _in_order_of_their_ends(evidence):
        reply = reply_of(evidence.journals[name])
        if _forgets(evidence, name):
            expected[conversation] = []
        elif reply.get("outcome") not in SAID_NOTHING:
            expected[conversation] += [
                ("user", _sort_lines("\n".join(asked[name]))),
                ("assistant", _sort_lines(str(reply["text"]))),
            ]
    return expected


def _questions(evidence: Evidence) -> Counter[str]:
    """Return how many questions each conversation counts."""
    counts: Counter[str] = Counter()
    for conversation, name in _in_order_of_their_ends(evidence):
        is_question = not _is_command(name)
        counts[conversation] = 0 if _forgets(evidence, name) else counts[conversation] + is_question
    return counts


def _is_command(name: str) -> bool:
    return name.startswith("forget")


def _forgets(evidence: Evidence, name: str) -> bool:
    """Return whether a message ended a memory; a command that failed changes nothing."""
    entries = evidence.journals[name]
    has_run = is_closed_by_manager(entries) and reply_of(entries).get("outcome") not in SAID_NOTHING
    return _is_command(name) and has_run


def _find_asked(evidence: Evidence) -> dict[str, list[str]]:
    """Return the texts of each message: its own, and of those that were merged into it."""
    texts: dict[str, list[str]] = defaultdict(list)
    for line in evidence.lines("accepted"):
        texts[line["merged_into"] or line["name"]].append(line["text"])
    return texts


def _sort_lines(text: str) -> str:
    """Messages that were merged side by side may have come in any order."""
    return "\n".join(sorted(text.splitlines()))


def _in_order_of_their_ends(evidence: Evidence) -> Iterable[tuple[str, str]]:
    """Return conversation and name of what changed a memory, in the order of the ends."""
    forgot: dict[str, float] = {}
    for end, start, conversation, name in _ends(evidence):
        # What was asked before a conversation was forgotten is not remembered by it any more.
        if start > forgot.get(conversation, 0.0):
            yield conversation, name
        if _forgets(evidence, name):
            forgot[conversation] = end


def _forgotten_meanwhile(evidence: Evidence) -> set[str]:
    """Return conversations that something came into in the millisecond in which all was forgotten.

    Journals are no finer: nobody can say which was first.
    """
    starts, forgot = set[tuple[str, float]](), set[tuple[str, float]]()
    for end, start, conversation, name in _ends(evidence):
        starts.add((conversation, start))
        if _forgets(evidence, name):
            forgot.add((conversation, end))
    return {conversation for conversation, _ in starts & forgot}


def _ends(evidence: Evidence) -> list[tuple[float, float, str, str]]:
    """Return end, start, conversation and name of what changed a memory, by their ends."""
    accepted = {line["name"]: line["conversation"] for line in evidence.lines("accepted")}
    return sorted(
        (entries[-1].at, entries[0].at, accepted[name], name)
        for name, entries in evidence.journals.items()
        if name in accepted
        and not name.startswith("note")
        and is_closed_by_manager(entries)
        and entries[-1].kind == "finished"
    )
